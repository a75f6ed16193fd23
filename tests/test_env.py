from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from openswarm import env


@dataclass
class Numbers:
    runs: int = 1
    wait_seconds: float = 1.0
    is_strict: bool = False
    model: str = "small"


@pytest.fixture(autouse=True)
def no_lasting_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for here isn't a setting that others see."""
    monkeypatch.setattr(env, "_asked", set(env.known_variables()))


@pytest.mark.parametrize("word", ["1", "true", "Yes", " on "])
def test_a_switch_is_on(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("OPENSWARM_X", word)

    assert env.flag("OPENSWARM_X")


@pytest.mark.parametrize("word", ["0", "false", "No", "off", ""])
def test_a_switch_is_off(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("OPENSWARM_X", word)

    assert not env.flag("OPENSWARM_X", default=True)


@pytest.mark.parametrize("default", [True, False])
def test_a_switch_that_is_not_set_has_its_default(default: bool) -> None:
    assert env.flag("OPENSWARM_NOT_SET", default=default) is default


def test_a_misspelt_switch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENSWARM_REQUIRE_JAIL", "ture")

    with pytest.raises(ImproperlyConfigured, match="OPENSWARM_REQUIRE_JAIL"):
        env.flag("OPENSWARM_REQUIRE_JAIL")


def test_words_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENSWARM_X", " a, ,b c,")

    assert env.words("OPENSWARM_X") == ["a", "b c"]
    assert env.words("OPENSWARM_NOT_SET", "d,e") == ["d", "e"]
    assert env.text("OPENSWARM_NOT_SET", "f") == "f"


def test_a_choice_is_one_of_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENSWARM_X", "debug")

    assert env.choice("OPENSWARM_X", "INFO", ["DEBUG", "INFO"]) == "DEBUG"
    with pytest.raises(ImproperlyConfigured, match="OPENSWARM_X must be one of INFO"):
        env.choice("OPENSWARM_X", "INFO", ["INFO"])


def test_overrides_take_the_types_of_their_fields(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENSWARM_RUNS", "3")
    monkeypatch.setenv("OPENSWARM_WAIT_SECONDS", "0.5")
    monkeypatch.setenv("OPENSWARM_IS_STRICT", "on")

    assert env.conf_overrides(Numbers) == {
        "runs": 3,
        "wait_seconds": 0.5,
        "is_strict": True,
    }
    assert type(env.conf_overrides(Numbers)["runs"]) is int


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RUNS", "many"),
        ("RUNS", "1.5"),
        ("WAIT_SECONDS", "soon"),
        ("WAIT_SECONDS", "nan"),
        ("WAIT_SECONDS", "inf"),
        ("IS_STRICT", "perhaps"),
    ],
)
def test_what_can_not_be_read_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"OPENSWARM_{name}", value)

    with pytest.raises(ImproperlyConfigured, match=f"OPENSWARM_{name} must be"):
        env.conf_overrides(Numbers)


def test_variables_that_nothing_asks_for_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENSWARM_RUNNS", "3")
    monkeypatch.setenv("OPENSWARM_RUNS", "3")
    env.conf_overrides(Numbers)

    assert "OPENSWARM_RUNNS" in env.unknown_variables()
    assert "OPENSWARM_RUNS" not in env.unknown_variables()
    assert "OPENSWARM_RUNS" in env.known_variables()


# Secrets


def test_a_secret_is_made_once_for_its_user_only(tmp_path: Path) -> None:
    path = tmp_path / "data" / "secret.key"

    secret = env.secret_file(path)

    assert len(secret) >= 50
    assert env.secret_file(path) == secret
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]
    assert env.secret_file(tmp_path / "other.key") != secret


def test_who_finds_a_secret_takes_it(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    path.write_text(" chosen by hand \n")

    assert env.secret_file(path) == "chosen by hand"


def test_the_file_is_never_seen_half_written(tmp_path: Path) -> None:
    seen = set()
    for number in range(50):
        path = tmp_path / f"{number}.key"
        with ThreadPoolExecutor(2) as pool:
            writing = pool.submit(env.secret_file, path)
            while not path.exists() and not writing.done():
                pass
            seen.add(len(path.read_text()))
            writing.result()

    assert seen == {64}


def test_an_empty_secret_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    path.touch()

    with pytest.raises(ImproperlyConfigured, match="is empty"):
        env.secret_file(path)


def test_a_folder_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ImproperlyConfigured, match="OPENSWARM_DATA_DIR"):
        env.secret_file(tmp_path / "file" / "secret.key")


# Databases


def test_without_an_address_it_is_sqlite_in_the_data_folder(tmp_path: Path) -> None:
    found = env.database("", tmp_path)

    assert found["ENGINE"] == "django.db.backends.sqlite3"
    assert found["NAME"] == str(tmp_path / "openswarm.sqlite3")
    assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in found["OPTIONS"]["init_command"]


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_an_address_is_taken_apart(tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}://us%40er:p%2Fw@db.example:5433/na%20me?sslmode=require"

    found = env.database(url, tmp_path)

    assert found["ENGINE"] == "django.db.backends.postgresql"
    assert (found["USER"], found["PASSWORD"]) == ("us@er", "p/w")
    assert (found["HOST"], found["PORT"]) == ("db.example", "5433")
    assert found["NAME"] == "na me"
    assert found["CONN_MAX_AGE"] == 0
    assert found["OPTIONS"]["sslmode"] == "require"
    assert found["OPTIONS"]["pool"]["max_size"] == 20


def test_another_database_is_refused_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured) as refusal:
        env.database("mysql://user:hunter2@db/name", tmp_path)

    assert "hunter2" not in str(refusal.value)
    assert "postgresql://" in str(refusal.value)

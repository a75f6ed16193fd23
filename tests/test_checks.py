"""Each refused setting with its neighbour that works."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command

from tests.server import manage

pytestmark = pytest.mark.usefixtures("db")


def ids(**kwargs: Any) -> list[str | None]:
    found = run_checks(**kwargs)
    return [message.id for message in found if (message.id or "").startswith("open")]


def test_the_defaults_pass_all_checks() -> None:
    call_command("check", fail_level="WARNING")


def test_a_dispatcher_that_is_not_there_is_refused(settings: Any) -> None:
    settings.DISPATCHER = "agents.nowhere.Dispatcher"

    assert ids() == ["openswarm.E001"]


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("", []),
        ("https://openswarm.example", []),
        ("http://nas.local:8000", []),
        ("openswarm.example", ["openswarm.E002"]),
        ("ftp://openswarm.example", ["openswarm.E002"]),
        ("https://", ["openswarm.E002"]),
        ("https://example.com/openswarm", ["openswarm.E003"]),
        ("https://me@example.com", ["openswarm.E003"]),
    ],
)
def test_the_public_address_must_be_that_of_a_site(
    settings: Any, url: str, found: list[str]
) -> None:
    settings.PUBLIC_URL = url

    assert ids() == found


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("max_runs_per_process", 0, ["openswarm.E004"]),
        ("max_runs_per_process", -1, ["openswarm.E004"]),
        ("max_runs_per_process", 1, []),
        ("warm_clients", 0, []),
        ("warm_clients", -1, ["openswarm.E004"]),
        ("stop_deadline_seconds", 6, []),
        ("stop_deadline_seconds", 7, ["openswarm.E006"]),
        ("lease_seconds", 20, []),
        ("lease_seconds", 19, ["openswarm.E005"]),
    ],
)
def test_numbers_that_cant_work_are_refused(
    override_conf: Any, name: str, value: int, found: list[str]
) -> None:
    override_conf(**{name: value})

    assert ids() == found


def test_a_jail_can_be_required_or_switched_off_not_both(override_conf: Any) -> None:
    override_conf(require_jail=True)
    assert ids() == []
    override_conf(require_jail=False, disable_jail=True)
    assert ids() == []
    override_conf(require_jail=True, disable_jail=True)
    assert ids() == ["openswarm.E007"]


def test_any_host_is_a_warning_where_it_is_deployed(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]

    assert ids() == []
    assert ids(include_deployment_checks=True) == ["openswarm.W002"]


def test_a_variable_that_nothing_reads_is_named(tmp_path: Any) -> None:
    said = manage(tmp_path, "check", OPENSWARM_REQIRE_JAIL="1")

    assert "OPENSWARM_REQIRE_JAIL is set, but there is no such setting." in said.stderr


def test_a_deployed_site_passes_djangos_own_checks(tmp_path: Any) -> None:
    arguments = ("check", "--deploy", "--fail-level", "WARNING")
    public = manage(tmp_path, *arguments, OPENSWARM_URL="https://openswarm.example")
    local = manage(tmp_path, *arguments)

    assert (public.returncode, public.stdout.strip()) == (
        0,
        "System check identified no issues (0 silenced).",
    )
    assert local.returncode == 1
    assert "security.W008" in local.stderr

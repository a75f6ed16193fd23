from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from agents import conf
from agents.conf import Conf


def test_overrides_are_read_at_each_call(settings: Any) -> None:
    assert conf.conf().max_runs_per_process == 8

    settings.OPENSWARM = {"max_runs_per_process": 3}

    assert conf.conf().max_runs_per_process == 3
    assert conf.conf().max_runs_per_user == Conf().max_runs_per_user


def test_an_unknown_number_is_refused(settings: Any) -> None:
    settings.OPENSWARM = {"max_runs": 3}

    with pytest.raises(TypeError):
        conf.conf()


def test_everything_written_lies_in_the_data_folder(settings: Any) -> None:
    settings.DATA_DIR = Path("/data")

    assert conf.data_dir() == Path("/data")
    assert conf.workspaces_dir() == Path("/data/workspaces")
    assert conf.cli_homes_dir() == Path("/data/cli")


def test_every_number_names_its_unit_or_is_a_count() -> None:
    numbers = [field for field in fields(Conf) if field.type == "float"]

    assert all(field.name.endswith(("_seconds", "_ms")) for field in numbers)


def test_a_heartbeat_comes_well_before_the_lease_ends() -> None:
    assert Conf().heartbeat_seconds * 2 < Conf().lease_seconds

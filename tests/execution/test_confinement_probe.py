"""Finding out whether the jail works on this machine, and saying why not."""

from __future__ import annotations

import os
import shutil

from agents.execution.confinement import JailStatus, probe_jail

from .jail import needs_jail


@needs_jail
def test_the_jail_works_on_this_machine(fresh_probe):
    assert probe_jail() == JailStatus(True)


def test_a_missing_bubblewrap_is_named(fresh_probe, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    status = probe_jail()

    assert status == JailStatus(
        False, "bubblewrap is not installed (on Debian: apt install bubblewrap)."
    )


def test_a_refused_jail_says_what_bubblewrap_said(fresh_probe, monkeypatch, tmp_path):
    refused = tmp_path / "bwrap"
    refused.write_text(
        "#!/bin/sh\necho 'No permissions to create a namespace' >&2\nexit 1\n"
    )
    refused.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    status = probe_jail()

    assert status == JailStatus(
        False,
        "bubblewrap can't build a jail here: No permissions to create a namespace",
    )


def test_a_switched_off_jail_is_named(fresh_probe, settings):
    settings.OPENSWARM = {**settings.OPENSWARM, "disable_jail": True}

    status = probe_jail()

    assert status == JailStatus(
        False, "The jail is switched off in this site's settings."
    )


@needs_jail
def test_the_probe_is_built_once(fresh_probe, monkeypatch, tmp_path):
    count, real = tmp_path / "count", shutil.which("bwrap")
    counting = tmp_path / "bwrap"
    counting.write_text(f'#!/bin/sh\necho x >>{count}\nexec {real} "$@"\n')
    counting.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    answers = [probe_jail(), probe_jail()]

    assert answers == [JailStatus(True)] * 2
    assert count.read_text() == "x\n"

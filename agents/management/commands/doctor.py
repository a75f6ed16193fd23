"""`manage.py doctor`: does everything work that agents need? One line each."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents.management.doctor import machine, search, storage
from agents.management.doctor.findings import Finding
from agents.management.doctor.rehearsal import rehearse
from agents.management.doctor.selftest import OPTION, run_selftest

CHECKS = (
    machine.check_software,
    machine.check_cli,
    machine.check_user,
    storage.check_data_folder,
    storage.check_secrets,
    machine.check_disk,
    storage.check_database,
    storage.check_migrations,
    search.check_search,
    storage.check_channel_layer,
    storage.check_static_files,
    machine.check_jail,
)


class Command(BaseCommand):
    help = "Check everything that agents need; exit status 1 when something fails."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(OPTION, action="store_true", help=argparse.SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["self_test"]:
            self.stdout.write(json.dumps([astuple(each) for each in rehearse()]))
            return
        findings = []
        for finding in self._findings():
            findings.append(finding)
            self.stdout.write(self._coloured(finding))
            self.stdout.flush()
        failures = sum(each.level == "failed" for each in findings)
        if failures:
            self.stderr.write(f"{failures} of {len(findings)} checks failed.")
            sys.exit(1)

    def _findings(self) -> Iterator[Finding]:
        for check in CHECKS:
            yield check()
        yield from run_selftest()

    def _coloured(self, finding: Finding) -> str:
        styles = {
            "ok": self.style.SUCCESS,
            "warning": self.style.WARNING,
            "failed": self.style.ERROR,
        }
        level = f"{finding.level:<8}"
        return str(finding).replace(level, styles[finding.level](level), 1)

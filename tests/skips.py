"""Under CI=true nothing may be skipped: a skip is a failure that says why.

Elsewhere a test that needs what the machine lacks (Chromium, bubblewrap, Redis) skips
with a reason, which pytest prints at its end.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def _refuse_skip(report: Report) -> Report:
    if os.environ.get("CI") != "true" or hasattr(report, "wasxfail"):
        return report
    if report.outcome == "skipped":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        report.outcome = "failed"
        report.longrepr = f"Nothing may be skipped under CI=true. {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    report = yield
    return _refuse_skip(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[
    None, pytest.CollectReport, pytest.CollectReport
]:
    report = yield
    return _refuse_skip(report)

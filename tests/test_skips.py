"""The rule about skips, tried on small suites of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.server import ROOT

SUITES = {
    "mark": "import pytest\n@pytest.mark.skip(reason='no moon')\ndef test_a(): pass\n",
    "call": "import pytest\ndef test_a(): pytest.skip('no moon')\n",
    "module": "import pytest\npytest.skip('no moon', allow_module_level=True)\n",
    "fixture": (
        "import pytest\n@pytest.fixture\ndef moon(): pytest.skip('no moon')\n"
        "def test_a(moon): pass\n"
    ),
    "expected": "import pytest\n@pytest.mark.xfail\ndef test_a(): assert False\n",
}


def run_suites(folder: Path, ci: str) -> tuple[int, str]:
    """Exit status and closing line of pytest on all of them."""
    for name, text in SUITES.items():
        (folder / f"test_{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -ra\n")
    options = ("-p", "tests.skips", "--continue-on-collection-errors")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", folder / "pytest.ini", folder],
        cwd=ROOT,
        env={**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.count("no moon") >= 4, done.stdout  # reasons are printed
    return done.returncode, done.stdout.splitlines()[-1]


def test_a_skip_is_a_failure_under_ci_alone(tmp_path: Path) -> None:
    status, closing_line = run_suites(tmp_path, ci="true")
    assert status == 1
    assert "1 failed, 1 xfailed, 3 errors in" in closing_line

    status, closing_line = run_suites(tmp_path, ci="")
    assert status == 0
    assert "4 skipped, 1 xfailed in" in closing_line

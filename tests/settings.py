"""Settings of the test run: everything it writes goes to a temporary folder."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

# One for each process of a run, gone with it.
os.environ["OPENSWARM_DATA_DIR"] = tempfile.mkdtemp(prefix="os-test-")
atexit.register(shutil.rmtree, os.environ["OPENSWARM_DATA_DIR"], ignore_errors=True)
for name in list(os.environ):  # the developer's own settings must not leak in
    if name.startswith("OPENSWARM_") and name != "OPENSWARM_DATA_DIR":
        del os.environ[name]

from openswarm.settings import *  # noqa: E402,F403
from openswarm.settings import DATA_DIR, DATABASES, OPENSWARM, STORAGES  # noqa: E402

# A file, not :memory:, because engine and sockets use threads of their own.
DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
STORAGES["staticfiles"]["BACKEND"] = (
    "django.contrib.staticfiles.storage.StaticFilesStorage"
)
(DATA_DIR / "static").mkdir()  # WhiteNoise warns of a missing one
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Tests count what the demo model is asked; those about titles switch them on.
OPENSWARM = {**OPENSWARM, "generate_titles": False}

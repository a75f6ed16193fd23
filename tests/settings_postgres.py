"""The test run's settings on PostgreSQL: pytest --ds=tests.settings_postgres."""

from __future__ import annotations

from openswarm import env
from tests.postgres import start_cluster
from tests.settings import *  # noqa: F403
from tests.settings import DATA_DIR

DATABASES = {"default": env.database(start_cluster().url(), DATA_DIR)}

#!/usr/bin/env python3
"""Django's command line for OpenSwarm; `manage.py serve` runs the application."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "openswarm.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"OpenSwarm can't start: {error}")


if __name__ == "__main__":
    main()

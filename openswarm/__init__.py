"""The project: settings, addresses and how it is served."""

from __future__ import annotations

__version__ = "0.1.0"

"""The model gateway, against the demo model and against a hand-written upstream."""

from __future__ import annotations

"""Tests of the demo model."""

from __future__ import annotations

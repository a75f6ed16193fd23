"""Tests of the template library."""

from __future__ import annotations

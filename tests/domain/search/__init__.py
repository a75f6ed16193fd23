"""Tests of the search index."""

from __future__ import annotations

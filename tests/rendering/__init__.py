"""Tests of agents.rendering: text in, safe HTML out."""

from __future__ import annotations

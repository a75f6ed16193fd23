"""Settings of a server whose doorbells never ring."""

from __future__ import annotations

from openswarm.settings import *  # noqa: F403

CHANNEL_LAYERS = {"default": {"BACKEND": "tests.execution.deaf_layer.DeafLayer"}}

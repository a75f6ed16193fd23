"""System checks: refuse combinations of settings that cannot work."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string


@register()
def check_dispatcher(**_: Any) -> list[CheckMessage]:
    try:
        import_string(settings.DISPATCHER)
    except ImportError as error:
        return [Error(f"DISPATCHER can't be imported: {error}", id="openswarm.E001")]
    return []

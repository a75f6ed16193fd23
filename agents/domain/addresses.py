"""Who speaks to us, by address: for limits on failed attempts, and for the audit."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from django.conf import settings


def client_address(environ: Mapping[str, Any]) -> str:
    """The address that speaks to us, or that our own proxy says speaks to it.

    Of `X-Forwarded-For` only the last entry counts, since the proxy appended it; all
    before it is the client's claim.
    """
    peer = str(environ.get("REMOTE_ADDR") or "")
    if not settings.TRUST_FORWARDED_FOR:
        return peer
    claims = str(environ.get("HTTP_X_FORWARDED_FOR") or "")
    try:
        return str(ip_address(claims.rpartition(",")[2].strip()))
    except ValueError:
        return peer

"""Who may have a socket and keep it: signed in, active, allowed to see the page."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY
from django.utils.crypto import constant_time_compare

from agents.models import AgentSession, User


class CloseCode:
    """44xx tells the browser not to come back; 1012 would ask it to.

    Plain numbers: the server's WebSocket library refuses any enum, even one of ints.
    """

    NOT_SIGNED_IN: Final = 4401
    NO_LONGER_ALLOWED: Final = 4403
    NOT_FOUND: Final = 4404
    DELETED: Final = 4410


def current_user(scope: Mapping[str, Any]) -> User | None:
    """The socket's user as the database knows them now, or None.

    None after signing out, a changed password, or once the account is off.
    """
    claimed = scope.get("user")
    if claimed is None or not claimed.is_authenticated:
        return None
    user = User.objects.filter(pk=claimed.pk, is_active=True).first()
    return user if user is not None and _is_signed_in(user, scope) else None


def _is_signed_in(user: User, scope: Mapping[str, Any]) -> bool:
    session = scope.get("session")
    if session is None:  # no cookie brought this socket here, so none can end
        return True
    engine = import_module(settings.SESSION_ENGINE)
    # A store of its own: the scope's keeps what it read when the socket opened.
    stored = engine.SessionStore(session.session_key).get(HASH_SESSION_KEY, "")
    return constant_time_compare(stored, user.get_session_auth_hash())


def is_deleted(session_id: UUID) -> bool:
    return not AgentSession.objects.filter(pk=session_id).exists()


def find_host(user: User, session_id: UUID) -> UUID | None:
    """The session whose events a page shows: its own, or a sub-agent's host's.

    Returns: None where this person may not see it.
    """
    visible = AgentSession.objects.visible_to(user).filter(pk=session_id)
    session = visible.only("host_session_id").first()
    return session.host_id if session is not None else None

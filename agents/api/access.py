"""What a program may see and do: exactly what its person may, on the pages."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404
from django.shortcuts import get_object_or_404

from agents.domain.locks import check_is_no_sub_agent
from agents.domain.queries.approvals import ApprovalCard, load_card
from agents.errors import NotAllowedError
from agents.models import AgentSession, User


def find_session(user: User, session_id: UUID) -> AgentSession:
    """A session that this person may see; to all others it doesn't exist."""
    visible = AgentSession.objects.visible_to(user)
    found = visible.select_related("owner", "provider", "host_session")
    return get_object_or_404(found, pk=session_id)


def find_operable(user: User, session_id: UUID) -> AgentSession:
    """Raises: Http404 to strangers, NotAllowedError to those who may only look;
    SubAgentError, since nothing is done to a sub-agent but through its host.
    """
    session = find_session(user, session_id)
    if not AgentSession.objects.operable_by(user).filter(pk=session_id).exists():
        raise NotAllowedError("You may look at this session, but not change it.")
    check_is_no_sub_agent(session)
    return session


def find_answerable(user: User, approval_id: UUID) -> ApprovalCard:
    """Raises: Http404 to strangers, NotAllowedError to those who may only look."""
    card = load_card(approval_id, user)
    if card is None:
        raise Http404
    if not card.can_answer:
        raise NotAllowedError("You may look at this session, but not decide in it.")
    return card

"""The tools that a session's model is sent; `policy.tool_router` decides from this."""

from __future__ import annotations

from collections.abc import Collection

from agents.conf import conf
from agents.domain.capability import Capability, capability_of
from agents.domain.mcp_offers import foreign_tools
from agents.domain.permissions import usable_names
from agents.models import AgentSession
from agents.policy.modes import SecurityMode
from agents.policy.tool_router import ToolContext, ToolRoute, route_tools


def get_chat_tools_for_model(
    model: str, conversation: AgentSession, include_all: bool = True
) -> tuple[str, ...]:
    """The tools for `model` in this session; a quick chat's without `include_all`.

    One query, for what the model can do.
    """
    context = ToolContext.AGENTIC if include_all else ToolContext.INTERACTIVE
    return tools_for(capability_of(model), conversation, context=context)


def tools_for(
    capability: Capability,
    session: AgentSession,
    *,
    context: ToolContext = ToolContext.AGENTIC,
    extras: Collection[str] = (),
) -> tuple[str, ...]:
    """The same for a model whose capability is at hand.

    Args:
        extras: tools that the session has besides its mode's.
    """
    ceiling = SecurityMode(session.owner.security_ceiling)
    foreign = foreign_tools(session)
    chosen = session.allowed_tools
    return route_tools(
        ToolRoute(
            known=(*usable_names(session), *foreign.offered),
            native_tools=capability.native_tools,
            vision=capability.vision,
            # A mode names servers; which of their tools that leaves is known there.
            chosen=None if chosen is None else {*chosen, *foreign.offered},
            security_mode=SecurityMode(session.security_mode).capped_by(ceiling),
            sandbox_network_reads=conf().sandbox_network_reads,
            context=context,
            extras=extras,
            tool_classes=foreign.classes,
        )
    )

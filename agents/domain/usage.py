"""The cost ledger: each answered model call is entered once, then summed."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q, Sum

from agents.events.bus import publish_on_commit
from agents.events.vocabulary import CostUpdated
from agents.models import AgentSession, CostEntry, Run
from agents.models.fields import fitting

from . import budgets
from .locks import lock_session

PRICES_FILE = Path(__file__).with_name("prices.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one answered call, by kind."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return sum(asdict(self).values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens, which is micro-dollars per token."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    def cost_usd_micros(self, usage: Usage) -> int:
        return round(
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * self.cache_read
            + usage.cache_write_tokens * self.cache_write
        )


@lru_cache
def price_table() -> dict[str, Price]:
    """Prices by the beginning of the model's name, from `prices.toml`."""
    rows = tomllib.loads(PRICES_FILE.read_text())
    return {prefix: Price(**row) for prefix, row in rows.items()}


def price_of(model: str) -> Price | None:
    """The longest matching entry; None where the price is unknown."""
    name = model.rsplit("/", 1)[-1]
    matching = [prefix for prefix in price_table() if name.startswith(prefix)]
    return price_table()[max(matching, key=len)] if matching else None


@transaction.atomic
def record_usage(
    *,
    session_id: UUID,
    provider_id: UUID | None,
    message_id: str,
    model: str,
    usage: Usage,
    agent_id: str = "",
    is_side: bool = False,
) -> bool:
    """Enter one answered call, or what more is known of it by now.

    It is entered when the answer begins, so that its cost outlives a killed server, and
    again at its end: counts only grow. The run is the session's unfinished one; a late
    answer, and one that no turn asked for, counts for the session.

    Returns: False if this was known before.
    """
    if not AgentSession.objects.filter(pk=session_id).exists():
        return False
    session = lock_session(session_id)
    price = price_of(model)
    run = None if is_side else session.runs.unfinished().first()
    counts = {
        **asdict(usage),
        "usd_micros": price.cost_usd_micros(usage) if price else None,
    }
    entry, is_new = CostEntry.objects.get_or_create(
        session=session,
        **fitting(CostEntry, message_id=message_id, model=model),
        defaults={
            "provider_id": provider_id,
            "user_id": session.owner_id,
            "run": run,
            **fitting(CostEntry, agent_id=agent_id),
            **counts,
        },
    )
    if not is_new and not _has_grown(entry, usage):
        return False
    if not is_new:
        CostEntry.objects.filter(pk=entry.pk).update(**counts)
    _add_up(session, entry.run)
    if price is None:
        budgets.tell_unpriced(session, entry.run, model)
    budgets.watch(session, entry.run)
    for sub_agent in _sub_agents(session, agent_id):
        add_up_sub_agent(sub_agent)
    return True


def _has_grown(entry: CostEntry, usage: Usage) -> bool:
    counts = [(count, getattr(entry, kind)) for kind, count in asdict(usage).items()]
    is_more = any(now > before for now, before in counts)
    return is_more and all(now >= before for now, before in counts)


def _sub_agents(host: AgentSession, agent_id: str) -> list[AgentSession]:
    if not agent_id:
        return []
    return list(host.guests.filter(**fitting(AgentSession, agent_id=agent_id)))


def add_up_sub_agent(sub_agent: AgentSession) -> None:
    """A sub-agent's part of what its host spends; the host's totals hold it too."""
    assert sub_agent.host_session_id is not None, "only sub-agents have a part"
    part = CostEntry.objects.filter(
        session_id=sub_agent.host_session_id, agent_id=sub_agent.agent_id
    )
    _store_totals(sub_agent, _sums(part))


def _store_totals(session: AgentSession, totals: dict[str, int | None]) -> None:
    AgentSession.objects.filter(pk=session.pk).update(
        cost_usd_micros=totals["cost"] or 0,
        cost_is_partial=bool(totals["unpriced"]),
        input_tokens=(totals["fresh"] or 0)
        + (totals["read"] or 0)
        + (totals["write"] or 0),
        output_tokens=totals["output"] or 0,
    )
    session.refresh_from_db()
    publish_on_commit(
        CostUpdated(
            session_id=session.pk,
            cost_usd_micros=session.cost_usd_micros,
            cost_is_partial=session.cost_is_partial,
            input_tokens=session.input_tokens,
            output_tokens=session.output_tokens,
        )
    )


def _add_up(session: AgentSession, run: Run | None) -> None:
    """Totals are sums over the ledger, never running additions."""
    if run is not None:
        sums = _sums(CostEntry.objects.filter(run=run))
        Run.objects.filter(pk=run.pk).update(
            cost_usd_micros=sums["cost"] or 0,
            input_tokens=sums["fresh"] or 0,
            output_tokens=sums["output"] or 0,
            cache_read_tokens=sums["read"] or 0,
            cache_write_tokens=sums["write"] or 0,
        )
    _store_totals(session, _sums(CostEntry.objects.filter(session=session)))


def _sums(entries: Any) -> dict[str, int | None]:
    result: dict[str, int | None] = entries.aggregate(
        cost=Sum("usd_micros"),
        fresh=Sum("input_tokens"),
        output=Sum("output_tokens"),
        read=Sum("cache_read_tokens"),
        write=Sum("cache_write_tokens"),
        unpriced=Count("pk", filter=Q(usd_micros=None)),
    )
    return result

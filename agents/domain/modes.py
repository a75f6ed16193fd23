"""Modes: found, kept, changed and deleted; a change binds the sessions in them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils.text import slugify

from agents.errors import InvalidInputError, NotAllowedError, SessionGoneError
from agents.events.bus import control_group, ring_on_commit
from agents.models import AgentSession, Mode, Preferences, User
from agents.models.sessions import AgentSessionQuerySet
from agents.policy.modes import plans_first
from agents.policy.tools import TOOLS
from agents.rendering.text import clean_text

from . import audit, releases
from .locks import lock_session
from .status import publish_status

MAX_MODES = 100
MAX_TOOLS = 500
MAX_PROMPT_CHARACTERS = 50_000
_SLUG_CHARACTERS = 60
Tools = list[str] | None
_TOOL_NAME = re.compile(r"mcp__[\w.-]+|mcp:[\w.-]+")


def find_mode(user: User, slug: str) -> Mode:
    """Of two of one name the person's own stands before the site's.

    Raises: InvalidInputError; a missing mode never silently means "all tools".
    """
    mode = find_kept_mode(user, slug)
    if mode is None:
        raise InvalidInputError(f"There is no mode “{slug}”.", field="mode")
    return mode


def find_kept_mode(user: User, slug: str) -> Mode | None:
    own_first = F("owner").desc(nulls_last=True)
    return Mode.objects.visible_to(user).filter(slug=slug).order_by(own_first).first()


def mode_choices(user: User, kept: str = "") -> list[tuple[str, str]]:
    """The modes to choose from, with the one that is kept even if it is gone."""
    modes = Mode.objects.visible_to(user).order_by("-owner", "-is_builtin", "name")
    found = dict(modes.values_list("slug", "name"))
    if kept and kept not in found:
        found[kept] = f"{kept} (deleted)"
    return list(found.items())


def save_mode(mode: Mode, user: User) -> Mode:
    """Store a mode; sessions that are in it are bound by it from the next call on.

    The caller has found it among those that `user` may edit.

    Raises: InvalidInputError naming the field, NotAllowedError for viewers.
    """
    if not user.may_start_agents:
        raise NotAllowedError("Viewers have no agents that could work in a mode.")
    _clean(mode)
    with transaction.atomic():
        _lock_modes_of(user)
        before = Mode.objects.filter(pk=mode.pk).first()
        _check(mode, user)
        if before is None:
            mode.slug = _free_slug(mode)
        mode.save()
        verb = "changed" if before else "created"
        audit.record(f"mode.{verb}", actor=user, target=mode, slug=mode.slug)
    if before is not None and before.tools != mode.tools:
        _bind(mode, before.tools, user)
    return mode


def _lock_modes_of(user: User) -> None:
    """Two sends of one form: the second waits here and then sees the first."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)


def _clean(mode: Mode) -> None:
    mode.name = " ".join(clean_text(mode.name).split())
    mode.description = clean_text(mode.description).strip()
    mode.system_prompt = clean_text(mode.system_prompt).replace("\r\n", "\n").strip()
    if mode.tools is not None:
        mode.tools = list(dict.fromkeys(clean_text(name) for name in mode.tools))


def _check(mode: Mode, user: User) -> None:
    if mode.is_builtin or (mode.owner_id is None and not user.is_owner):
        raise NotAllowedError("This mode can't be changed; duplicate it.")
    if not mode.name:
        raise InvalidInputError("A mode needs a name.", field="name")
    if len(mode.system_prompt) > MAX_PROMPT_CHARACTERS:
        raise InvalidInputError(
            f"Instructions can have {MAX_PROMPT_CHARACTERS:,} characters.",
            field="system_prompt",
        )
    others = Mode.objects.filter(owner=mode.owner).exclude(pk=mode.pk)
    if others.count() >= MAX_MODES:
        raise InvalidInputError(f"{MAX_MODES} modes are the most that one can have.")
    if others.filter(name__iexact=mode.name).exists():
        raise InvalidInputError("There is a mode of this name already.", field="name")
    _check_tools(mode.tools)
    _check_next(mode, user)


def _check_tools(tools: Iterable[str] | None) -> None:
    names = list(tools or ())
    if len(names) > MAX_TOOLS:
        raise InvalidInputError(
            f"A mode names {MAX_TOOLS} tools at most.", field="tools"
        )
    for name in names:
        if name not in TOOLS and not _TOOL_NAME.fullmatch(name):
            raise InvalidInputError(f"“{name}” is not a tool.", field="tools")


def _check_next(mode: Mode, user: User) -> None:
    following = mode.default_next_mode
    if not following:
        if plans_first(mode.tools):
            raise InvalidInputError(
                "Choose the mode in which an approved plan is carried out.",
                field="default_next_mode",
            )
        return
    # Everybody has a mode of the site, but nobody else one's own.
    known = Mode.objects.visible_to(user) if mode.owner_id else Mode.objects.shared()
    if following == mode.slug or not known.filter(slug=following).exists():
        raise InvalidInputError("Choose another mode.", field="default_next_mode")


def _free_slug(mode: Mode) -> str:
    """One that nobody has who could see this mode, so that rows stay unambiguous."""
    others = Mode.objects.all()
    if mode.owner is not None:
        others = others.visible_to(mode.owner)
    taken = set(others.values_list("slug", flat=True))
    # A session in a deleted mode must not be taken for one in this mode.
    taken |= set(_sessions_of(mode.owner).values_list("mode", flat=True))
    base = slugify(mode.name)[:_SLUG_CHARACTERS].strip("-") or "mode"
    numbered = (f"{base}-{number}" for number in range(2, len(taken) + 3))
    return next(slug for slug in (base, *numbered) if slug not in taken)


def _sessions_of(owner: User | None) -> AgentSessionQuerySet:
    sessions = AgentSession.objects.all()
    return sessions if owner is None else sessions.filter(owner=owner)


def sessions_in(mode: Mode) -> AgentSessionQuerySet:
    """The sessions that resolve to exactly this mode, sub-agents among them."""
    sessions = _sessions_of(mode.owner).filter(mode=mode.slug)
    if mode.owner_id is None:
        sessions = sessions.exclude(owner__modes__slug=mode.slug)
    return sessions


def _bind(mode: Mode, before: Tools, user: User) -> None:
    """The gate reads a session's tools for every call, so they follow the mode.

    Each session in a transaction of its own: only one is ever locked at a time.
    """
    for session_id in list(sessions_in(mode).values_list("pk", flat=True)):
        try:
            session = _bind_session(session_id, before, mode.tools)
        except SessionGoneError:
            continue
        releases.settle_in_session(session, user)


@transaction.atomic
def _bind_session(session_id: UUID, before: Tools, after: Tools) -> AgentSession:
    session = lock_session(session_id)
    session.allowed_tools = _follow(session.allowed_tools, before, after)
    session.save(update_fields=["allowed_tools"])
    ring_on_commit(control_group(session.pk), {"type": "control.changed"})
    publish_status(session.pk)
    return session


def _follow(chosen: Tools, before: Tools, after: Tools) -> Tools:
    """A session that was given less than its mode had never gets more by a change."""
    if chosen == before or chosen is None:
        return after
    if after is None:
        return chosen
    return [name for name in chosen if name in after or _server_of(name) in after]


def _server_of(tool_name: str) -> str:
    """How a mode names the whole server of a tool."""
    return tool_name.rpartition("__")[0]


def copy_of(mode: Mode, owner: User) -> Mode:
    """A mode of one's own like another; not saved."""
    return Mode(
        owner=owner,
        name=f"{mode.name} (copy)"[:100],
        **{
            name: getattr(mode, name)
            for name in (
                *("description", "system_prompt", "tools", "default_next_mode"),
                *("icon", "color"),
            )
        },
    )


def find_use(mode: Mode) -> str:
    """What still needs the mode, as a sentence; empty if nothing does."""
    sessions = sessions_in(mode).filter(closed_at=None, host_session=None).count()
    if sessions:
        noun = "session is" if sessions == 1 else "sessions are"
        return f"{sessions} open {noun} in this mode."
    people = Preferences.objects.filter(default_mode=mode.slug)
    following = Mode.objects.filter(default_next_mode=mode.slug)
    if mode.owner_id is not None:
        people = people.filter(user=mode.owner_id)
        following = following.filter(owner=mode.owner_id)
    if people.exists():
        return "New agents begin in this mode, by the preferences."
    first = following.first()
    return f"The mode “{first.name}” goes on in this one." if first else ""


@transaction.atomic
def delete_mode(mode: Mode, user: User) -> None:
    """Closed sessions that were in it keep the tools that it had.

    The caller has found it among those that `user` may edit.

    Raises: InvalidInputError while it is in use.
    """
    _lock_modes_of(user)
    use = find_use(mode)
    if use:
        raise InvalidInputError(f"{use} It can't be deleted before that is changed.")
    audit.record("mode.deleted", actor=user, target=mode, slug=mode.slug)
    mode.delete()

"""A mode of one's own: what it says, and which tools it leaves."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.validators import RegexValidator

from agents.domain.modes import MAX_PROMPT_CHARACTERS, mode_choices
from agents.domain.permissions import OWN_SERVERS
from agents.models import McpServer, McpTool, Mode, User
from agents.policy.modes import ENTER_PLAN, HAND_IN_PLAN, PLAN_WRITERS, plans_first
from agents.policy.tools import canonical_name, find_tool, get_all_tool_names

from .fields import CleanTextField

Groups = list[tuple[str, list[tuple[str, str]]]]

EVERY, CHOSEN, PLANNING = "every", "chosen", "planning"
_REACHES = [
    (EVERY, "Every tool, those of later versions and servers too"),
    (CHOSEN, "Only the tools chosen below"),
    (PLANNING, "Only these, and nothing is changed before you approve a plan"),
]
_ICONS = (
    *("bot", "message-square", "list-checks", "book-open", "brain", "bug", "code"),
    *("database", "eye", "file-pen", "file-search", "flag", "git-branch", "globe"),
    *("lightbulb", "notebook-pen", "palette", "rocket", "scale", "search", "shield"),
    *("sparkles", "square-terminal", "star", "wand-sparkles", "wrench", "zap"),
)


class ModeForm(forms.Form):
    name = CleanTextField(max_length=100)
    description = CleanTextField(
        required=False, max_length=500, help_text="What it is for, in a sentence."
    )
    system_prompt = CleanTextField(
        label="Instructions",
        required=False,
        max_length=MAX_PROMPT_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text="Part of the system prompt of every session in this mode.",
    )
    reach = forms.ChoiceField(
        label="Tools", choices=_REACHES, widget=forms.RadioSelect, initial=EVERY
    )
    tools = forms.MultipleChoiceField(
        label="Chosen tools",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="What is not among them does not exist for the agent.",
    )
    default_next_mode = forms.ChoiceField(
        label="Goes on in",
        required=False,
        help_text="After a turn that ended well, or after its plan was approved.",
    )
    icon = forms.ChoiceField(
        choices=[(name, name.replace("-", " ").capitalize()) for name in _ICONS]
    )
    color = forms.CharField(
        label="Colour",
        widget=forms.TextInput(attrs={"type": "color"}),
        validators=[RegexValidator(r"^#[0-9a-fA-F]{6}$", "Choose a colour.")],
    )
    for_everybody = forms.BooleanField(
        required=False, help_text="Everybody on this site can choose it."
    )

    def __init__(self, *args: Any, mode: Mode, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._mode = mode
        kept = [name for name in mode.tools or () if name not in _PLAN_TOOLS]
        _choose(self, "tools", _tool_groups(user, kept))
        following = mode_choices(user, kept=mode.default_next_mode)
        others = [choice for choice in following if choice[0] != mode.slug]
        _choose(self, "default_next_mode", [("", "The same mode"), *others])
        if not (mode._state.adding and user.is_owner):
            del self.fields["for_everybody"]
        self.initial = _initial(mode)

    def apply(self) -> Mode:
        """The mode with what was typed; not saved."""
        given = self.cleaned_data
        names = ("name", "description", "system_prompt", "default_next_mode")
        for name in (*names, "icon", "color"):
            setattr(self._mode, name, given[name])
        self._mode.tools = _tools(given["reach"], given["tools"])
        if given.get("for_everybody"):
            self._mode.owner = None
        return self._mode


# Said by the choice of the reach, or by that of planning when it sees fit.
_PLAN_TOOLS = {HAND_IN_PLAN}


def _initial(mode: Mode) -> dict[str, Any]:
    names = ("name", "description", "system_prompt", "default_next_mode")
    values = {name: getattr(mode, name) for name in (*names, "icon", "color")}
    reach = EVERY if mode.tools is None else CHOSEN
    values["reach"] = PLANNING if plans_first(mode.tools) else reach
    values["tools"] = mode.tools or []
    return values


def _tools(reach: str, chosen: list[str]) -> list[str] | None:
    if reach == EVERY:
        return None
    if reach == PLANNING:
        writers = {ENTER_PLAN, *PLAN_WRITERS}
        return [*(name for name in chosen if name not in writers), HAND_IN_PLAN]
    return [*chosen, HAND_IN_PLAN] if ENTER_PLAN in chosen else chosen


def _tool_groups(user: User, kept: list[str]) -> Groups:
    """What can be chosen, and what the mode has anyway."""
    groups = [("OpenSwarm", _own_tools()), *_server_groups(user)]
    known = {name for _, choices in groups for name, _ in choices}
    missing = [(name, name) for name in kept if name not in known]
    return [*groups, *([("Not found any more", missing)] if missing else [])]


def _own_tools() -> list[tuple[str, str]]:
    choices = []
    for full_name in get_all_tool_names(OWN_SERVERS):
        spec = find_tool(full_name)
        name = canonical_name(full_name)
        if spec is not None and name not in _PLAN_TOOLS:
            choices.append((name, f"{name}: {spec.summary}"))
    return choices


def _server_groups(user: User) -> Groups:
    servers = McpServer.objects.visible_to(user).order_by("name")
    tools = McpTool.objects.filter(server__in=servers, is_listed=True)
    by_server: dict[str, list[tuple[str, str]]] = {}
    for tool in tools.select_related("server").order_by("name"):
        by_server.setdefault(tool.server.slug, []).append((tool.full_name, tool.name))
    return [
        (
            f"MCP server {server.name}",
            [
                (f"mcp:{server.slug}", "All its tools"),
                *by_server.get(server.slug, []),
            ],
        )
        for server in servers
    ]


def _choose(form: forms.Form, name: str, choices: Any) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)
    field.choices = choices

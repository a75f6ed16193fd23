"""One table of every tool name: what it can do, whether it is offered, and why not.

Built-in names are the CLI's own; names with a server are our in-process tools, which
the model knows as `mcp__<server>__<name>`. Tools of the servers that a person
configured are not listed: their class comes from `classify_mcp_tool`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final


class ToolClass(StrEnum):
    """What a tool can do to the world."""

    READ = "R"  # reads files of the workspace
    NETWORK = "N"  # reads from the network or from somebody else's server
    WRITE = "W"
    EXECUTE = "X"
    SPAWN = "S"  # starts agents or schedules them
    INTERNAL = "I"  # reads, or notes down, what concerns this session only
    INTERNAL_WRITE = "IW"
    UNKNOWN = "U"


class ToolPolicy(StrEnum):
    """A person's standing wish for one tool."""

    ALWAYS_ALLOW = "always_allow"
    ASK = "ask"
    DENY = "deny"


OWN_SERVER_PREFIX: Final = "openswarm-"

# Tools that exist to reach the person: approving them unseen would defeat them.
PERSON_TOOLS: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})

SUB_AGENT_TOOLS: Final = frozenset({"Agent", "Task"})
INVOKE_AGENT: Final = "InvokeAgent"
SKILL_TOOL: Final = "Skill"
COMPLETE_TASK: Final = "complete_task"

# The original's list of built-in tools; every name of it stays in the table below.
FULL_TOOLS: Final = (
    "Read",
    "Edit",
    "Write",
    "Bash",
    "Glob",
    "Grep",
    "AskUserQuestion",
    "WebSearch",
    "WebFetch",
    "NotebookEdit",
    "TodoWrite",
    "EnterPlanMode",
    "ExitPlanMode",
    "EnterWorktree",
    "TaskOutput",
    "TaskStop",
    "CronCreate",
    "CronList",
    "CronDelete",
    "RenderOutput",
    "InvokeAgent",
    "Agent",
)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    tool_class: ToolClass
    summary: str
    server: str | None = None  # the in-process server of ours that has it
    why_not: str | None = None  # the reason, when it is not offered
    replacement: str | None = None

    @property
    def offered(self) -> bool:
        return self.why_not is None

    @property
    def full_name(self) -> str:
        return f"mcp__{self.server}__{self.name}" if self.server else self.name


R, N, W, X, S, I, IW = (  # noqa: E741 - the letters are the classes' names
    ToolClass.READ,
    ToolClass.NETWORK,
    ToolClass.WRITE,
    ToolClass.EXECUTE,
    ToolClass.SPAWN,
    ToolClass.INTERNAL,
    ToolClass.INTERNAL_WRITE,
)

_NO_NETWORK = "The agent's jail has no network."
_NO_BACKGROUND = "Background work is switched off: its result could not be delivered."
_NO_SCHEDULES = "The CLI's schedules end with its process."
_NO_MESSAGING = "Sessions must not write into each other."
_WORKTREES = "OpenSwarm makes a session's worktree before the agent starts."
_ONE_TODO_LIST = "The session keeps one list of steps."
_NOT_IN_CLI = "This version of the CLI does not have it."
_RESOURCES = "Servers are connected by OpenSwarm, which passes on tools only."

_BROWSER, _INVOKE = "openswarm-browser-agent", "openswarm-invoke-agent"
_OURS = "openswarm"

_SPECS: Final = (
    ToolSpec("Read", R, "Read a file"),
    ToolSpec("Edit", W, "Change part of a file"),
    ToolSpec("Write", W, "Create or replace a file"),
    ToolSpec("Bash", X, "Run a shell command"),
    ToolSpec("Glob", R, "Find files by name"),
    ToolSpec("Grep", R, "Search in files"),
    ToolSpec("AskUserQuestion", I, "Ask the person a question"),
    ToolSpec("NotebookEdit", W, "Change a notebook cell"),
    ToolSpec("TodoWrite", I, "Keep the list of steps"),
    ToolSpec("EnterPlanMode", I, "Start planning before changing anything"),
    ToolSpec("ExitPlanMode", I, "Show the plan and ask to go ahead"),
    ToolSpec("Agent", S, "Start a sub-agent"),
    ToolSpec("Skill", R, "Read a skill of the person"),
    # Built in, and not offered.
    ToolSpec(
        "WebSearch", N, "Search the web", why_not=_NO_NETWORK, replacement="fetch"
    ),
    ToolSpec(
        "WebFetch", N, "Read a web page", why_not=_NO_NETWORK, replacement="fetch"
    ),
    ToolSpec(
        "Task",
        S,
        "Start a sub-agent",
        why_not="This is the old name of Agent.",
        replacement="Agent",
    ),
    ToolSpec("EnterWorktree", W, "Start a git worktree", why_not=_WORKTREES),
    ToolSpec("ExitWorktree", W, "Leave a git worktree", why_not=_WORKTREES),
    ToolSpec("TaskOutput", R, "Read background output", why_not=_NO_BACKGROUND),
    ToolSpec("TaskStop", X, "Stop background work", why_not=_NO_BACKGROUND),
    ToolSpec("BashOutput", R, "Read background output", why_not=_NO_BACKGROUND),
    ToolSpec("KillShell", X, "Stop background work", why_not=_NO_BACKGROUND),
    ToolSpec("Monitor", X, "Watch a command", why_not=_NO_BACKGROUND),
    ToolSpec("CronCreate", S, "Schedule a prompt", why_not=_NO_SCHEDULES),
    ToolSpec("CronList", S, "List schedules", why_not=_NO_SCHEDULES),
    ToolSpec("CronDelete", S, "Delete a schedule", why_not=_NO_SCHEDULES),
    ToolSpec("ScheduleWakeup", S, "Wake up later", why_not=_NO_SCHEDULES),
    ToolSpec("RemoteTrigger", S, "Trigger a remote agent", why_not=_NO_SCHEDULES),
    ToolSpec("PushNotification", IW, "Notify", why_not="OpenSwarm notifies people."),
    ToolSpec(
        "RenderOutput",
        W,
        "Show an app",
        why_not="Nothing in the CLI stands behind this name.",
    ),
    ToolSpec("Workflow", S, "Run many agents", why_not=_NO_BACKGROUND),
    ToolSpec("SendMessage", S, "Write to a session", why_not=_NO_MESSAGING),
    ToolSpec("ListAgents", N, "List other sessions", why_not=_NO_MESSAGING),
    ToolSpec(
        "ReportFindings",
        I,
        "Report findings",
        why_not="The answer itself is the report.",
    ),
    ToolSpec(
        "TaskCreate",
        I,
        "Add a step",
        why_not=_ONE_TODO_LIST,
        replacement="TodoWrite",
    ),
    ToolSpec(
        "TaskGet", I, "Read a step", why_not=_ONE_TODO_LIST, replacement="TodoWrite"
    ),
    ToolSpec(
        "TaskList", I, "List steps", why_not=_ONE_TODO_LIST, replacement="TodoWrite"
    ),
    ToolSpec(
        "TaskUpdate",
        I,
        "Change a step",
        why_not=_ONE_TODO_LIST,
        replacement="TodoWrite",
    ),
    ToolSpec(
        "ToolSearch",
        I,
        "Find deferred tools",
        why_not="No tool is deferred here.",
    ),
    ToolSpec(
        "StructuredOutput",
        I,
        "Answer by a schema",
        why_not="Only jobs with an output schema have it.",
    ),
    ToolSpec(
        "SandboxNetworkAccess",
        N,
        "Reach a host from the CLI's own sandbox",
        why_not="The jail decides about the network, not the CLI's sandbox.",
    ),
    ToolSpec("ListMcpResourcesTool", N, "List resources", why_not=_RESOURCES),
    ToolSpec("ReadMcpResourceTool", N, "Read a resource", why_not=_RESOURCES),
    ToolSpec("LS", R, "List a folder", why_not=_NOT_IN_CLI, replacement="Glob"),
    ToolSpec("MultiEdit", W, "Change a file", why_not=_NOT_IN_CLI, replacement="Edit"),
    # Ours, in-process; offered wherever their server is registered.
    ToolSpec("InvokeAgent", S, "Ask another session", _INVOKE),
    ToolSpec("fetch", N, "Read a web page", _OURS),
    ToolSpec("complete_task", I, "Say that the work is done", _OURS),
    ToolSpec("list_tasks", I, "List tasks", _OURS),
    ToolSpec("create_task", IW, "Create a task", _OURS),
    ToolSpec("update_task", IW, "Change a task", _OURS),
    ToolSpec("memory_search", I, "Search the memory", _OURS),
    ToolSpec("memory_save", IW, "Remember a fact", _OURS),
    ToolSpec("memory_delete", IW, "Forget a fact", _OURS),
    ToolSpec("CreateBrowserAgent", S, "Open a browser with an agent", _BROWSER),
    ToolSpec("BrowserAgent", S, "Give a browser to an agent", _BROWSER),
    ToolSpec("BrowserAgents", S, "Give browsers to agents", _BROWSER),
    ToolSpec("BrowserScreenshot", N, "Look at the page", _BROWSER),
    ToolSpec("BrowserGetText", N, "Read the page's text", _BROWSER),
    ToolSpec("BrowserGetElements", N, "List the page's elements", _BROWSER),
    ToolSpec("BrowserScroll", N, "Scroll the page", _BROWSER),
    ToolSpec("BrowserWait", N, "Wait for the page", _BROWSER),
    ToolSpec("BrowserNavigate", W, "Go to an address", _BROWSER),
    ToolSpec("BrowserClick", W, "Click on the page", _BROWSER),
    ToolSpec("BrowserType", W, "Type on the page", _BROWSER),
    # W, not X: the script runs in the page, where no shell rule could judge it.
    ToolSpec("BrowserEvaluate", W, "Run a script in the page", _BROWSER),
)

TOOLS: Final[Mapping[str, ToolSpec]] = {spec.name: spec for spec in _SPECS}


def get_all_tool_names(servers: Iterable[str] = ()) -> list[str]:
    """The names that can be offered, in the table's order.

    Args:
        servers: our in-process servers that are registered; their tools are added
            under the names that the model sees.
    """
    running = {None, *servers}
    return [
        spec.full_name for spec in _SPECS if spec.offered and spec.server in running
    ]


def canonical_name(tool_name: str) -> str:
    """The table's name of a tool: `mcp__openswarm__fetch` is `fetch`."""
    server, _, name = tool_name.removeprefix("mcp__").partition("__")
    ours = tool_name.startswith("mcp__") and is_reserved_server_name(server)
    spec = TOOLS.get(name) if ours else None
    return name if spec and spec.server else tool_name


def is_reserved_server_name(server_name: str) -> bool:
    """Whether a name belongs to our own servers, so that nobody else may take it."""
    return f"{server_name}-".startswith(OWN_SERVER_PREFIX)


def find_tool(tool_name: str) -> ToolSpec | None:
    """The table's row for a name as the model sends it, if there is one."""
    spec = TOOLS.get(canonical_name(tool_name))
    if spec is None or (spec.server and not tool_name.startswith("mcp__")):
        return None
    return spec


def classify_mcp_tool(annotations: Mapping[str, Any] | None) -> ToolClass:
    """The class of a tool on a server that a person configured.

    `readOnlyHint` makes it N, not R: even a read sends its arguments to somebody
    else's program and brings foreign text back, so it leaves the workspace. Anything
    else is W. The other hints only soften, and they are the server's own claims.
    """
    read_only = (annotations or {}).get("readOnlyHint") is True
    return ToolClass.NETWORK if read_only else ToolClass.WRITE


def classify_tool(tool_name: str, extra: Mapping[str, ToolClass]) -> ToolClass:
    """The class of a tool; `extra` names MCP tools, never the CLI's built-in ones."""
    if tool_name.startswith("mcp__") and tool_name in extra:
        return ToolClass(extra[tool_name])
    spec = find_tool(tool_name)
    return spec.tool_class if spec else ToolClass.UNKNOWN


def get_effective_policy(
    tool_name: str, tool_policies: Mapping[str, ToolPolicy]
) -> ToolPolicy | None:
    """The standing wish for a tool, by its own or the table's name, if there is one."""
    name = canonical_name(tool_name)
    policy = tool_policies.get(tool_name) or tool_policies.get(name)
    return ToolPolicy(policy) if policy else None

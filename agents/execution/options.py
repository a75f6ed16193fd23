"""The options of one CLI process, from the session's settings.

Nothing here approves anything: `allowed_tools` stays empty, every tool stands under
`permissions.ask`, and the hooks decide.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
from claude_agent_sdk.types import (
    EffortLevel,
    HookCallback,
    McpServerConfig,
    SdkPluginConfig,
    SessionStore,
    SystemPromptPreset,
    ThinkingConfigDisabled,
)

from agents.conf import conf
from agents.domain.capability import Capability
from agents.domain.mcp_offers import OfferedServer
from agents.mcp.builder import CallTool, build_mcp_servers
from agents.mcp.tools.invoke_agent import SERVER_NAME as INVOKE_AGENT
from agents.mcp.tools.invoke_agent import invoke_agent_server
from agents.mcp.tools.own import SERVER_NAME as OWN
from agents.mcp.tools.own import own_server
from agents.models import AgentSession
from agents.workspaces.worktrees import NO_MOUNTS, JailMounts

from .approval import Gate
from .hooks import create_sdk_hooks
from .smart_prompts import prompt_hook
from .tool_router import tools_for
from .transcript_store import DjangoTranscriptStore
from .web_pages import fetch_page

HOOK_GRACE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ClientSetup:
    """Everything a CLI process is started with; a change of it needs a new one."""

    session_id: UUID
    sdk_session_id: UUID
    cwd: Path
    model: str
    effort: str | None
    """None: the model may not know of effort, and none is sent."""
    thinks: bool
    system_prompt: str | None
    tools: tuple[str, ...]
    max_steps: int
    network: bool
    provider_id: UUID | None
    timezone: str
    folder_inode: int = 0
    """The jail shows the folder that was there when it was built, not its path."""
    mounts: JailMounts = NO_MOUNTS
    servers: tuple[OfferedServer, ...] = ()
    """The MCP servers that people connected, with the tools that are offered."""
    plugin: Path | None = None
    """The folder with the owner's skills; its path says what is in it."""
    plans_first: bool = False
    """Whether the CLI begins in its plan mode, and leaves it by an approved plan."""
    is_verbatim: bool = True
    """False only for a process that is given nothing but a command of our own."""


@dataclass(frozen=True, slots=True)
class Start:
    """How the conversation begins: anew, from its end, or from an entry of it."""

    is_resumed: bool
    resume_at: UUID | None = None


def compute_tool_permissions(
    session: AgentSession, capability: Capability
) -> tuple[str, ...]:
    """The tools that this session offers to such a model, in a stable order.

    Those of servers are named `mcp__…`. What is not in the list does not exist for
    the model, and the gate denies it all the same.
    """
    return tools_for(capability, session)


def build_agent_options(
    setup: ClientSetup,
    start: Start,
    *,
    gate: Gate,
    call_tool: CallTool,
    launcher: Path,
    environment: dict[str, str],
    jailed: bool,
    system_prompt_file: Path | None,
    on_stderr: Callable[[str], None],
) -> ClaudeAgentOptions:
    can_use_tool, pre_tool_hook, post_tool_hook = create_sdk_hooks(gate)
    return ClaudeAgentOptions(
        cwd=setup.cwd,
        cli_path=launcher,
        env=environment,
        model=setup.model,
        effort=cast(EffortLevel | None, setup.effort),
        thinking=None if setup.thinks else ThinkingConfigDisabled(type="disabled"),
        # Without `snapshot: False` a resumed one would keep its recorded prompt.
        system_prompt=SystemPromptPreset(
            type="preset", preset="claude_code", snapshot=False
        ),
        tools=[name for name in setup.tools if not _is_of_server(name)],
        mcp_servers=_servers(setup, call_tool),
        allowed_tools=[],
        permission_mode="plan" if setup.plans_first else "default",
        can_use_tool=can_use_tool,
        hooks={
            "UserPromptSubmit": [_matcher(prompt_hook(gate))],
            "PreToolUse": [_matcher(pre_tool_hook, waits=True)],
            "PostToolUse": [_matcher(post_tool_hook)],
            "PostToolUseFailure": [_matcher(post_tool_hook)],
        },
        max_turns=setup.max_steps,
        setting_sources=[],
        strict_mcp_config=True,
        plugins=_plugins(setup),
        settings=_settings(setup.tools),
        verbatim_prompts=setup.is_verbatim,
        include_partial_messages=True,
        forward_subagent_text=True,
        max_buffer_size=conf().max_buffer_bytes,
        stderr=on_stderr,
        extra_args=_extra_arguments(system_prompt_file, jailed=jailed),
        session_store=cast(SessionStore, DjangoTranscriptStore()),
        session_store_flush="eager",
        **_conversation(setup, start),
    )


def _is_of_server(tool_name: str) -> bool:
    return tool_name.startswith("mcp__")


def _servers(setup: ClientSetup, call_tool: CallTool) -> dict[str, McpServerConfig]:
    """Each server only where one of its tools is offered, our own ones as well."""
    servers: dict[str, McpServerConfig] = {
        **build_mcp_servers(setup.servers, call_tool)
    }
    if any(INVOKE_AGENT in name for name in setup.tools):
        servers[INVOKE_AGENT] = invoke_agent_server(setup.session_id)
    own = {name for name in setup.tools if name.startswith(f"mcp__{OWN}__")}
    if own:
        servers[OWN] = own_server(setup.session_id, own, fetch_page)
    return servers


def _plugins(setup: ClientSetup) -> list[SdkPluginConfig]:
    if setup.plugin is None:
        return []
    return [SdkPluginConfig(type="local", path=str(setup.plugin))]


def _conversation(setup: ClientSetup, start: Start) -> dict[str, Any]:
    sdk_session_id = str(setup.sdk_session_id)
    if not start.is_resumed:
        return {"session_id": sdk_session_id}
    if start.resume_at is None:
        return {"resume": sdk_session_id}
    return {"resume": sdk_session_id, "resume_session_at": str(start.resume_at)}


def _extra_arguments(
    system_prompt_file: Path | None, *, jailed: bool
) -> dict[str, str | None]:
    """Flags of the CLI that the SDK has no option for."""
    arguments: dict[str, str | None] = {}
    if system_prompt_file is not None:
        arguments["append-system-prompt-file"] = str(system_prompt_file)
    if not jailed:
        # The jail confines the file tools by what it mounts; without it the CLI must.
        arguments["restricted"] = None
    return arguments


def _settings(tools: tuple[str, ...]) -> str:
    """Asking for every tool closes the CLI's built-in auto-approvals."""
    return json.dumps(
        {
            "permissions": {"ask": list(tools)},
            "crossSessionInbound": "refuse",
            # A skill's text may hold commands that would run past the gate.
            "disableSkillShellExecution": True,
            # The one that the CLI brings and no switch of the environment takes away.
            "skillOverrides": {"plugin-authoring": "off"},
            "skipWebFetchPreflight": True,
        }
    )


def _matcher(hook: Any, *, waits: bool = False) -> HookMatcher:
    """One matcher an event, since several run at once; a failing gate blocks."""
    if not waits:
        return HookMatcher(hooks=[cast(HookCallback, hook)], timeout=HOOK_GRACE_SECONDS)
    return HookMatcher(
        hooks=[cast(HookCallback, hook)],
        on_failure="block",
        timeout=conf().approval_hot_seconds + HOOK_GRACE_SECONDS,
    )

"""What is stored: fields, constraints and QuerySets; no behaviour across rows.

One noun per file. Everything a person can reach has a QuerySet with `visible_to`.
"""

from __future__ import annotations

from .analytics import AnalyticsEvent
from .approvals import ApprovalRequest
from .audit import AuditEntry
from .branches import MessageBranch
from .budgets import Budget
from .capability import ModelCapability
from .events import SessionEvent
from .folders import ListedFolder
from .groups import ToolGroupMeta
from .invites import Invite
from .mcp_servers import McpServer, McpTool
from .memory import Memory
from .messages import Message
from .modes import Mode
from .providers import Provider
from .requests import ModelRequest
from .rules import PermissionRule
from .runs import Run
from .sessions import AgentSession
from .shares import Share
from .skills import Skill, SkillFile
from .snapshots import Snapshot
from .tasks import Task, Ticket
from .templates import PromptTemplate
from .tokens import ApiToken
from .transcripts import TranscriptEntry
from .usage import CostEntry
from .users import Preferences, User

__all__ = [
    "AgentSession",
    "AnalyticsEvent",
    "ApiToken",
    "ApprovalRequest",
    "AuditEntry",
    "Budget",
    "CostEntry",
    "Invite",
    "ListedFolder",
    "McpServer",
    "McpTool",
    "Memory",
    "Message",
    "MessageBranch",
    "Mode",
    "ModelCapability",
    "ModelRequest",
    "PermissionRule",
    "Preferences",
    "PromptTemplate",
    "Provider",
    "Run",
    "SessionEvent",
    "Share",
    "Skill",
    "SkillFile",
    "Snapshot",
    "Task",
    "Ticket",
    "ToolGroupMeta",
    "TranscriptEntry",
    "User",
]

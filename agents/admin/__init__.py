"""Django's admin: a place to inspect what happened; almost everything is read-only.

Who looks at other people's words leaves an audit entry. Writable are accounts, through
the same domain functions as the pages, the folders opened to agents, and what is known
of models.
"""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group

from . import (  # noqa: F401  each module registers its models
    approvals,
    audit,
    budgets,
    capability,
    events,
    folders,
    mcp_servers,
    memory,
    messages,
    providers,
    rules,
    runs,
    sessions,
    tasks,
    tokens,
    transcripts,
    usage,
    users,
)

admin.site.unregister(Group)  # roles take the place of groups

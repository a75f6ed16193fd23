"""The pages' URLs; each name is `noun_verb`."""

from __future__ import annotations

from django.urls import path

from .views import (
    accounts,
    approvals,
    attachments,
    branches,
    budgets,
    changes,
    context,
    favicon,
    folders,
    history,
    mcp_servers,
    messages,
    people,
    preferences,
    providers,
    rules,
    sessions,
    skills,
    styleguide,
    templates,
    tokens,
    worktrees,
)

urlpatterns = [
    path("", sessions.session_list, name="session_list"),
    path("history/", history.history, name="history"),
    path("history/import/", history.session_import, name="session_import"),
    path(
        "sessions/<uuid:session_id>/export/",
        history.session_export,
        name="session_export",
    ),
    path("sessions/new/", sessions.session_new, name="session_new"),
    path("sessions/<uuid:session_id>/", sessions.session_detail, name="session_detail"),
    path(
        "sessions/<uuid:session_id>/older/",
        sessions.session_older,
        name="session_older",
    ),
    path("settings/budgets/", budgets.budget_list, name="budget_list"),
    path("settings/budgets/site/", budgets.site_budget, name="site_budget"),
    path(
        "sessions/<uuid:session_id>/stop/", sessions.session_stop, name="session_stop"
    ),
    path(
        "sessions/<uuid:session_id>/retry/",
        sessions.session_retry,
        name="session_retry",
    ),
    path(
        "sessions/<uuid:session_id>/continue/",
        sessions.session_continue,
        name="session_continue",
    ),
    path(
        "sessions/<uuid:session_id>/context/",
        context.session_context,
        name="session_context",
    ),
    path(
        "sessions/<uuid:session_id>/paths/",
        attachments.session_paths,
        name="session_paths",
    ),
    path(
        "sessions/<uuid:session_id>/compact/",
        context.session_compact,
        name="session_compact",
    ),
    path(
        "sessions/<uuid:session_id>/clear/",
        context.session_clear,
        name="session_clear",
    ),
    path(
        "sessions/<uuid:session_id>/rename/",
        sessions.session_rename,
        name="session_rename",
    ),
    path(
        "sessions/<uuid:session_id>/settings/",
        sessions.session_settings,
        name="session_settings",
    ),
    path(
        "sessions/<uuid:session_id>/close/",
        sessions.session_close,
        name="session_close",
    ),
    path(
        "sessions/<uuid:session_id>/resume/",
        sessions.session_resume,
        name="session_resume",
    ),
    path("sessions/<uuid:session_id>/pin/", sessions.session_pin, name="session_pin"),
    path(
        "sessions/<uuid:session_id>/delete/",
        sessions.session_delete,
        name="session_delete",
    ),
    path(
        "sessions/<uuid:session_id>/messages/",
        messages.message_send,
        name="message_send",
    ),
    path("messages/<uuid:message_id>/", messages.message_show, name="message_show"),
    path(
        "messages/<uuid:message_id>/image/",
        attachments.message_image,
        name="message_image",
    ),
    path(
        "sessions/<uuid:session_id>/queue/",
        messages.queue_resume,
        name="queue_resume",
    ),
    path(
        "messages/<uuid:message_id>/requeue/",
        messages.message_requeue,
        name="message_requeue",
    ),
    path(
        "messages/<uuid:message_id>/move/",
        messages.message_move,
        name="message_move",
    ),
    path(
        "messages/<uuid:message_id>/edit/",
        branches.message_edit,
        name="message_edit",
    ),
    path(
        "messages/<uuid:message_id>/regenerate/",
        branches.message_regenerate,
        name="message_regenerate",
    ),
    path(
        "messages/<uuid:message_id>/duplicate/",
        branches.message_duplicate,
        name="message_duplicate",
    ),
    path(
        "sessions/<uuid:session_id>/duplicate/",
        branches.session_duplicate,
        name="session_duplicate",
    ),
    path(
        "branches/<uuid:branch_id>/switch/",
        branches.branch_switch,
        name="branch_switch",
    ),
    path(
        "branches/<uuid:branch_id>/compare/",
        branches.branch_compare,
        name="branch_compare",
    ),
    path("runs/<uuid:run_id>/changes/", changes.run_changes, name="run_changes"),
    path(
        "sessions/<uuid:session_id>/changes/",
        changes.session_changes,
        name="session_changes",
    ),
    path(
        "sessions/<uuid:session_id>/worktree/",
        worktrees.session_worktree,
        name="session_worktree",
    ),
    path(
        "sessions/<uuid:session_id>/worktree/discard/",
        worktrees.worktree_discard,
        name="worktree_discard",
    ),
    path("approvals/", approvals.approval_list, name="approval_list"),
    path(
        "approvals/<uuid:approval_id>/decide/",
        approvals.approval_decide,
        name="approval_decide",
    ),
    path(
        "approvals/<uuid:approval_id>/answer/",
        approvals.question_answer,
        name="question_answer",
    ),
    path(
        "approvals/<uuid:approval_id>/rule/", rules.approval_rule, name="approval_rule"
    ),
    path("login/", accounts.login, name="login"),
    path("logout/", accounts.logout, name="logout"),
    path("setup/<str:token>/", accounts.setup, name="setup"),
    path("invite/<str:token>/", accounts.invite_accept, name="invite_accept"),
    path("settings/password/", accounts.password_change, name="password_change"),
    path("settings/preferences/", preferences.preferences_edit, name="preferences"),
    path("settings/theme/", preferences.theme_set, name="theme_set"),
    path("settings/people/", people.people_list, name="people_list"),
    path("settings/people/invite/", people.invite_create, name="invite_create"),
    path(
        "settings/people/invites/<uuid:invite_id>/revoke/",
        people.invite_revoke,
        name="invite_revoke",
    ),
    path("settings/people/<uuid:user_id>/", people.person_edit, name="person_edit"),
    path("settings/folders/", folders.folder_list, name="folder_list"),
    path(
        "settings/folders/<uuid:folder_id>/remove/",
        folders.folder_remove,
        name="folder_remove",
    ),
    path("settings/providers/", providers.provider_list, name="provider_list"),
    path("settings/providers/new/", providers.provider_new, name="provider_new"),
    path(
        "settings/providers/<uuid:provider_id>/",
        providers.provider_edit,
        name="provider_edit",
    ),
    path(
        "settings/providers/<uuid:provider_id>/delete/",
        providers.provider_delete,
        name="provider_delete",
    ),
    path(
        "settings/providers/<uuid:provider_id>/test/",
        providers.provider_test,
        name="provider_test",
    ),
    path("settings/mcp/", mcp_servers.mcp_server_list, name="mcp_server_list"),
    path("settings/mcp/new/", mcp_servers.mcp_server_new, name="mcp_server_new"),
    path(
        "settings/mcp/import/",
        mcp_servers.mcp_server_import,
        name="mcp_server_import",
    ),
    path(
        "settings/mcp/<uuid:server_id>/",
        mcp_servers.mcp_server_detail,
        name="mcp_server_detail",
    ),
    path(
        "settings/mcp/<uuid:server_id>/edit/",
        mcp_servers.mcp_server_edit,
        name="mcp_server_edit",
    ),
    path(
        "settings/mcp/<uuid:server_id>/policies/",
        mcp_servers.mcp_server_policies,
        name="mcp_server_policies",
    ),
    path(
        "settings/mcp/<uuid:server_id>/test/",
        mcp_servers.mcp_server_test,
        name="mcp_server_test",
    ),
    path(
        "settings/mcp/<uuid:server_id>/delete/",
        mcp_servers.mcp_server_delete,
        name="mcp_server_delete",
    ),
    path("settings/rules/", rules.rule_list, name="rule_list"),
    path("settings/rules/new/", rules.rule_new, name="rule_new"),
    path("settings/rules/explain/", rules.rule_explain, name="rule_explain"),
    path(
        "settings/rules/<uuid:rule_id>/revoke/", rules.rule_revoke, name="rule_revoke"
    ),
    path("settings/tokens/", tokens.token_list, name="token_list"),
    path(
        "settings/tokens/<uuid:token_id>/revoke/",
        tokens.token_revoke,
        name="token_revoke",
    ),
    path("settings/skills/", skills.skill_list, name="skill_list"),
    path("settings/skills/new/", skills.skill_new, name="skill_new"),
    path("settings/skills/<uuid:skill_id>/", skills.skill_edit, name="skill_edit"),
    path(
        "settings/skills/<uuid:skill_id>/delete/",
        skills.skill_delete,
        name="skill_delete",
    ),
    path(
        "settings/skills/<uuid:skill_id>/export/",
        skills.skill_export,
        name="skill_export",
    ),
    path("settings/templates/", templates.template_list, name="template_list"),
    path("settings/templates/new/", templates.template_new, name="template_new"),
    path(
        "settings/templates/<uuid:template_id>/",
        templates.template_edit,
        name="template_edit",
    ),
    path(
        "settings/templates/<uuid:template_id>/delete/",
        templates.template_delete,
        name="template_delete",
    ),
    path(
        "settings/templates/<uuid:template_id>/use/",
        templates.template_use,
        name="template_use",
    ),
    path("favicon.ico", favicon.favicon, name="favicon"),
    path("styleguide/", styleguide.styleguide, name="styleguide"),
]

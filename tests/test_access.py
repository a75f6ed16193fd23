"""A stranger gets 404 on every URL, and a close on every socket, of what isn't theirs.

Generated over the URL resolver and the socket routes. A new route fails here until
`TARGETS` says whose object it names, or one of the exemptions says why it names none.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser
from django.urls import URLPattern, reverse

from agents.conf import workspaces_dir
from agents.domain import (
    accounts,
    blocks,
    mcp_servers,
    memory,
    messages,
    providers,
    sessions,
    tasks,
    tokens,
    workspaces,
)
from agents.domain.approvals import open_approval
from agents.domain.subagents import start_sub_agent
from agents.live.routing import websocket_urlpatterns
from agents.models import (
    AgentSession,
    ApiToken,
    ApprovalRequest,
    Invite,
    ListedFolder,
    McpServer,
    Message,
    MessageBranch,
    Mode,
    PermissionRule,
    PromptTemplate,
    Provider,
    Run,
    Skill,
    Ticket,
    User,
)
from agents.models.messages import MessageRole
from agents.models.providers import ProviderKind
from agents.models.users import Role
from agents.web.urls import urlpatterns

from .people import browser, person

SECRET = "the secret plan of alice"


@dataclass
class Estate:
    """What belongs to alice."""

    owner: User
    session: AgentSession
    message: Message
    queued: Message
    answer: Message
    other_branch: MessageBranch
    approval: ApprovalRequest
    question: ApprovalRequest
    provider: Provider
    mcp_server: McpServer
    invite: Invite
    folder: ListedFolder


# Which object of alice's the route names, and what its form sends.
TARGETS: dict[str, Callable[[Estate], UUID]] = {
    "session_detail": lambda estate: estate.session.pk,
    "session_older": lambda estate: estate.session.pk,
    "session_stop": lambda estate: estate.session.pk,
    "session_retry": lambda estate: estate.session.pk,
    "session_continue": lambda estate: estate.session.pk,
    "session_rename": lambda estate: estate.session.pk,
    "session_settings": lambda estate: estate.session.pk,
    "session_close": lambda estate: estate.session.pk,
    "session_compact": lambda estate: estate.session.pk,
    "session_clear": lambda estate: estate.session.pk,
    "session_resume": lambda estate: estate.session.pk,
    "session_pin": lambda estate: estate.session.pk,
    "session_delete": lambda estate: estate.session.pk,
    "session_changes": lambda estate: estate.session.pk,
    "session_duplicate": lambda estate: estate.session.pk,
    "session_worktree": lambda estate: make_worktree(estate.owner).pk,
    "worktree_discard": lambda estate: make_worktree(estate.owner).pk,
    "session_export": lambda estate: estate.session.pk,
    "message_send": lambda estate: estate.session.pk,
    "message_show": lambda estate: estate.message.pk,
    "message_move": lambda estate: estate.queued.pk,
    "message_requeue": lambda estate: estate.queued.pk,
    "message_edit": lambda estate: estate.message.pk,
    "run_changes": lambda estate: estate.message.runs.get().pk,
    "message_duplicate": lambda estate: estate.answer.pk,
    "message_regenerate": lambda estate: estate.answer.pk,
    "branch_switch": lambda estate: estate.other_branch.pk,
    "branch_compare": lambda estate: estate.other_branch.pk,
    "queue_resume": lambda estate: estate.session.pk,
    "session_context": lambda estate: estate.session.pk,
    "session_paths": lambda estate: estate.session.pk,
    "message_image": lambda estate: add_picture(estate.message).pk,
    "mode_edit": lambda estate: make_mode(estate).pk,
    "mode_delete": lambda estate: make_mode(estate).pk,
    "skill_edit": lambda estate: make_skill(estate).pk,
    "skill_delete": lambda estate: make_skill(estate).pk,
    "skill_export": lambda estate: make_skill(estate).pk,
    "template_edit": lambda estate: make_template(estate).pk,
    "template_delete": lambda estate: make_template(estate).pk,
    "template_use": lambda estate: make_template(estate).pk,
    "approval_decide": lambda estate: estate.approval.pk,
    "question_answer": lambda estate: estate.question.pk,
    "approval_rule": lambda estate: estate.approval.pk,
    "rule_revoke": lambda estate: make_rule(estate).pk,
    "mcp_server_detail": lambda estate: estate.mcp_server.pk,
    "mcp_server_edit": lambda estate: estate.mcp_server.pk,
    "mcp_server_policies": lambda estate: estate.mcp_server.pk,
    "mcp_server_test": lambda estate: estate.mcp_server.pk,
    "mcp_server_delete": lambda estate: estate.mcp_server.pk,
    "provider_edit": lambda estate: estate.provider.pk,
    "provider_delete": lambda estate: estate.provider.pk,
    "provider_test": lambda estate: estate.provider.pk,
    "invite_revoke": lambda estate: estate.invite.pk,
    "person_edit": lambda estate: estate.owner.pk,
    "folder_remove": lambda estate: estate.folder.pk,
    "token_revoke": lambda estate: make_token(estate).pk,
    "memory_edit": lambda estate: memory.save_memory(estate.owner, SECRET).pk,
    "memory_delete": lambda estate: memory.save_memory(estate.owner, SECRET).pk,
    "task_detail": lambda estate: tasks.create_task(estate.owner, title=SECRET).pk,
    "task_edit": lambda estate: tasks.create_task(estate.owner, title=SECRET).pk,
    "task_move": lambda estate: tasks.create_task(estate.owner, title=SECRET).pk,
    "task_delete": lambda estate: tasks.create_task(estate.owner, title=SECRET).pk,
    "ticket_edit": lambda estate: make_ticket(estate).pk,
    "ticket_delete": lambda estate: make_ticket(estate).pk,
}
# Without an object in the address, and only for owners.
FOR_OWNERS = {
    "people_list",
    "invite_create",
    "folder_list",
    "site_budget",
    "styleguide",
}
# Without an object in the address: each person finds their own things there.
OWN_PAGES = {
    "session_list",
    "session_import",
    "history",
    "session_new",
    "approval_list",
    "budget_list",
    "mcp_server_list",
    "mcp_server_new",
    "mcp_server_import",
    "memory_list",
    "provider_list",
    "provider_new",
    "rule_list",
    "rule_new",
    "rule_explain",
    "token_list",
    "mode_list",
    "mode_new",
    "skill_list",
    "skill_new",
    "template_list",
    "template_new",
    "task_list",
    "task_new",
    "ticket_list",
    "preferences",
    "theme_set",
    "password_change",
    "logout",
}
# For people without an account; a wrong token is tested in web/test_accounts.py.
PUBLIC = {"login": [], "setup": ["wrong"], "invite_accept": ["wrong"]}
# For everybody, and about nobody.
ICONS = {"favicon"}
SOCKETS: dict[str, Callable[[Estate], UUID]] = {
    "ws_session": lambda estate: estate.session.pk
}
OWN_SOCKETS = {"ws_home"}

DATA: dict[str, dict[str, str] | Callable[[Estate], dict[str, str]]] = {
    "branch_compare": lambda estate: {"with": str(estate.session.active_branch_id)},
    "session_older": {"before": "99"},
    "session_rename": {"name": "New name"},
    "session_settings": {"security_mode": "deny"},
    "session_pin": {"pinned": "true"},
    "message_image": {"n": "0"},
    "message_send": {"text": "Go on", "client_message_id": str(uuid4())},
    "message_move": {"action": "down"},
    "task_move": {"status": "done"},
    "message_requeue": {"text": "Rather this"},
    "message_edit": {"text": "Something else"},
    "approval_decide": {"decision": "deny"},
    "theme_set": {"theme": "dark"},
}


def form_of(name: str, estate: Estate) -> dict[str, str] | None:
    data = DATA.get(name)
    return data(estate) if callable(data) else data


ROUTES: list[URLPattern] = list(urlpatterns)
NAMES = [str(route.name) for route in ROUTES]


@pytest.fixture
def alice(db):
    return person("alice", Role.OWNER)


@pytest.fixture
def charlie(db):
    return person("charlie")


@pytest.fixture
def estate(alice):
    return make_estate(alice)


def make_estate(alice: User) -> Estate:
    session = sessions.launch_agent(alice, sessions.LaunchConfig(task=SECRET))
    run = Run.objects.get(session=session)
    queued = messages.send_message(session, author=alice, text="And then?")
    accounts.create_invite(alice, role=Role.MEMBER)
    return Estate(
        owner=alice,
        session=session,
        message=run.trigger_message,
        queued=queued,
        answer=blocks.add_message(
            session.pk,
            branch_id=run.branch_id,
            role=MessageRole.ASSISTANT,
            text="It is done.",
            run=run,
        ),
        other_branch=MessageBranch.objects.create(
            session=session,
            parent_branch=run.branch,
            fork_point_message=run.trigger_message,
        ),
        approval=open_approval(
            run, tool_use_id="toolu_1", tool_name="Bash", tool_input={"command": "ls"}
        ),
        question=open_approval(
            run, tool_use_id="toolu_2", tool_name="AskUserQuestion", tool_input={}
        ),
        provider=providers.save_provider(
            Provider(
                owner=alice,
                name="Alice’s own",
                kind=ProviderKind.GATEWAY,
                base_url="http://127.0.0.1:9",
            ),
            alice,
        ),
        mcp_server=mcp_servers.save_server(
            McpServer(
                owner=alice, name="Alice’s own", transport="http", url="http://[::1]:9"
            ),
            alice,
            secrets={},
        ),
        invite=Invite.objects.get(),
        folder=ListedFolder.objects.create(name="Alice’s project", path="/srv/alice"),
    )


def make_ticket(estate: Estate) -> Ticket:
    return Ticket.objects.create(owner=estate.owner, key="A-1", title=SECRET)


def make_rule(estate: Estate) -> PermissionRule:
    return PermissionRule.objects.create(
        owner=estate.owner,
        scope="session",
        session=estate.session,
        tool="Bash",
        matcher="ls:*",
        effect="allow",
    )


def make_token(estate: Estate) -> ApiToken:
    tokens.create_token(estate.owner, name="Script", scopes=["read"], days=1)
    return ApiToken.objects.latest("created_at")


def add_picture(message: Message) -> Message:
    message.attachments = {"images": [{"media_type": "image/png", "data": "AAAA"}]}
    message.save(update_fields=["attachments"])
    return message


def make_mode(estate: Estate) -> Mode:
    return Mode.objects.create(
        owner=estate.owner, slug="mine", name=SECRET, system_prompt=SECRET
    )


def make_skill(estate: Estate) -> Skill:
    return Skill.objects.create(
        owner=estate.owner, name="plan", description=SECRET, content=SECRET
    )


def make_template(estate: Estate) -> PromptTemplate:
    return PromptTemplate.objects.create(
        owner=estate.owner, name=SECRET, text=f"{SECRET} {{{{place}}}}"
    )


def make_worktree(alice: User) -> AgentSession:
    """A session in a worktree that was made."""
    path = workspaces_dir() / uuid4().hex
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    first = ["commit", "-q", "--allow-empty", "-m", "first"]
    subprocess.run(["git", "init", "-q", path], check=True)
    subprocess.run(["git", "-C", path, *identity, *first], check=True)
    folder = ListedFolder.objects.create(name="Project", path=str(path))
    session = sessions.launch_agent(
        alice, sessions.LaunchConfig(task="Work", folder=folder, worktree=True)
    )
    workspaces.ensure_folder(session)
    return session


def test_every_route_is_covered_or_says_why_not():
    known = [*TARGETS, *FOR_OWNERS, *OWN_PAGES, *PUBLIC, *ICONS]

    assert sorted(NAMES) == sorted(known)


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_stranger_finds_nothing_of_somebody_elses(
    name, method, estate, charlie, request
):
    url = reverse(name, args=[TARGETS[name](estate)])
    data = form_of(name, estate)

    foreign = getattr(browser(charlie), method)(url, data)
    nobody = getattr(browser(), method)(url, data)
    own = getattr(browser(estate.owner), method)(url, data)

    assert own.status_code != 404, "the control: it is there for alice"
    assert own.status_code < 500
    if own.status_code == 405:
        assert foreign.status_code in (404, 405)
    else:
        assert foreign.status_code == 404
    assert SECRET not in foreign.text
    assert nobody.status_code in (302, 404, 405)
    if nobody.status_code == 302:
        assert nobody["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("name", sorted(n for n in TARGETS if n.startswith("session_")))
def test_a_stranger_finds_no_sub_agent_either(name, method, estate, charlie):
    url = reverse(name, args=[sub_agent_of(estate).pk])
    data = form_of(name, estate)

    foreign = getattr(browser(charlie), method)(url, data)
    own = getattr(browser(estate.owner), method)(url, data)

    # Nothing is done to a sub-agent itself, and its owner is told so.
    has_none = name in ("session_changes", "session_worktree")
    assert own.status_code in ((404, 405) if has_none else (200, 405, 409))
    assert foreign.status_code == 404 or foreign.status_code == own.status_code == 405
    assert SECRET not in foreign.text


def sub_agent_of(estate: Estate) -> AgentSession:
    run = Run.objects.filter(session=estate.session).earliest("created_at")
    call = {"tool_use_id": "toolu_agent", "tool_name": "Agent"}
    blocks.record_tool_call(run, **call, tool_input={"prompt": SECRET})
    return start_sub_agent(run, tool_use_id="toolu_agent", agent_id="agent-1")


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_each_route_answers_alice_in_some_way(name, estate):
    url = reverse(name, args=[TARGETS[name](estate)])

    answers = {
        method: getattr(browser(estate.owner), method)(
            url, form_of(name, estate)
        ).status_code
        for method in ("get", "post")
    }

    assert set(answers.values()) != {405}


@pytest.mark.parametrize("name", sorted(FOR_OWNERS))
def test_only_owners_find_the_owners_pages(name, estate, charlie):
    url = reverse(name)
    method = "post" if name in ("invite_create", "site_budget") else "get"

    foreign = getattr(browser(charlie), method)(url, {"role": "owner"})
    own = getattr(browser(estate.owner), method)(url, {"role": "member"})

    assert foreign.status_code == 404
    assert own.status_code == (302 if name == "site_budget" else 200)


@pytest.mark.parametrize("name", sorted(OWN_PAGES))
def test_pages_for_everybody_show_nothing_of_others(name, estate, charlie):
    theirs = browser(charlie).get(reverse(name))
    nobody = browser().get(reverse(name))
    own = browser(estate.owner).get(reverse(name))

    assert theirs.status_code in (200, 405)
    assert SECRET not in theirs.text
    assert estate.provider.name not in theirs.text
    assert own.status_code == theirs.status_code
    assert nobody.status_code in (302, 405)


def test_the_secret_stands_where_its_owner_looks(estate):
    """The control of the test above: the same pages do show it to alice."""
    client = browser(estate.owner)

    assert SECRET in client.get(reverse("session_list")).text
    assert SECRET in client.get(reverse("history")).text
    assert estate.provider.name in client.get(reverse("provider_list")).text


@pytest.mark.parametrize(("name", "args"), sorted(PUBLIC.items()))
def test_public_pages_answer_nobody_without_a_redirect(name, args, estate):
    response = browser().get(reverse(name, args=args))

    assert response.status_code == (404 if args else 200)
    assert SECRET not in response.text


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_view_names_its_methods(name, estate):
    args = PUBLIC.get(name, [TARGETS[name](estate)] if name in TARGETS else [])

    response = browser(estate.owner).generic("PROPFIND", reverse(name, args=args))

    assert response.status_code == 405


@pytest.mark.parametrize("model", sorted(admin.site._registry, key=str))
def test_the_admin_is_not_there_for_members(model, estate, charlie):
    path = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    urls = [reverse(f"{path}_changelist"), reverse(f"{path}_add")]
    if found := model._default_manager.first():
        urls.append(reverse(f"{path}_change", args=[found.pk]))

    for url in urls:
        assert browser(charlie).get(url).status_code == 404
        assert browser(charlie).post(url).status_code == 404
        assert browser(estate.owner).get(url).status_code in (200, 403)
        assert browser().get(url).status_code == 302


def test_the_count(capsys):
    cases = 2 * len(TARGETS) + len(FOR_OWNERS) + len(OWN_PAGES) + len(PUBLIC)
    with capsys.disabled():
        print(  # noqa: T201  the count is what the gate's log should show
            f"\n  access: {len(NAMES)} routes, {cases} cases, "
            f"{len(admin.site._registry)} admin models, "
            f"{len(SOCKETS) + len(OWN_SOCKETS)} sockets"
        )

    assert cases > len(NAMES)


def test_every_socket_is_covered_or_says_why_not():
    named = [str(route.name) for route in websocket_urlpatterns if route.name]

    assert sorted(named) == sorted([*SOCKETS, *OWN_SOCKETS])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", sorted(SOCKETS))
async def test_a_strangers_socket_is_closed_without_a_word(name):
    from channels.db import database_sync_to_async

    alice = await database_sync_to_async(person)("alice", Role.OWNER)
    charlie = await database_sync_to_async(person)("charlie")
    estate = await database_sync_to_async(make_estate)(alice)
    sub_agent = await database_sync_to_async(sub_agent_of)(estate)

    for object_id in (SOCKETS[name](estate), sub_agent.pk):
        path = socket_path(name, object_id)
        assert await first_word(path, charlie) == "websocket.close"
        assert await first_word(path, AnonymousUser()) == "websocket.close"
        assert await first_word(path, alice) == "websocket.send", "the control"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", sorted(OWN_SOCKETS))
async def test_nobody_gets_a_socket_without_signing_in(name):
    from channels.db import database_sync_to_async

    alice = await database_sync_to_async(person)("alice", Role.OWNER)

    assert await first_word(socket_path(name), AnonymousUser()) == "websocket.close"
    assert await first_word(socket_path(name), alice) == "websocket.send", "the control"


def socket_path(name: str, object_id: UUID | None = None) -> str:
    route = next(route for route in websocket_urlpatterns if route.name == name)
    pattern = str(route.pattern)
    return "/" + pattern.replace("<uuid:session_id>", str(object_id))


async def first_word(path: str, user) -> str:
    """What the server says first on this socket after accepting it, if it does."""
    router = URLRouter(websocket_urlpatterns)  # type: ignore[arg-type]  # narrow stub
    communicator = WebsocketCommunicator(router, path)
    communicator.scope["user"] = user  # type: ignore[typeddict-unknown-key]  # narrow
    try:
        accepted, _ = await communicator.connect()
        if not accepted:
            return "websocket.close"
        output = await communicator.receive_output(timeout=5)
        if output["type"] == "websocket.close":
            assert output["code"] in range(4400, 4500), "44xx: don't come back"
        return str(output["type"])
    finally:
        await communicator.disconnect()

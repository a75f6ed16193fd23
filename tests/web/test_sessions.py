"""The list, "New agent", and the page of one session."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.domain import notices, sessions
from agents.models import AgentSession, ListedFolder, Provider, Run, Share, User
from agents.models.providers import ProviderKind
from agents.models.sessions import ShareRight
from agents.models.users import Role
from tests import factories
from tests.dom import Node, parse

HTMX = {"HX-Request": "true"}
SignIn = Callable[[User], Client]

pytestmark = pytest.mark.django_db


def page_of(response: Any) -> Node:
    return parse(response.content.decode())


def address(session: AgentSession, action: str = "") -> str:
    return f"/sessions/{session.pk}/{action}"


def count_queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


# The list


def test_the_list_groups_sessions_by_what_they_do(alice: User, sign_in: SignIn) -> None:
    running = factories.make_session(alice, "Run now")
    done = factories.make_session(alice, "Done before")
    factories.end_turn(factories.start_turn(done))
    pinned = factories.make_session(alice, "Always here")
    factories.end_turn(factories.start_turn(pinned))
    sessions.update_session(pinned, alice, pinned=True)

    page = page_of(sign_in(alice).get("/"))

    groups = page.find("session-groups")
    for title, session in (("Running", running), ("Recent", done), ("Pinned", pinned)):
        [section] = groups.find_all("section", aria_label=title)
        [row] = section.find_all("li")
        assert row.id == f"session-{session.pk}-row"


def test_the_list_hides_other_peoples_sessions(
    session: AgentSession, charlie: User, sign_in: SignIn
) -> None:
    page = page_of(sign_in(charlie).get("/"))

    assert session.name not in page.text
    assert "No agents yet" in page.text


def test_the_list_takes_the_same_queries_for_one_and_for_three(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    client.get("/")
    one = count_queries(client, "/")
    for _ in range(2):
        other = factories.make_session(alice)
        factories.end_turn(factories.start_turn(other))

    assert count_queries(client, "/") == one


def test_the_list_has_pages(alice: User, sign_in: SignIn) -> None:
    for number in range(32):
        made = factories.make_session(alice, f"Task {number}")
        AgentSession.objects.filter(pk=made.pk).update(status="completed")

    first, second = (page_of(sign_in(alice).get(f"/?page={n}")) for n in (1, 2))

    assert len(first.find("session-groups").find_all("li")) == 30
    assert len(second.find("session-groups").find_all("li")) == 2


# New agent


def test_new_agent_asks_for_the_task_first(alice: User, sign_in: SignIn) -> None:
    page = page_of(sign_in(alice).get("/sessions/new/"))

    form = page.find("new-agent")
    task = form.find_all("textarea", name="task")[0]
    assert form.find_all("label", **{"for": task.id})[0].words == "Task"
    added, folded = form.find_all("details")
    assert "open" not in {*added.attributes, *folded.attributes}
    assert not any(node is task for node in [*added.walk(), *folded.walk()])
    assert page.find_all("button", data_fill="count to 30")


def test_start_agent_makes_the_session_and_sends_the_task(
    alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    form = page_of(client.get("/sessions/new/")).find("new-agent")
    fields = {
        node.attributes["name"]: node.attributes.get("value", "")
        for node in form.find_all("input")
    }
    chosen = {
        "mode": "agent",
        "effort": "low",
        "security_mode": "ask",
        "network": "none",
    }
    data = {**fields, **chosen, "task": "Count\0 bees", "budget_usd": "1.50"}

    response = client.post("/sessions/new/", data)

    made = AgentSession.objects.get(owner=alice)
    assert response.status_code == 302
    assert response["Location"] == address(made)
    assert made.max_budget_usd_micros == 1_500_000
    assert made.effort == "low"
    assert made.messages.get().text == "Count\ufffd bees"
    assert made.runs.get().state == "queued"


def test_an_empty_task_keeps_the_rest(alice: User, sign_in: SignIn) -> None:
    data = {"task": " ", "mode": "agent", "effort": "low", "security_mode": "ask"}
    data |= {"network": "none", "system_prompt": "Be brief."}

    response = sign_in(alice).post("/sessions/new/", data, headers=HTMX)

    form = page_of(response).find("new-agent")
    assert response.status_code == 422
    assert "Say what the agent should do." in form.words
    assert "Be brief." in form.find_all("textarea", name="system_prompt")[0].text
    assert not AgentSession.objects.exists()


def test_a_listed_repository_is_also_offered_as_a_worktree(
    alice: User, sign_in: SignIn, tmp_path: Path
) -> None:
    plain, repository = tmp_path / "plain", tmp_path / "repository"
    plain.mkdir()
    subprocess.run(["git", "init", "-q", repository], check=True)
    for folder in (plain, repository):
        ListedFolder.objects.create(name=folder.name, path=str(folder))
    client = sign_in(alice)

    page = page_of(client.get("/sessions/new/"))

    [select] = page.find_all("select", name="folder")
    offered = {
        option.words: option.attributes["value"] for option in select.find_all("option")
    }
    assert list(offered) == [
        "A fresh workspace",
        "plain",
        "repository",
        "repository, as a git worktree",
    ]
    form = {"task": "Go", "mode": "agent", "effort": "low", "security_mode": "ask"}
    made = {}
    for label, value in offered.items():
        client.post("/sessions/new/", {**form, "network": "none", "folder": value})
        session = AgentSession.objects.latest("created_at")
        made[label] = (session.cwd, session.worktree_of and session.worktree_of.name)
    assert made["plain"] == (str(plain), None)
    assert made["repository"] == (str(repository), None)
    assert made["A fresh workspace"][1] is None
    assert made["repository, as a git worktree"][1] == "repository"
    assert str(repository) not in made["repository, as a git worktree"][0]


def test_viewers_may_not_start_agents(db: None, sign_in: SignIn) -> None:
    viewer = factories.make_user("vera", role=Role.VIEWER)

    assert sign_in(viewer).get("/sessions/new/").status_code == 403
    page = page_of(sign_in(viewer).get("/"))
    assert page.find_all("a", href="/sessions/new/") == []


# The page of one session


def test_the_page_shows_what_was_said(run: Run, alice: User, sign_in: SignIn) -> None:
    factories.say(run, "It is **done**.")
    factories.call_tool(run)
    factories.return_result(run, elapsed_ms=1500)

    page = page_of(sign_in(alice).get(address(run.session)))

    [log] = page.find_all("div", role="log")
    assert log.attributes["aria-label"] == "Transcript"
    assert "Count to three" in log.words
    assert [node.text for node in log.find_all("strong")] == ["done"]
    assert "Bash" in log.words
    assert "1.5 s" in log.words
    [message] = page.find_all("label", **{"for": "composer-text"})
    assert message.words == "Message"
    [main] = page.find_all("main")
    assert main.attributes["ws-connect"] == f"/ws/session/{run.session_id}/"


def test_the_page_says_that_replies_are_scripted_until_there_is_a_provider(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    assert "Scripted replies" in page_of(client.get(address(session))).text

    Provider.objects.create(name="Real", kind=ProviderKind.ANTHROPIC, api_key="sk-x")

    assert "Scripted replies" not in page_of(client.get(address(session))).text


def test_unknown_prices_are_said(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    rows = AgentSession.objects.filter(pk=session.pk)
    client, facts = sign_in(alice), f"session-{session.pk}-facts"

    rows.update(cost_is_partial=True)
    assert "cost unknown" in page_of(client.get(address(session))).find(facts).words
    rows.update(cost_usd_micros=2_000_000)
    assert "at least $2.00" in page_of(client.get(address(session))).find(facts).words


def test_hostile_text_stays_text(run: Run, alice: User, sign_in: SignIn) -> None:
    evil = (
        '<script>alert(1)</script><img src=x onerror="alert(2)">'
        "[link](javascript:alert(3)) \u202ereversed \u200bzero"
    )
    factories.say(run, evil)
    factories.call_tool(run, tool_input={"command": evil})
    factories.return_result(run, text=evil + "\x1b]8;;http://evil\x07x\x1b[31mred")
    notices.add_notice(run, "error", evil)
    factories.ask_approval(
        run, "toolu_2", "Write", {"file_path": evil, "content": evil}
    )
    sessions.rename_session(run.session, evil[:190])

    page = page_of(sign_in(alice).get(address(run.session)))

    sources = [node.attributes.get("src", "") for node in page.find_all("script")]
    assert all(source.startswith("/static/") for source in sources)
    assert page.find_all("img") == []
    for node in page.walk():
        assert not any(name.startswith("on") for name in node.attributes)
        assert not node.attributes.get("href", "").startswith("javascript:")
    [log] = page.find_all("div", role="log")
    assert "\u202e" not in log.text
    assert "\x1b" not in log.text
    assert log.find_all("span", title="U+202E RIGHT-TO-LEFT OVERRIDE")


def test_a_huge_text_is_cut_with_a_way_to_see_all(
    run: Run, alice: User, sign_in: SignIn, override_conf: Callable[..., None]
) -> None:
    override_conf(message_preview_bytes=1000)
    message = factories.say(run, "word " * 1000 + "the end")
    factories.call_tool(run)
    factories.return_result(run, text="line\n" * 2000 + "the last line")
    client = sign_in(alice)

    page = page_of(client.get(address(run.session)))

    assert "the end" not in page.text
    assert "the last line" not in page.text
    links = [
        node.attributes["href"]
        for node in page.find_all("a")
        if node.words == "Show all"
    ]
    assert links[0] == f"/messages/{message.pk}/"
    whole = [page_of(client.get(link)).text for link in links]
    assert "the end" in whole[0]
    assert "the last line" in whole[1]
    part = page_of(client.get(links[0], headers=HTMX))
    assert "the end" in part.find(f"message-{message.pk}").text


def test_older_messages_come_in_pages(
    run: Run, alice: User, sign_in: SignIn, override_conf: Callable[..., None]
) -> None:
    override_conf(transcript_page_size=3)
    for number in range(7):
        factories.say(run, f"Line {number}.")
    client = sign_in(alice)

    newest = page_of(client.get(address(run.session)))
    [link] = newest.find_all("a", hx_trigger="revealed, click")
    older = page_of(client.get(link.attributes["hx-get"], headers=HTMX))
    plain = page_of(client.get(link.attributes["href"]))

    assert shown_lines(newest) == ["Line 4.", "Line 5.", "Line 6."]
    assert shown_lines(older) == ["Line 1.", "Line 2.", "Line 3."]
    assert shown_lines(plain) == shown_lines(older)
    [more] = older.find_all("a", hx_trigger="revealed, click")
    first = page_of(client.get(more.attributes["hx-get"], headers=HTMX))
    assert "Count to three" in first.text
    assert first.find_all("a", hx_trigger="revealed, click") == []


def shown_lines(page: Node) -> list[str]:
    return [node.words for node in page.find_all("p") if node.words.startswith("Line")]


@pytest.mark.parametrize("count", [3, 300])
def test_the_page_takes_the_same_queries_however_long_it_is(
    run: Run, alice: User, sign_in: SignIn, count: int
) -> None:
    client = sign_in(alice)
    factories.ask_approval(run, "toolu_0")
    for name in ("toolu_a", "toolu_b"):
        factories.call_tool(run, name)  # three in a row: a group
    client.get(address(run.session))
    one = count_queries(client, address(run.session))
    for number in range(1, count):
        factories.ask_approval(run, f"toolu_{number}") if number < 4 else None
        factories.call_tool(run, f"toolu_x{number}")
        factories.return_result(run, f"toolu_x{number}")

    assert count_queries(client, address(run.session)) == one


# Actions


def test_stop_works_without_and_with_htmx(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    client, session = sign_in(alice), run.session
    assert [
        button.words
        for button in page_of(client.get(address(session))).find_all("button")
        if button.words == "Stop"
    ]

    response = client.post(address(session, "stop/"))
    assert response.status_code == 302
    assert response["Location"] == address(session)
    run.refresh_from_db()
    assert run.stop_requested_at is not None

    response = client.post(address(session, "stop/"), headers=HTMX)
    assert response.status_code == 200
    assert "Stopping…" in page_of(response).find(f"session-{session.pk}-actions").words


def test_a_failed_turn_can_be_tried_again(
    run: Run, alice: User, sign_in: SignIn
) -> None:
    client, session = sign_in(alice), run.session
    notices.add_notice(run, "error", "The provider refused the key.")
    factories.end_turn(run, stop_reason="error", error_class="auth")
    page = page_of(client.get(address(session)))
    assert "The provider refused the key." in page.text
    assert page.find_all("form", action=address(session, "retry/"))
    assert not page.find_all("form", action=address(session, "continue/"))

    response = client.post(address(session, "retry/"))

    assert response["Location"] == address(session)
    assert [run.kind for run in session.runs.all()] == ["prompt", "retry"]
    assert client.post(address(session, "retry/"), headers=HTMX).status_code == 409


def test_a_stopped_turn_can_go_on(run: Run, alice: User, sign_in: SignIn) -> None:
    client, session = sign_in(alice), run.session
    factories.end_turn(run, stop_reason="cancelled")
    page = page_of(client.get(address(session)))
    assert page.find_all("form", action=address(session, "continue/"))

    response = client.post(address(session, "continue/"), headers=HTMX)

    assert response.status_code == 200
    assert session.runs.unfinished().count() == 1
    shown = page_of(client.get(address(session)))
    assert "Please continue" not in shown.text


def test_the_name_is_edited_in_place(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)

    response = client.post(address(session, "rename/"), {"name": "Bees"}, headers=HTMX)
    [field] = page_of(response).find_all("input", name="name")
    assert field.attributes["value"] == "Bees"
    plain = client.post(address(session, "rename/"), {"name": "Wasps"})
    assert plain["Location"] == address(session)
    session.refresh_from_db()
    assert session.name == "Wasps"

    refused = client.post(address(session, "rename/"), {"name": ""}, headers=HTMX)
    assert refused.status_code == 422
    assert client.post(address(session, "rename/"), {"name": ""}).status_code == 422


def settings_of(session: AgentSession, **changes: Any) -> dict[str, Any]:
    names = ("mode", "security_mode", "network", "model", "effort", "system_prompt")
    return {name: getattr(session, name) for name in names} | changes


def test_settings_are_saved(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    wanted = settings_of(session, network="open", system_prompt="Be brief.")

    response = client.post(address(session, "settings/"), wanted, headers=HTMX)

    session.refresh_from_db()
    assert (session.network, session.system_prompt) == ("open", "Be brief.")
    page = page_of(response)
    assert "Saved." in page.find("session-settings").words
    assert "Network open" in page.find(f"session-{session.pk}-facts").words
    plain = client.post(address(session, "settings/"), settings_of(session))
    assert plain["Location"] == address(session)


def test_settings_keep_to_the_ceiling(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    User.objects.filter(pk=alice.pk).update(security_ceiling="ask")
    wanted = settings_of(session, security_mode="full", system_prompt="Kept words")

    for headers in (HTMX, {}):
        response = sign_in(alice).post(
            address(session, "settings/"), wanted, headers=headers
        )
        form = page_of(response).find("session-settings")
        assert response.status_code == 422
        assert "Kept words" in form.text
    session.refresh_from_db()
    assert session.security_mode == "ask"


def test_a_closed_session_says_so_and_stays_reachable(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)

    response = client.post(address(session, "close/"))

    assert response["Location"] == "/"
    row = page_of(client.get("/")).find(f"session-{session.pk}-row")
    assert "Closed" in row.words
    page = page_of(client.get(address(session)))
    assert page.find(f"session-{session.pk}-status").words == "Closed"
    closed = page.find(f"session-{session.pk}-closed")
    assert "Resume" in closed.words
    assert [form.attributes["action"] for form in closed.find_all("form")] == [
        address(session, "resume/")
    ]


def test_a_closed_session_takes_no_message(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    client.post(address(session, "close/"))

    refused = client.post(
        address(session, "messages/"), {"text": "Hello?"}, headers=HTMX
    )

    assert refused.status_code == 409
    assert "Resume it" in refused.text
    assert session.messages.count() == 1


@pytest.mark.parametrize("headers", [HTMX, {}])
def test_resuming_leads_to_the_open_session(
    session: AgentSession, alice: User, sign_in: SignIn, headers: dict[str, str]
) -> None:
    client = sign_in(alice)
    client.post(address(session, "close/"))

    response = client.post(address(session, "resume/"), headers=headers)

    target = response.get("HX-Redirect") or response["Location"]
    assert target == address(session)
    page = page_of(client.get(target))
    assert page.find(f"session-{session.pk}-status").words == "Stopped"
    assert page.find(f"session-{session.pk}-closed").words == ""


def test_pinning_moves_it_to_the_pinned_ones(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)
    client.post(address(session, "stop/"))

    client.post(address(session, "pin/"), {"pinned": "true"})
    [pinned] = page_of(client.get("/")).find_all("section", aria_label="Pinned")
    assert pinned.has(f"session-{session.pk}-row")

    client.post(address(session, "pin/"), {"pinned": "false"})
    assert page_of(client.get("/")).find_all("section", aria_label="Pinned") == []
    assert client.post(address(session, "pin/"), {"pinned": "x"}).status_code == 422


def test_deleting_asks_first(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    client = sign_in(alice)

    page = page_of(client.get(address(session, "delete/")))
    assert "for good?" in page.text
    assert "Its workspace is deleted too" in page.text
    assert AgentSession.objects.filter(pk=session.pk).exists()

    response = client.post(address(session, "delete/"))
    assert response["Location"] == "/"
    assert not AgentSession.objects.filter(pk=session.pk).exists()
    assert "is deleted." in client.get("/").text
    assert client.get(address(session)).status_code == 404


def test_a_listed_folder_is_said_to_stay(
    session: AgentSession, alice: User, sign_in: SignIn
) -> None:
    AgentSession.objects.filter(pk=session.pk).update(owns_cwd=False, cwd="/srv/bees")

    page = sign_in(alice).get(address(session, "delete/"))

    assert "/srv/bees</code> stays as it is" in page.text


def test_who_may_operate_may_still_not_delete(
    session: AgentSession, bob: User, sign_in: SignIn
) -> None:
    Share.objects.create(session=session, user=bob, right=ShareRight.OPERATE)
    client = sign_in(bob)

    assert client.get(address(session, "delete/")).status_code == 403
    assert client.post(address(session, "delete/")).status_code == 403
    assert "Delete session" not in client.get(address(session)).text
    assert AgentSession.objects.filter(pk=session.pk).exists()


# Other people

READS = ["", "older/?before=5"]
WRITES = [
    *("stop/", "retry/", "continue/", "rename/", "settings/", "close/", "messages/"),
    *("resume/", "pin/", "delete/"),
]


def test_strangers_find_nothing(
    run: Run, charlie: User, alice: User, sign_in: SignIn
) -> None:
    stranger, owner = sign_in(charlie), sign_in(alice)
    for action in READS:
        assert owner.get(address(run.session, action)).status_code == 200
        assert stranger.get(address(run.session, action)).status_code == 404
    for action in WRITES:
        response = stranger.post(address(run.session, action), {"name": "x"})
        assert response.status_code == 404
    assert stranger.get(f"/sessions/{uuid.uuid4()}/").status_code == 404


def test_those_who_may_look_can_not_change_anything(
    run: Run, bob: User, sign_in: SignIn
) -> None:
    Share.objects.create(session=run.session, user=bob, right=ShareRight.VIEW)
    client = sign_in(bob)

    page = page_of(client.get(address(run.session)))

    assert page.find("composer-text").attributes.keys() >= {"disabled"}
    [main] = page.find_all("main")
    assert main.find_all("form") == []
    for action in WRITES:
        assert client.post(address(run.session, action)).status_code == 403


def test_a_get_changes_nothing(run: Run, alice: User, sign_in: SignIn) -> None:
    for action in WRITES:
        asks = action == "delete/"  # a page that asks
        response = sign_in(alice).get(address(run.session, action))
        assert response.status_code == (200 if asks else 405)
    assert AgentSession.objects.filter(pk=run.session_id).exists()

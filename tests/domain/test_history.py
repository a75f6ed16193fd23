"""History finds what was said, for those who may see it, in whatever words."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.domain import blocks, history, messages
from agents.domain.history import HistoryFilters, get_history
from agents.domain.search.scan import SCANNED_SESSIONS
from agents.models import AgentSession, Message, MessageBranch, Run, Share, User
from agents.models.messages import MessageRole
from agents.models.sessions import SessionKind
from tests import factories


def found(user: User, q: str = "", **filters) -> list[AgentSession]:
    page = get_history(user, q, HistoryFilters(**filters))
    assert page.total == len(page.sessions)
    return [entry.session for entry in page.sessions]


def snippets(user: User, q: str) -> list[str]:
    page = get_history(user, q)
    return [hit.snippet for entry in page.sessions for hit in entry.hits]


def hit_messages(user: User, q: str) -> set:
    page = get_history(user, q)
    return {hit.message.pk for entry in page.sessions for hit in entry.hits}


@pytest.mark.parametrize(
    "q", ["the blue whale", "BLUE WHALE", "lue wha", "  blue whale  "]
)
def test_it_finds_a_part_of_what_was_said_whatever_the_case(run, alice, q):
    factories.say(run, "Look at the Blue Whale there")

    assert found(alice, q) == [run.session]


@pytest.mark.parametrize("q", ["blue  whale", "blue", "whale sings", "the whale"])
def test_it_finds_only_the_text_as_it_stands(run, alice, q):
    factories.say(run, "A whale, blu-ish")

    assert found(alice, q) == []


@pytest.mark.parametrize(
    ("said", "q"),
    [
        ("ÄPFEL und Birnen", "äpfel"),
        ("привет, МИР", "Мир"),
        ("ΟΔΟΣ αρχή", "οδοσ αρ"),
        ("北京的天气很好", "京的天气"),
        ("so happy 🎉🎉🎉 today", "🎉🎉🎉"),
        ("naïve CAFÉ", "café"),
    ],
)
def test_case_is_folded_beyond_ascii(run, alice, said, q):
    factories.say(run, said)

    assert found(alice, q) == [run.session]
    assert "<mark>" in snippets(alice, q)[0]


@pytest.mark.parametrize("q", ["café", "CAFÉ au"])
def test_an_accent_is_not_left_out(run, alice, q):
    factories.say(run, "cafe au lait")

    assert found(alice, q) == []


@pytest.mark.parametrize(
    "q",
    [
        "100%",
        "a_b",
        "c:\\temp",
        'say "hi"',
        "x*",
        "(NOT",
        "name:me",
        "it's",
        "^$.+?",
        "--;",
    ],
)
def test_no_character_is_special(run, alice, q):
    other = factories.start_turn(factories.make_session(alice, "Something else"))
    factories.say(other, "1000 aXb c:temp say hi xyz NOT name me its")
    factories.say(run, f"before {q} after")

    assert found(alice, q) == [run.session]


@pytest.mark.parametrize("q", ["%%%", "___", '"""', "***", "OR NOT"])
def test_wildcards_alone_find_nothing(run, alice, q):
    factories.say(run, "just some words, in no order")

    assert found(alice, q) == []


def test_a_nul_in_the_query_is_no_error(run, alice):
    factories.say(run, "before\x00after")

    assert found(alice, "before\x00after") == [run.session]
    assert found(alice, "\x00\x00\x00") == []
    assert found(alice, "\ud800\ud800\ud800") == []


def test_every_role_is_searched(run, alice):
    factories.say(run, "The thought of a walrus", MessageRole.THINKING)
    factories.call_tool(
        run, tool_input={"command": "echo “ä walrus”", "deep": [{"x": "line\nWALRUS"}]}
    )
    factories.return_result(run, text="walrus: not found")
    blocks.add_message(
        run.session_id,
        branch_id=run.branch_id,
        role=MessageRole.SYSTEM,
        text="Walrus warning",
    )

    newest = [
        hit.role
        for entry in get_history(alice, "walrus").sessions
        for hit in entry.hits
    ]
    session = run.session
    roles = [
        hit.message.role for hit in history.search_messages(alice, "walrus", session)
    ]

    assert newest == ["Notice", "Tool result", "Tool call"]
    assert roles == ["system", "tool_result", "tool_call", "thinking"]
    assert get_history(alice, "walrus").sessions[0].has_more_hits


@pytest.mark.parametrize("q", ["Grep", "“quoted”\nnext", "ünder", "c:\\new"])
def test_a_tools_name_and_the_texts_of_its_input_are_searched(run, alice, q):
    factories.call_tool(
        run,
        tool_name="Grep",
        tool_input={"pattern": "“quoted”\nnext", "in": {"a": ["Ünder", "C:\\New"]}},
    )

    assert found(alice, q) == [run.session]
    assert "<mark>" in snippets(alice, q)[0]


def test_the_names_of_an_inputs_fields_are_not(run, alice):
    factories.call_tool(run, tool_input={"command": "ls"})

    assert found(alice, "command") == []


def test_all_branches_are_searched(run, alice):
    said = factories.say(run, "The first answer names a heron")
    other = MessageBranch.objects.create(
        session=run.session, parent_branch=run.branch, fork_point_message=said
    )
    Message.objects.create(
        session=run.session,
        branch=other,
        seq=50,
        role="assistant",
        text="A Heron again",
    )

    page = get_history(alice, "heron")
    branches = {hit.message.branch_id for hit in page.sessions[0].hits}

    assert branches == {run.branch_id, other.pk}


def test_a_session_is_found_by_its_name_as_it_is_now(session, alice):
    from agents.domain.sessions import rename_session

    rename_session(session, "Counting otters")

    assert found(alice, "ng OTT") == [session]
    assert (
        get_history(alice, "otters").sessions[0].name == "Counting <mark>otters</mark>"
    )

    rename_session(session, "Counting bees")

    assert found(alice, "otters") == []
    assert found(alice, "bees") == [session]


def test_text_that_still_streams_is_found_once_it_stands(run, alice):
    message = blocks.start_stream(run, role=MessageRole.ASSISTANT)
    blocks.save_stream(message.pk, "Half a pelican")
    assert found(alice, "pelican") == []

    blocks.finish_stream(message.pk, text="Half a pelican and the rest")

    assert found(alice, "pelican and") == [run.session]


def test_a_changed_text_is_found_by_its_new_words_only(run, alice):
    message = factories.say(run, "An old badger")

    Message.objects.filter(pk=message.pk).update(text="A new beaver")

    assert found(alice, "badger") == []
    assert found(alice, "beaver") == [run.session]


def test_what_is_hidden_or_deleted_is_not_found(run, alice):
    hidden, deleted = factories.say(run, "ferret one"), factories.say(run, "ferret two")
    assert hit_messages(alice, "ferret") == {hidden.pk, deleted.pk}

    Message.objects.filter(pk=hidden.pk).update(hidden=True)
    deleted.delete()

    assert found(alice, "ferret") == []


def test_a_message_that_waits_is_found_and_a_removed_one_is_not(session, alice):
    waiting = messages.send_message(session, author=alice, text="And a lynx please")
    assert found(alice, "lynx") == [session]

    messages.remove_queued_message(waiting)

    assert found(alice, "lynx") == []


def test_a_stranger_finds_nothing(run, alice, charlie):
    factories.say(run, "a secret orchid")

    for q in ("orchid", "or", "Count to three", "", "Count"):
        assert found(charlie, q) == []
    assert history.search_messages(charlie, "orchid", run.session) == []
    assert found(alice, "orchid") == [run.session], "the control"


def test_whom_a_session_is_shared_with_finds_it(run, bob):
    factories.say(run, "a shared orchid")
    assert found(bob, "orchid") == []

    Share.objects.create(session=run.session, user=bob)

    assert found(bob, "orchid") == [run.session]


def test_people_with_the_same_words_find_their_own(alice, charlie):
    theirs = [
        factories.make_session(user, "my lilac plan") for user in (alice, charlie)
    ]

    assert [found(alice, "lilac"), found(charlie, "lilac")] == [[s] for s in theirs]


@pytest.mark.parametrize("q", ["é", "Qé", "天气", "%_"])
def test_short_queries_are_looked_for_in_names_and_the_newest_sessions(run, alice, q):
    factories.say(run, f"abc {q.lower()} def")
    factories.make_session(alice, "nothing here")

    page = get_history(alice, q)

    assert [entry.session for entry in page.sessions] == [run.session]
    assert page.is_short
    assert "<mark>" in page.sessions[0].hits[0].snippet


def test_short_queries_stop_at_the_newest_sessions_but_know_all_names(alice):
    old = factories.make_session(alice, "qv is said here", name="Plain")
    named = factories.make_session(alice, "nothing", name="Also qv")
    long_ago = timezone.now() - timedelta(days=9)
    AgentSession.objects.update(updated_at=long_ago)
    AgentSession.objects.bulk_create(
        AgentSession(owner=alice, name="Filler") for _ in range(SCANNED_SESSIONS)
    )

    assert found(alice, "qv") == [named]
    assert old in found(alice, "qv is")


def test_pages_say_how_many_there_are_and_whether_more_follow(alice):
    made = [factories.make_session(alice, f"task of teal {at}") for at in range(5)]

    pages = [get_history(alice, "teal", limit=2, offset=at) for at in (0, 2, 4, 6)]

    assert [page.total for page in pages] == [5] * 4
    assert [page.has_more for page in pages] == [True, True, False, False]
    listed = [entry.session for page in pages for entry in page.sessions]
    assert listed == made[::-1]


def test_without_a_query_everything_is_listed_last_changed_first(alice):
    first, second = (factories.make_session(alice, text) for text in ("one", "two"))
    factories.say(factories.start_turn(first), "Hello")

    assert found(alice) == [first, second]


def test_sub_agents_are_listed_when_asked_for_or_found(session, alice):
    child = AgentSession.objects.create(
        owner=alice,
        name="Research narwhals",
        kind=SessionKind.SUB_AGENT,
        parent_session=session,
    )

    assert found(alice) == [session]
    assert found(alice, kind="sub-agent") == [child]
    assert found(alice, "narwhals") == [child]


def test_filters_all_have_to_hold(alice):
    now = timezone.now()
    plan = factories.make_session(alice, "teal plan")
    AgentSession.objects.filter(pk=plan.pk).update(
        mode="plan",
        status="error",
        cost_usd_micros=5_000_000,
        updated_at=now - timedelta(days=3),
        closed_at=now,
    )
    run = factories.start_turn(factories.make_session(alice, "teal task"))
    Run.objects.filter(pk=run.pk).update(model_actual="claude-Opus-9")

    assert found(alice, "teal", mode="plan") == [plan]
    assert found(alice, "teal", status="error", mode="agent") == []
    assert found(alice, min_cost_usd_micros=5_000_000) == [plan]
    assert found(alice, max_cost_usd_micros=4_999_999) == [run.session]
    assert found(alice, since=now - timedelta(days=1)) == [run.session]
    assert found(alice, before=now - timedelta(days=1)) == [plan]
    assert found(alice, is_closed=True) == [plan]
    assert found(alice, is_closed=False) == [run.session]
    assert found(alice, model="opus") == [run.session]
    assert found(alice, model="%") == []


def test_a_hits_address_names_branch_and_message(run, alice):
    said = factories.say(run, "an orange newt")
    call = factories.call_tool(run, tool_input={"command": "cat newts"})
    factories.return_result(run, text="newt newt")

    urls = [hit.url for hit in get_history(alice, "newt").sessions[0].hits]
    page, query = f"/sessions/{run.session_id}/", f"?branch={run.branch_id}&message="

    assert urls[2] == f"{page}{query}{said.pk}#message-{said.pk}"
    assert urls[1] == f"{page}{query}{call.pk}#tool-{call.pk}"
    assert urls[0].endswith(f"#tool-{call.pk}"), "a result stands in its call's card"


def test_five_megabytes_are_searched_to_their_end(run, alice):
    factories.say(run, "filler words " * 400_000 + "the last gecko <b>")

    assert snippets(alice, "last GECKO")[0].endswith(
        "the <mark>last gecko</mark> &lt;b&gt;"
    )


def test_of_a_tools_output_the_beginning_is_searched(run, alice):
    factories.call_tool(run)
    factories.return_result(run, text="early toad " + "x" * 5_000_000 + " late toad")

    assert found(alice, "early toad") == [run.session]
    assert found(alice, "late toad") == []


@pytest.mark.parametrize("hits", [1, 3])
@pytest.mark.parametrize("q", ["crane", "cr"])
def test_it_takes_the_same_queries_however_much_is_found(
    alice, django_assert_max_num_queries, hits, q
):
    for _ in range(hits):
        run = factories.start_turn(factories.make_session(alice, "Look"))
        for at in range(hits):
            factories.say(run, "a crane")
            factories.call_tool(run, f"toolu_{at}", tool_input={"command": "crane"})
            factories.return_result(run, f"toolu_{at}", "crane")

    with django_assert_max_num_queries(6):
        page = get_history(alice, q)
    assert len(page.sessions) == hits
    assert all(entry.hits for entry in page.sessions)


def test_the_search_text_is_the_name_and_what_was_said(run, alice):
    factories.say(run, "not this", MessageRole.THINKING)
    factories.say(run, "Two, three")

    text = history.build_search_text(run.session)

    assert text == "Count to three\nCount to three\nTwo, three"
    assert history.build_search_text(run.session, max_len=18) == text[:18]

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from agents.domain import notices
from agents.models import Message, Run


def retry(run: Run, notice_id: UUID | None = None, **changes: Any) -> Message:
    facts: dict[str, Any] = {
        "attempt": 1,
        "max_retries": 4,
        "delay_ms": 2_400,
        "error_status": 529,
        "error": "overloaded",
        **changes,
    }
    return Message.objects.get(pk=notices.record_retry(run, notice_id, **facts))


def test_a_notice_is_a_card_with_its_facts(run: Run) -> None:
    notice = notices.add_notice(run, "error", "It\x00 broke", error_class="cut")

    assert (notice.role, notice.text) == ("system", "It\ufffd broke")
    assert notice.content == {"kind": "error", "error_class": "cut"}
    assert notice.is_error
    assert not notices.add_notice(run, "stopped", "Stopped.").is_error


def test_a_notice_changes_in_place(run: Run) -> None:
    notice = notices.add_notice(run, "stalled", "Silent", since=1)

    notices.update_notice(notice.pk, "Went\x00 on", kind="info")

    notice.refresh_from_db()
    assert (notice.text, notice.content) == (
        "Went\ufffd on",
        {"kind": "info", "since": 1},
    )
    assert run.session.events.latest("seq").data["is_new"] is False


def test_one_notice_counts_the_retries(run: Run) -> None:
    first = retry(run)
    assert first.text == (
        "The provider is overloaded. Trying again in 2 s (try 1 of 4)."
    )

    second = retry(run, first.pk, attempt=2, delay_ms=10)

    assert second.pk == first.pk
    assert second.text.endswith("Trying again in 1 s (try 2 of 4).")
    assert second.content["attempt"] == 2
    assert run.session.events.filter(type="agent:retry").count() == 2


@pytest.mark.parametrize(
    ("error", "sentence"),
    [*notices.RETRY_SENTENCES.items(), ("new\x00", notices.RETRY_SENTENCE)],
)
def test_each_trouble_has_a_sentence(run: Run, error: str, sentence: str) -> None:
    assert retry(run, error=error).text.startswith(sentence)


@pytest.mark.parametrize(("attempt", "words"), [(1, "1 more try"), (3, "3 more tries")])
def test_a_call_that_went_through_says_so(run: Run, attempt: int, words: str) -> None:
    notice = retry(run, attempt=attempt)

    notices.end_retries(notice.pk, has_helped=True)

    notice.refresh_from_db()
    assert notice.text == f"The provider is overloaded. It went on after {words}."
    assert notice.content["kind"] == "info"

from __future__ import annotations

import pytest

from agents.domain.queries.approvals import load_inbox
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("network", "note"), [("none", "off"), ("open", "open")])
def test_the_card_of_a_command_says_what_it_can_reach(alice, network, note):
    run = factories.start_turn(factories.make_session(alice, network=network))
    factories.ask_approval(run, "toolu_1", "Bash", {"command": "ls"})
    factories.ask_approval(run, "toolu_2", "Write")

    notes = [card.network_note for card in load_inbox(alice)]

    assert notes == [note, ""]

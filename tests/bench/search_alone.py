"""A process that fills a database with a long history, searches it and says how long.

Arguments: the database's URL ("" is SQLite in the data folder), sessions, messages, and
how many queries of each kind.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import django

from .children import say
from .samples import Samples

if TYPE_CHECKING:
    from agents.management.history_seed import HistorySeeder
    from agents.models import User

SEED = 1
# By how often a word is said: places in a vocabulary sorted from common to rare.
_COMMON, _USUAL, _RARE = (0, 10), (50, 500), (1500, 3000)


def main() -> None:
    url, sessions, messages, count = sys.argv[1:]
    if url:
        os.environ["OPENSWARM_DATABASE_URL"] = url
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", interactive=False, verbosity=0)
    started = time.monotonic()
    seeder = _fill(int(sessions), int(messages))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    say(
        {
            "database": connection.vendor,
            "seed_seconds": round(time.monotonic() - started),
            "kinds": _measure(seeder, int(messages), int(count)),
        }
    )


def _fill(sessions: int, messages: int) -> HistorySeeder:
    from agents.management.history_seed import HistorySeeder
    from agents.models import User

    user = User.objects.create_user("bench", role="owner")
    seeder = HistorySeeder(user, sessions=sessions, messages=messages, seed=SEED)
    for _ in seeder.run():
        pass
    return seeder


def _measure(seeder: HistorySeeder, messages: int, count: int) -> dict[str, Any]:
    from agents.models import User

    user = User.objects.get()
    kinds = _kinds(seeder, messages)
    for ask in kinds.values():
        _timed(user, ask())
    return {
        kind: Samples.of(_timed(user, ask()) for _ in range(count)).as_json()
        for kind, ask in kinds.items()
    }


def _timed(user: User, query: str) -> float:
    """One page of results as the history page asks for it, in milliseconds."""
    from agents.domain.history import get_history

    started = time.perf_counter()
    get_history(user, query)
    return (time.perf_counter() - started) * 1000


def _kinds(seeder: HistorySeeder, messages: int) -> dict[str, Callable[[], str]]:
    from agents.management.history_seed import NEEDLE_EVERY, needle

    rng = random.Random(SEED)  # noqa: S311  which words are asked for
    words = [word for word in seeder.words.vocabulary if len(word) > 2]

    def word(places: tuple[int, int]) -> str:
        return rng.choice(words[slice(*places)])

    return {
        "no words: the newest": lambda: "",
        "said once": lambda: needle(
            rng.randrange(1, messages // NEEDLE_EVERY) * NEEDLE_EVERY
        ),
        "a rare word": lambda: word(_RARE),
        "a usual word": lambda: word(_USUAL),
        "a common word": lambda: word(_COMMON),
        "two words": lambda: f"{word(_COMMON)} {word(_USUAL)}",
        "two letters": lambda: word(_USUAL)[:2],
    }


if __name__ == "__main__":
    main()

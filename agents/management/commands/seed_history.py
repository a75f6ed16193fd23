"""`manage.py seed_history`: fill the site with a long history of made-up sessions."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError

from agents.management.history_seed import HistorySeeder
from agents.models import User
from agents.models.users import Role


class Command(BaseCommand):
    help = (
        "Fill the site with made-up sessions, to see how lists and search bear them."
        " Not for a site that is in use."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--sessions", type=int, default=10_000)
        parser.add_argument("--messages", type=int, default=200_000)
        parser.add_argument("--user", default="", help="whose; the first owner's")
        parser.add_argument("--seed", type=int, default=1, help="other rows")

    def handle(
        self,
        *args: Any,
        sessions: int,
        messages: int,
        user: str,
        seed: int,
        verbosity: int,
        **options: Any,
    ) -> None:
        if sessions < 1 or messages < 0:
            raise CommandError("--sessions must be 1 or more, --messages 0 or more.")
        seeder = HistorySeeder(
            _find_user(user), sessions=sessions, messages=messages, seed=seed
        )
        try:
            for done in seeder.run():
                if verbosity > 1:
                    self.stdout.write(f"{done} of {sessions} sessions")
        except IntegrityError as error:
            raise CommandError(
                f"The rows of seed {seed} are here already; choose another --seed."
            ) from error
        if verbosity:
            self.stdout.write(f"{sessions} sessions with {messages} messages are made.")


def _find_user(name: str) -> User:
    people = User.objects.filter(username=name) if name else User.objects.all()
    found = people.filter(**({} if name else {"role": Role.OWNER})).order_by(
        "date_joined"
    )
    user = found.first()
    if user is None:
        raise CommandError(
            f"There is nobody named {name!r}." if name else "There is no owner yet."
        )
    return user

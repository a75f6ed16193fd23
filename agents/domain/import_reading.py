"""Reads strangers' JSON: each value by its name, its kind and its limit.

Whatever is wrong becomes an InvalidInputError that says where.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from agents.errors import InvalidInputError
from agents.rendering.text import clean_json, clean_text

MAX_TEXT_CHARACTERS = 5_000_000
_LAST_NUMBER = 2**31 - 1


def refuse(sentence: str) -> InvalidInputError:
    return InvalidInputError(sentence, field="file")


def parse(data: bytes) -> Row:
    """Raises: InvalidInputError: it is not a JSON object."""
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise refuse("This is not a JSON file.") from error
    return Row(clean_json(value), "file")


class Row:
    """One object of the file; `where` is how an error names it."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise refuse(f"{where} is not an object.")
        self._value = value
        self._where = where

    def wrong(self, name: str, what: str) -> InvalidInputError:
        return refuse(f"{self._where}: “{name}” {what}.")

    def rows(self, name: str, most: int) -> list[Row]:
        values = self._value.get(name, [])
        if not isinstance(values, list):
            raise self.wrong(name, "is not a list")
        if len(values) > most:
            raise self.wrong(name, f"has more than {most:,} entries")
        return [Row(value, f"{name}[{at}]") for at, value in enumerate(values)]

    def row(self, name: str) -> Row:
        return Row(self._value.get(name), name)

    def text(self, name: str, most: int = MAX_TEXT_CHARACTERS) -> str:
        """Cut to `most` characters; "" where there is none."""
        value = self._value.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(name, "is not a text")
        return clean_text(value)[:most]

    def key(self, name: str) -> str:
        """An id, in whatever form; only compared with others of the file."""
        value = self.text(name, 200)
        if not value:
            raise self.wrong(name, "is missing")
        return value

    def choice(self, name: str, choices: Iterable[str], default: str = "") -> str:
        value = self.text(name, 200) or default
        if value not in set(choices):
            raise self.wrong(name, "is not a value that is known here")
        return value

    def number(self, name: str) -> int | None:
        value = self._value.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(name, "is not a whole number")
        if not 0 <= value <= _LAST_NUMBER:
            raise self.wrong(name, "is out of range")
        return value

    def flag(self, name: str) -> bool:
        return self.answer(name) is True

    def answer(self, name: str) -> bool | None:
        value = self._value.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "is not true or false")
        return value

    def time(self, name: str) -> datetime | None:
        text = self.text(name, 64)
        if not text:
            return None
        try:
            # UTC throughout: other zones could leave the range of dates.
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise self.wrong(name, "is not a time") from error

    def object(self, name: str) -> dict[str, Any]:
        value = self._value.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(name, "is not an object")
        return value

    def has(self, name: str) -> bool:
        return self._value.get(name) is not None

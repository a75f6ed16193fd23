"""One line of the doctor's report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.level:<8} {self.subject:<14} {' '.join(self.text.split())}"


def ok(subject: str, text: str) -> Finding:
    return Finding("ok", subject, text)


def warning(subject: str, text: str) -> Finding:
    return Finding("warning", subject, text)


def failed(subject: str, text: str) -> Finding:
    return Finding("failed", subject, text)

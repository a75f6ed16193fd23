"""The application's exceptions.

`domain` raises them; `web` maps them to status codes, `live` to close codes and
`execution/failures.py` to a failed turn. Subclasses carry data, not prose to parse.
"""

from __future__ import annotations


class AgentsError(Exception):
    """Base of all errors that a person may be told about."""

    status_code = 409

    def __init__(self, user_message: str) -> None:
        super().__init__(user_message)
        self.user_message = user_message


class NotAllowedError(AgentsError):
    """The person may know that the thing exists, but not do this to it."""

    status_code = 403


class InvalidInputError(AgentsError):
    """The input can't be used; `field` names the form field at fault, if any."""

    status_code = 422

    def __init__(self, user_message: str, *, field: str | None = None) -> None:
        super().__init__(user_message)
        self.field = field


class AlreadyDecidedError(AgentsError):
    """Somebody else answered this approval first."""


class RunActiveError(AgentsError):
    """The session already has an unfinished run."""


class LeaseLostError(AgentsError):
    """Another worker owns this run now; the loser must stop writing."""


class SessionGoneError(LeaseLostError):
    """The session was deleted; whoever worked for it must stop writing."""

    status_code = 404

    def __init__(self) -> None:
        super().__init__("This session was deleted.")


class SessionClosedError(AgentsError):
    """A closed session is only looked at until somebody resumes it."""

    def __init__(self) -> None:
        super().__init__("This session is closed. Resume it to go on.")


class SubAgentError(AgentsError):
    """A sub-agent has no life of its own: it is part of the session that runs it."""

    def __init__(self) -> None:
        super().__init__(
            "A sub-agent is part of the session that started it. Do this there."
        )


class JailUnavailableError(AgentsError):
    """The site requires the jail, and it can't be built on this machine."""


class FolderMissingError(AgentsError):
    """The session's folder was moved or deleted."""


class CliMissingError(AgentsError):
    """The Claude Code CLI isn't there or doesn't start."""


class WorkspaceError(AgentsError):
    """A folder can't be recorded, restored or branched; the sentence says why."""

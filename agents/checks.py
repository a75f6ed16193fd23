"""System checks: refuse settings, and combinations of them, that cannot work.

They run before `serve` and every other command, and in `check --deploy`. What depends
on the machine (the jail, the disk, the CLI) is `manage.py doctor`'s business.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.utils.module_loading import import_string

from agents.conf import conf

# Zero means "not at all" here; everywhere else it would mean that nothing works.
MAY_BE_ZERO = {
    "warm_idle_seconds",
    "warm_clients",
    "cli_max_retries",
    "delta_join_seconds",
    "gateway_join_ms",
}
LONGEST_STOP_SECONDS = 6  # so that a stopped server has ended after 10


@register()
def check_dispatcher(**_: Any) -> list[CheckMessage]:
    try:
        import_string(settings.DISPATCHER)
    except ImportError as error:
        return [Error(f"DISPATCHER can't be imported: {error}", id="openswarm.E001")]
    return []


@register()
def check_public_url(**_: Any) -> list[CheckMessage]:
    """Cookies, redirects and the sockets' Origin check are derived from it."""
    url = settings.PUBLIC_URL
    if not url:
        return []
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return [
            Error(
                f"OPENSWARM_URL is {url!r}, which is no address of a site.",
                hint="For example https://openswarm.example or http://nas.local:8000.",
                id="openswarm.E002",
            )
        ]
    if parts.path or parts.query or parts.fragment or parts.username:
        return [
            Error(
                f"OPENSWARM_URL is {url!r}; the site needs a host name of its own.",
                hint="Leave out everything behind the host name and the port.",
                id="openswarm.E003",
            )
        ]
    return []


@register()
def check_numbers(**_: Any) -> list[CheckMessage]:
    return [
        Error(
            f"OPENSWARM_{name.upper()} is {value}; with it nothing can work.",
            hint="Give it a value above zero, or none for the default.",
            id="openswarm.E004",
        )
        for name, value in asdict(conf()).items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        if value < 0 or (value == 0 and name not in MAY_BE_ZERO)
    ]


@register()
def check_leases(**_: Any) -> list[CheckMessage]:
    limits = conf()
    if limits.lease_seconds >= 2 * limits.heartbeat_seconds:
        return []
    return [
        Error(
            "OPENSWARM_LEASE_SECONDS is less than twice OPENSWARM_HEARTBEAT_SECONDS:"
            " one late heartbeat would end a run that is well.",
            id="openswarm.E005",
        )
    ]


@register()
def check_stop_deadline(**_: Any) -> list[CheckMessage]:
    if conf().stop_deadline_seconds <= LONGEST_STOP_SECONDS:
        return []
    return [
        Error(
            "OPENSWARM_STOP_DEADLINE_SECONDS is more than"
            f" {LONGEST_STOP_SECONDS}: the server could not end within 10 seconds.",
            id="openswarm.E006",
        )
    ]


@register(Tags.security)
def check_jail_switches(**_: Any) -> list[CheckMessage]:
    if not (conf().require_jail and conf().disable_jail):
        return []
    return [
        Error(
            "OPENSWARM_REQUIRE_JAIL and OPENSWARM_DISABLE_JAIL are both on: no agent"
            " could ever start.",
            id="openswarm.E007",
        )
    ]


@register()
def check_unknown_variables(**_: Any) -> list[CheckMessage]:
    """A typing error in the name of a security switch must not go unnoticed."""
    return [
        Warning(
            f"{name} is set, but there is no such setting.",
            hint="docs/howto/configuration.md lists all of them.",
            id="openswarm.W001",
        )
        for name in settings.UNKNOWN_VARIABLES
    ]


@register(Tags.security, deploy=True)
def check_hosts(**_: Any) -> list[CheckMessage]:
    """With any Host accepted, a foreign page can reach the site by DNS rebinding."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        Warning(
            "OPENSWARM_ALLOWED_HOSTS holds *, so the site answers to any host name.",
            hint="Name the hosts, or set OPENSWARM_URL alone.",
            id="openswarm.W002",
        )
    ]

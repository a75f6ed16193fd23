"""Numbers and times as people read them. Unknown (None) says so, never "0"."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

UNKNOWN = "unknown"
_MICROS = 1_000_000
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def usd(micros: int | None) -> str:
    """Micro-dollars as dollars; under a dollar with the digits that matter."""
    if micros is None:
        return UNKNOWN
    if micros == 0 or micros >= _MICROS:
        return f"${micros / _MICROS:,.2f}"
    return f"${micros / _MICROS:.4f}" if micros >= 100 else "<$0.0001"


def tokens(count: int | None) -> str:
    if count is None:
        return UNKNOWN
    if count < 1000:
        return str(count)
    if count < 999_950:
        return f"{count / 1000:.1f}k"
    return f"{count / 1_000_000:.1f}M"


def round_tokens(count: int) -> str:
    """At a glance: 933, 4.6k, 155k, 1M."""
    if count < 1000:
        return str(count)
    if count < 999_500:
        digits = 1 if count < 9950 else 0
        return f"{count / 1000:.{digits}f}".removesuffix(".0") + "k"
    return f"{count / 1_000_000:.1f}".removesuffix(".0") + "M"


def duration_ms(milliseconds: float | None) -> str:
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def relative_time(moment: datetime | None) -> SafeString:
    """`<time>`: the distance from now; as title, the exact time in the active zone."""
    if moment is None:
        return format_html("{}", "never")
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(timespec="seconds"),
        f"{date_format(local, 'j M Y, H:i:s')} {local.tzname()}",
        _distance((timezone.now() - moment).total_seconds(), local),
    )


def _distance(seconds: float, local: datetime) -> str:
    amount = abs(seconds)
    if amount < 45:
        return "just now" if seconds >= 0 else "in a moment"
    if amount >= 14 * _DAY:
        return date_format(local, "j M Y")
    if amount < _HOUR - 30:
        text = f"{max(round(amount / _MINUTE), 1)} min"
    elif amount < _DAY - 1800:
        text = f"{round(amount / _HOUR)} h"
    else:
        days = round(amount / _DAY)
        text = f"{days} day{'s' if days > 1 else ''}"
    return f"{text} ago" if seconds >= 0 else f"in {text}"

"""Icons out of the Lucide sprite, by name.

A frame carries only a reference; the browser caches the one file. `ICON_NAMES` lists
the sprite's symbols, a test compares the two and every name used in the code.
"""

from __future__ import annotations

from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

SPRITE = "icons/lucide.svg"
UNKNOWN_ICON = "circle-help"
_NAMES = """
    activity app-window archive archive-restore arrow-down arrow-left arrow-right
    arrow-up arrow-up-right at-sign bell bell-off book book-open bot brain bug calendar
    chart-column check check-check chevron-down chevron-left chevron-right chevron-up
    chevrons-left chevrons-right chevrons-up-down circle circle-alert circle-check
    circle-dot circle-help circle-pause circle-play circle-stop circle-x clipboard-list
    clock cloud code coins command copy corner-down-right cpu database download ellipsis
    ellipsis-vertical external-link eye eye-off file file-code file-diff file-pen
    file-plus file-search file-text filter flag folder folder-open folder-plus
    folder-tree funnel gauge git-branch git-compare git-fork globe grip-vertical hand
    hash history hourglass house image image-plus inbox info key key-round keyboard
    layers layout-dashboard lightbulb link link-2 list list-checks list-filter list-todo
    loader lock log-in log-out maximize-2 menu merge message-circle-question
    message-square message-square-plus messages-square minimize-2 minus monitor moon
    move network notebook-pen octagon-x package palette panel-left panel-right paperclip
    pause pencil pin pin-off play plug plug-zap plus power refresh-cw rocket rotate-ccw
    route save scale scroll-text search send server settings share-2 shield shield-alert
    shield-check shield-x sliders-horizontal sparkles square square-check
    square-terminal star sticky-note sun table tag terminal timer trash-2 triangle-alert
    undo-2 unlock unplug upload user user-plus users wallet wand-sparkles webhook
    wifi-off workflow wrench x zap zoom-in zoom-out
"""
ICON_NAMES = frozenset(_NAMES.split())


def icon_svg(name: str, label: str = "") -> SafeString:
    """An `<svg>` that is decoration, or with a label an image of that name."""
    href = f"{static(SPRITE)}#{name if name in ICON_NAMES else UNKNOWN_ICON}"
    if label:
        return format_html(
            '<svg class="icon" role="img" aria-label="{}"><use href="{}"></use></svg>',
            label,
            href,
        )
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}"></use></svg>', href
    )

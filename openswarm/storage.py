"""Static files as they are served: hashed names, compressed, and few of them.

In the source tree `css/app.css` and `js/app.js` only import what stands beside them, so
that each file stays small and a browser reads them as they are while developing. When
they are collected, the imports are replaced by what they name: one request for each.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage, Storage
from whitenoise.storage import CompressedManifestStaticFilesStorage

Paths = dict[str, tuple[Storage, str]]

_IMPORT_CSS = re.compile(
    r'^@import url\("(?P<file>[^"]+)"\)(?: layer\((?P<layer>\w+)\))?(?P<media>[^;]*);$',
    re.MULTILINE,
)
_IMPORT_JS = re.compile(r'^import "\./(?P<file>[^"]+)";$', re.MULTILINE)


class JoiningStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # untyped
    def post_process(self, paths: Paths, **options: Any) -> Iterator[Any]:
        joined = InMemoryStorage()
        for name, pattern in (("css/app.css", _IMPORT_CSS), ("js/app.js", _IMPORT_JS)):
            joined.save(name, ContentFile(_join(paths, name, pattern)))
        names = {name: (joined, name) for name in ("css/app.css", "js/app.js")}
        yield from super().post_process({**paths, **names}, **options)


def _join(paths: Paths, name: str, pattern: re.Pattern[str]) -> str:
    """The file's text with each import replaced by the text of the file it names."""

    def replaced(found: re.Match[str]) -> str:
        file = posixpath.join(posixpath.dirname(name), found["file"])
        text = _read(paths, file)
        return _in_its_layer(text, found) if name.endswith(".css") else text

    return pattern.sub(replaced, _read(paths, name))


def _in_its_layer(css: str, found: re.Match[str]) -> str:
    if found["layer"]:
        css = f"@layer {found['layer']} {{\n{css}}}"
    media = found["media"].strip()
    return f"@media {media} {{\n{css}\n}}" if media else css


def _read(paths: Paths, name: str) -> str:
    storage, path = paths[name]
    with storage.open(path) as file:
        content: bytes = file.read()
    return content.decode()

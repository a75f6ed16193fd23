"""Pictures that people attach: judged by content, shrunk before they are kept.

A picture that a model refuses would be sent again with every later turn, and so end
the whole conversation. Everything is therefore encoded anew, within what models take:
what comes out is small, has one frame, and none of the metadata that came in.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Final, TypedDict

from PIL import Image, ImageOps

from agents.errors import InvalidInputError

MAX_UPLOAD_BYTES: Final = 20 * 1024 * 1024
MAX_PIXELS: Final = 50_000_000
# Models see no more than this, and shrink what is larger by themselves.
LONG_EDGE: Final = 1568
THUMBNAIL_EDGE: Final = 320
MAX_BYTES: Final = 1024 * 1024
FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")
_SPOILT = (
    *(OSError, ValueError, SyntaxError, EOFError, IndexError, MemoryError),
    *(Image.DecompressionBombError, Image.DecompressionBombWarning),
)


class KeptImage(TypedDict):
    """As it stands in a message's attachments; both pictures in Base64."""

    name: str
    media_type: str
    data: str
    thumbnail: str
    """Always a JPEG."""
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class _Encoded:
    media_type: str
    data: bytes


def keep_image(data: bytes, name: str) -> KeptImage:
    """The picture as it is stored and sent.

    Raises: InvalidInputError with a sentence that names the file.
    """
    if len(data) > MAX_UPLOAD_BYTES:
        raise _refused(f"“{name}” is larger than {MAX_UPLOAD_BYTES >> 20} MB.")
    picture = _decode(data, name)
    picture.thumbnail((LONG_EDGE, LONG_EDGE), Image.Resampling.LANCZOS)
    encoded = _encode(picture)
    small = _flat(picture)
    small.thumbnail((THUMBNAIL_EDGE, THUMBNAIL_EDGE), Image.Resampling.LANCZOS)
    return KeptImage(
        name=name,
        media_type=encoded.media_type,
        data=base64.b64encode(encoded.data).decode(),
        thumbnail=base64.b64encode(_jpeg(small, 75)).decode(),
        width=picture.width,
        height=picture.height,
    )


def is_kept_image(data: str, media_type: str) -> bool:
    """Whether this could have come out of `keep_image`: for what others bring along."""
    try:
        content = base64.b64decode(data, validate=True)
        with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
            is_small = len(content) <= MAX_BYTES and max(opened.size) <= LONG_EDGE
            if not is_small or Image.MIME.get(opened.format or "") != media_type:
                return False
            opened.load()
            return True
    except _SPOILT:
        return False


def _decode(data: bytes, name: str) -> Image.Image:
    """The first frame, upright, in plain colours."""
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise _refused(f"“{name}” has more than {MAX_PIXELS:,} pixels.")
            has_alpha = opened.has_transparency_data
            upright = ImageOps.exif_transpose(opened)
            return upright.convert("RGBA" if has_alpha else "RGB")
    except _SPOILT as error:
        raise _refused(
            f"“{name}” is not a picture that can be read: PNG, JPEG, GIF and WebP are."
        ) from error


def _encode(picture: Image.Image) -> _Encoded:
    """Without loss while that is small: text in screenshots stays sharp."""
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=False)
    if out.tell() <= MAX_BYTES // 2:
        return _Encoded("image/png", out.getvalue())
    flat = _flat(picture)
    sizes = (_jpeg(flat, quality) for quality in (85, 70, 50, 30))
    fitting = next(data for data in sizes if len(data) <= MAX_BYTES)
    return _Encoded("image/jpeg", fitting)


def _flat(picture: Image.Image) -> Image.Image:
    """Without transparency, on white."""
    if picture.mode != "RGBA":
        return picture.copy()
    ground = Image.new("RGB", picture.size, "white")
    ground.paste(picture, mask=picture.getchannel("A"))
    return ground


def _jpeg(picture: Image.Image, quality: int) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=quality)
    return out.getvalue()


def _refused(sentence: str) -> InvalidInputError:
    return InvalidInputError(sentence, field="images")

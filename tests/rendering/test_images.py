"""Pictures: judged by their content, and small before they are kept."""

from __future__ import annotations

import base64
import hashlib
import io
from typing import Any

import pytest
from PIL import Image

from agents.errors import InvalidInputError
from agents.rendering import images
from agents.rendering.images import is_kept_image, keep_image


def picture(kind: str, size: tuple[int, int] = (40, 20), **options: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "red").save(out, kind, **options)
    return out.getvalue()


def opened(data: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(data)))


def refusal(data: bytes) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        keep_image(data, "x.png")
    return caught.value


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_every_kind_is_kept_as_one_that_models_take(kind: str) -> None:
    kept = keep_image(picture(kind), "holiday.bin")

    assert (kept["name"], kept["width"], kept["height"]) == ("holiday.bin", 40, 20)
    assert kept["media_type"] == "image/png"
    assert opened(kept["data"]).size == (40, 20)
    assert opened(kept["thumbnail"]).format == "JPEG"


def test_a_large_picture_is_made_smaller() -> None:
    kept = keep_image(picture("PNG", (4000, 1000)), "wide.png")

    assert (kept["width"], kept["height"]) == (1568, 392)
    assert opened(kept["thumbnail"]).size == (320, 80)


def test_what_stays_large_without_loss_becomes_a_jpeg() -> None:
    noise = hashlib.shake_256(b"noise").digest(900 * 900 * 3)
    out = io.BytesIO()
    Image.frombytes("RGB", (900, 900), noise).save(out, "PNG")

    kept = keep_image(out.getvalue(), "noise.png")

    assert kept["media_type"] == "image/jpeg"
    assert len(base64.b64decode(kept["data"])) <= images.MAX_BYTES


def test_metadata_is_left_behind_and_the_picture_turned_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    exif[0x010E] = "taken at home"

    kept = keep_image(picture("JPEG", exif=exif), "turned.jpg")

    assert (kept["width"], kept["height"]) == (20, 40)
    assert b"taken at home" not in base64.b64decode(kept["data"])


def test_transparency_is_kept_and_white_in_the_thumbnail() -> None:
    out = io.BytesIO()
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(out, "PNG")

    kept = keep_image(out.getvalue(), "clear.png")

    assert opened(kept["data"]).mode == "RGBA"
    assert opened(kept["thumbnail"]).getpixel((1, 1)) == (255, 255, 255)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
        picture("BMP"),
        picture("PNG")[:60],
        picture("JPEG", (400, 400))[:300],
        b"\x89PNG\r\n\x1a\n" + b"\x00" * 100,
    ],
)
def test_what_is_no_readable_picture_is_refused_with_a_sentence(data: bytes) -> None:
    error = refusal(data)

    assert error.field == "images"
    assert error.user_message.startswith("“x.png” is not a picture that can be read")


def test_a_picture_with_too_many_pixels_is_refused_unread() -> None:
    sentence = refusal(picture("PNG", (10_000, 5_001))).user_message

    assert sentence == "“x.png” has more than 50,000,000 pixels."


def test_what_others_bring_along_must_be_like_what_is_kept() -> None:
    kept = keep_image(picture("JPEG"), "x.jpg")
    large = base64.b64encode(picture("PNG", (1569, 1))).decode()

    assert is_kept_image(kept["data"], "image/png")
    assert is_kept_image(kept["thumbnail"], "image/jpeg")
    assert not is_kept_image(kept["data"], "image/webp")
    assert not is_kept_image(large, "image/png")
    assert not is_kept_image(kept["data"][:80], "image/png")
    assert not is_kept_image("no base64", "image/png")

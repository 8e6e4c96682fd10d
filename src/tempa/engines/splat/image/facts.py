"""What a picture's header shows, what is wrong with it, and how far a picture may go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tempa.core.errors import TempaError
from tempa.core.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from tempa.core.limits import Limits

Format = Literal["png", "jpeg", "webp", "avif", "tiff", "heic"]

SIDE_MIN = 64  # pixels; below that there is nothing to see a shape by
ASPECT_MAX = 8.0  # a strip of 2 x 400 pixels cost an upstream model 5 GB and 30 s


@dataclass(frozen=True, slots=True)
class Facts:
    """Width and height in pixels as they are stored, before the picture is turned upright."""

    format: Format
    width: int
    height: int
    animated: bool = False
    has_alpha: bool = False  # a channel or a key colour is there; whether it is used, pixels show


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a picture is refused: a code of `core.errors.CODES`, and the limit it broke if there is one."""

    code: str
    message: str
    limit: float | None = None
    actual: float | None = None
    hint: str | None = None

    def error(self) -> TempaError:
        """The same, to fail a job with."""
        numbers = {"limit": self.limit, "actual": self.actual}
        detail = {name: value for name, value in numbers.items() if value is not None}
        return TempaError(self.code, self.message, hint=self.hint, detail=detail)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a picture may have; `of` takes the server's limits."""

    bytes_max: int = DEFAULT_LIMITS.image_bytes
    pixels_max: int = DEFAULT_LIMITS.image_megapixels * 1_000_000

    @classmethod
    def of(cls, limits: Limits) -> Bounds:
        """Those of a server."""
        return cls(limits.image_bytes, limits.image_megapixels * 1_000_000)


class Refused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """Raised by the header readers with what is wrong."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def broken(message: str, hint: str | None = None) -> Refused:
    """The bytes begin as the format does, and go on otherwise."""
    return Refused(Fault("IMAGE_UNREADABLE", message, hint=hint))


def unsupported(message: str, hint: str | None = None) -> Refused:
    """Bytes of another format, or of a kind of this one that is not read here."""
    return Refused(Fault("IMAGE_FORMAT_UNSUPPORTED", message, hint=hint))

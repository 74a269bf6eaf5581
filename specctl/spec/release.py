"""Releases of the engines: which ones are known, and how two of them compare."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

ANY = "*"
# One bound of a range of releases, such as `>=0.31`.
BOUND = r"(?:>=|<=|==|!=|>|<)\s*v?\d+\.\d+(?:\.\d+)?(?:\.?(?:rc|a|b)\d+)?"
_PATTERN = re.compile(r"^v?(\d+)\.(\d+)(?:\.(\d+))?(?:\.?(rc|a|b)(\d+))?(?:[.+].*)?$")


@total_ordering
@dataclass(frozen=True, eq=False)
class Release:
    """A release number such as `0.31.0` or `1.4.0rc0`; a release candidate stands before its final release."""

    text: str
    key: tuple[int, int, int, int]

    @classmethod
    def parse(cls, text: str) -> Release:
        """Read a release number; raises ValueError where it is none."""
        found = _PATTERN.match(text.strip())
        if not found:
            raise ValueError(f"{text!r} is no release number such as 0.31.0 or 1.4.0rc0")
        major, minor, patch, stage, count = found.groups()
        candidate = int(count) if stage else 1 << 30
        return cls(text.strip().removeprefix("v"), (int(major), int(minor), int(patch or 0), candidate))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self.key == other.key

    def __lt__(self, other: Release) -> bool:
        return self.key < other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.text


KNOWN_RELEASES: dict[str, tuple[str, ...]] = {
    "vllm": ("0.31.0",),
    "sglang": ("0.5.22",),
    "trtllm": ("1.2.1", "1.4.0rc0"),
    "specctl": ("1",),
}

DEFAULT_RELEASE: dict[str, str] = {"vllm": "0.31.0", "sglang": "0.5.22", "trtllm": "1.2.1", "specctl": "1"}


def known(engine: str, text: str | None) -> str:
    """The known release of `engine` that `text` means; None means the default.

    A release between two known ones counts as the nearest one before it (the oldest known one where there is none).
    Raises ValueError where `text` is no release number.
    """
    if text is None:
        return DEFAULT_RELEASE[engine]
    wanted = None if engine == "specctl" and text == "1" else Release.parse(text)
    candidates = KNOWN_RELEASES[engine]
    if wanted is None or engine == "specctl" or text in candidates:
        return text if text in candidates else DEFAULT_RELEASE[engine]
    below = [name for name in candidates if Release.parse(name) <= wanted]
    return below[-1] if below else candidates[0]


def bounds(text: str) -> tuple[tuple[str, Release], ...]:
    """The bounds of a range such as `>=0.31,<0.33`; none for `*`. Raises ValueError where `text` is no range."""
    if text.strip() == ANY:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(BOUND, part) for part in parts):
        raise ValueError(f"{text!r} is no range of releases such as >=0.31 or >=1.2,<1.4")
    signs = [re.match(r"[<>=!]+", part) for part in parts]
    return tuple(
        (sign.group(), Release.parse(part[sign.end() :])) for part, sign in zip(parts, signs, strict=True) if sign
    )


def allows(text: str, release: str) -> bool:
    """Whether the range `text` holds `release`; both as `bounds` and `Release.parse` read them."""
    here = Release.parse(release)
    tests = {
        ">=": lambda limit: here >= limit,
        "<=": lambda limit: here <= limit,
        "==": lambda limit: here == limit,
        "!=": lambda limit: here != limit,
        ">": lambda limit: here > limit,
        "<": lambda limit: here < limit,
    }
    return all(tests[sign](limit) for sign, limit in bounds(text))

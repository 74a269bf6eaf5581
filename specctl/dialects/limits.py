"""Whether a setting was made for an engine and release: its `engines:` against what is asked for."""

from __future__ import annotations

from specctl.dialects.foreign import title
from specctl.dialects.reading import Finding
from specctl.spec import SpecDecodeConfig
from specctl.spec.release import KNOWN_RELEASES, allows

CODE = "SPC405"


def outside_limits(spec: SpecDecodeConfig, engine: str, release: str) -> list[Finding]:
    """What `engines:` has against running the setting on `release` of `engine`: nothing, a warning where it does not
    name the engine, an error where it excludes the release. The bundled runtime needs no entry.
    """
    limits = spec.limits
    if not limits or engine == "specctl":
        return []
    if engine not in limits:
        names = ", ".join(title(name) for name in limits)
        return [
            Finding(
                CODE,
                f"engines names {names}; nothing is known of this setting on {title(engine)}",
                ("engines",),
                help=f"try it, then add {engine} with its releases to engines",
                severity="warning",
                at_key=True,
            )
        ]
    try:
        inside = allows(limits[engine], release)
    except ValueError:
        return []  # said when the file was read, or no number: there is nothing to compare
    return [] if inside else [_excluded(engine, limits[engine], release)]


def _excluded(engine: str, limit: str, release: str) -> Finding:
    fitting = [known for known in KNOWN_RELEASES[engine] if allows(limit, known)]
    cure = f"use {title(engine)} {fitting[-1]}" if fitting else f"use a release {limit}"
    return Finding(
        CODE,
        f"this setting is for {title(engine)} {limit}, and {release} was asked for",
        ("engines", engine),
        help=f"{cure}, or widen engines after a try",
    )

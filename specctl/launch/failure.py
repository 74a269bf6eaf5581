"""Why an engine's start failed, from its last words."""

from __future__ import annotations

import re
from dataclasses import dataclass

SIGKILL_STATUS = -9
_SHOWN_LINES = 12


@dataclass(frozen=True)
class Failure:
    """``reason``: one sentence; ``cure``: what to do; ``words``: the line of the log that says it, or the last ones."""

    reason: str
    cure: str
    words: str


# In the order they are looked for: a full GPU ends in many follow-up errors, a port that is taken in few.
_KINDS: tuple[tuple[str, str, str], ...] = (
    (
        r"address already in use|Errno 98\b|EADDRINUSE",
        "its port is in use",
        "choose another --port, or end the process that has it",
    ),
    (
        r"out of memory|OutOfMemoryError|No available memory for the cache blocks|Not enough memory|MemoryError"
        r"|larger than the available KV cache memory|Free memory on device",
        "it ran out of memory",
        "draft weights and the draft's KV cache come off the target's KV cache: give a shorter maximum length, fewer "
        "sequences or a smaller share of memory after --, or a smaller draft",
    ),
    (
        r"validation errors? for|unrecognized arguments|error: argument|invalid choice|No such option"
        r"|Unsupported speculative method|extra inputs are not permitted|unknown speculative",
        "it refused its settings",
        "what it says is its own; `specctl validate-config` explains settings of speculation",
    ),
)


def explain(log: str, status: int | None) -> Failure:
    """Name the failure that ``log``, the engine's last output, tells; ``status``: how the process ended."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    for pattern, reason, cure in _KINDS:
        at = next((n for n, line in enumerate(lines) if re.search(pattern, line, re.IGNORECASE)), None)
        if at is not None:
            # pydantic and argparse say what was wrong in the line after.
            return Failure(reason, cure, "\n".join(lines[at : at + 2]))
    if status == SIGKILL_STATUS:
        cure = "the machine was most likely out of memory: see dmesg, and give the engine less to load"
        return Failure("the system killed it", cure, _last(lines))
    return Failure("it ended while loading", "its last lines are above", _last(lines))


def _last(lines: list[str]) -> str:
    return "\n".join(lines[-_SHOWN_LINES:])

"""What a server counted about drafting while a block ran: the difference of two readings of its `/metrics`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specctl.dialects.counters import Page

if TYPE_CHECKING:
    from specctl.runtime import SpecStats

NO_COUNTERS = "the server exports no counters about drafting"


@dataclass(frozen=True)
class Difference:
    """What the server counted between two readings. `stats` None: unknown, `notes` say why."""

    stats: SpecStats | None
    notes: tuple[str, ...]
    tokens: int | None


def difference(before: Page | None, after: Page | None, requests: int) -> Difference:
    """The counters between two readings, `requests` of ours having finished in between."""
    if before is None or after is None:
        return Difference(None, ("acceptance unknown: /metrics could not be read",), None)
    problem = _problem(before, after)
    if problem is not None:
        return Difference(None, (problem,), None)
    changed = {name: after.counts[name] - before.counts.get(name, 0) for name in after.counts}
    tokens = {name: after.tokens[name] - before.tokens.get(name, 0) for name in after.tokens}
    notes = []
    if len(after.engines) > 1:
        notes.append(f"the counters of {len(after.engines)} engines behind this port are added up")
    if "verify_calls" in changed:
        stats = _from_calls(changed["verify_calls"], tokens.get("sglang"), requests)
        notes.append("accepted tokens follow from tokens and verify calls; blocks that a stop cuts make them too few")
        return Difference(stats, tuple(notes), tokens.get("sglang"))
    places = {place: count - before.per_position.get(place, 0) for place, count in after.per_position.items()}
    return Difference(_from_counts(changed, places), tuple(notes), tokens.get("vllm"))


def _problem(before: Page, after: Page) -> str | None:
    """Why the two readings say nothing, if so."""
    if "verify_calls" in after.counts and "drafts" in after.counts:
        return "acceptance unknown: /metrics has the counters of two kinds of engine, vLLM's and SGLang's"
    if not after.counts:
        return f"acceptance unknown: {NO_COUNTERS}"
    if "verify_calls" not in after.counts and after.missing:
        return f"acceptance unknown: /metrics lacks {', '.join(sorted(after.missing))}"
    fell = [name for name, value in after.counts.items() if value < before.counts.get(name, 0)]
    if fell or before.engines - after.engines:
        return "acceptance unknown: a counter of /metrics went down, so the server was restarted meanwhile"
    return None


def _from_counts(changed: dict[str, int], places: dict[int, int]) -> SpecStats:
    from specctl.runtime import SpecStats

    length = max(places, default=-1) + 1
    return SpecStats(
        num_drafts=changed["drafts"],
        num_draft_tokens=changed["draft_tokens"],
        num_accepted_tokens=changed["accepted_tokens"],
        accepted_per_position=[places.get(place, 0) for place in range(length)] if changed["drafts"] else [],
    )


def _from_calls(calls: int, tokens: int | None, requests: int) -> SpecStats | None:
    """Each verify call emits one token of the target's and what was accepted; each request got one from its prefill."""
    from specctl.runtime import SpecStats

    if tokens is None or calls <= 0:
        return None
    accepted = max(0, tokens - requests - calls)
    return SpecStats(num_verify_steps=calls, num_drafts=calls, num_accepted_tokens=accepted)


def from_histogram(histogram: Iterable[int], drafted: int, verify_steps: int = 0) -> SpecStats:
    """Counters of one request from its histogram (index: drafts accepted in a step) and its drafted tokens."""
    from specctl.runtime import SpecStats

    counts = list(histogram)
    return SpecStats(
        num_verify_steps=verify_steps,
        num_drafts=sum(counts),
        num_draft_tokens=drafted,
        num_accepted_tokens=sum(place * count for place, count in enumerate(counts)),
        accepted_per_position=[sum(counts[place + 1 :]) for place in range(len(counts) - 1)],
        acceptance_length_histogram=counts,
    )

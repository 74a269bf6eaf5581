"""Other runtimes on the same weights, timed by the same client rules: the honest yardstick.

Belongs here: one file a runtime; each gives `load.Runner`s. Only here may the bench import torch and transformers.
Does not belong here: speed of our own runtime, comparison, printing.
Who may enter: `bench.run`, through `make_peers`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from specctl.bench.conversation import Follow, unfollowed
from specctl.bench.records import Runner
from specctl.errors import UsageError

TRANSFORMERS = "transformers"
LOOKUP = "transformers-lookup"
ASSISTED = "transformers-assisted"
PEERS = (TRANSFORMERS, LOOKUP, ASSISTED)


@dataclass(frozen=True)
class PeerSetup:
    """What a peer has to share with our runtime: weights, dtype (torch's name), device, EOS tokens, k, the draft, and
    how a conversation goes on.
    """

    target: str
    dtype: str
    device: str
    eos_token_ids: frozenset[int]
    k: int
    draft: str | None
    follow: Follow = unfollowed


def peer_names(listed: str) -> list[str]:
    """A comma-separated list of peers. Raises `UsageError` for a name that is none."""
    names = list(dict.fromkeys(part.strip() for part in listed.split(",") if part.strip()))
    for name in names:
        if name not in PEERS:
            near = difflib.get_close_matches(name, PEERS, n=1)
            help = f"did you mean {near[0]}?" if near else f"the peers are {', '.join(PEERS)}"
            raise UsageError(f"--against: no peer is called {name!r}", help=help)
    return names


def make_peers(names: Sequence[str], setup: PeerSetup) -> list[Runner]:
    """The runners of `names`.

    Raises `UsageError` where the assisted one has no draft, `SpecctlError` where transformers cannot load a model.
    """
    if ASSISTED in names and setup.draft is None:
        raise UsageError(f"{ASSISTED} needs a draft", help="give one with --draft draft_model=MODEL")
    if not names:
        return []
    from specctl.bench.peers.generate import load_peers

    return load_peers(names, setup)

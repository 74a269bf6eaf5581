"""From a name to what planning needs of a model: files on this machine first, then the tables of known sizes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from specctl.errors import MissingError
from specctl.modelinfo import ModelFacts, read_facts
from specctl.modelinfo.families import mtp_family
from specctl.modelinfo.weights import tensor_bytes, tensor_names
from specctl.planning.acceptance import UNKNOWN, Acceptance
from specctl.planning.drafts import MODEL_FREE, DraftShape, draft_shape, given_shape, model_free, mtp_shape
from specctl.planning.known_drafts import DRAFTS, MTP_PUBLISHED, WITHOUT_SIZE, KnownDraft, Lengths
from specctl.planning.known_targets import DOUBTS, TARGETS, WITHOUT_SHAPE
from specctl.planning.shape import shape_of

TABLE = Path("/")  # where a known model's files would lie if it had any


@dataclass(frozen=True)
class Known:
    """A model by name. `stored_bytes`: its tensors on disk, where they are here; `doubt`: what its sizes hang on."""

    facts: ModelFacts
    origin: str
    stored_bytes: int | None = None
    doubt: str = ""

    @property
    def name(self) -> str:
        """As the user wrote it, or as the table spells it."""
        return self.facts.name


@dataclass(frozen=True)
class KnownDrafting:
    """A draft by name. `facts` is None for one without weights; `k` the recommended count."""

    name: str
    shape: DraftShape
    facts: ModelFacts | None
    origin: str
    k: int | None
    acceptance: Acceptance
    stored_bytes: int | None = None
    target: str | None = None


def find_target(name: str) -> Known | None:
    """The target that `name` means, or None where neither its files nor its sizes are known."""
    local = read_facts(name)
    if isinstance(local, ModelFacts):
        kind = "header of" if local.path.is_file() else "config.json in"
        return Known(local, f"{kind} {local.path}", _stored(local))
    known = _spelt(name, TARGETS)
    if known is None:
        return None
    return Known(ModelFacts(known, TABLE, TARGETS[known]), "built-in table", None, DOUBTS.get(known, ""))


def _stored(facts: ModelFacts) -> int | None:
    """Bytes of the weights a server loads: those of prediction layers, which it leaves out without MTP, taken off."""
    if facts.path.is_file():
        return facts.path.stat().st_size
    total, names = tensor_bytes(facts.path), tensor_names(facts.path) or ()
    marks = (".mtp", f"layers.{facts.num_layers}.")
    if total is None or mtp_family(facts) is None or not any(mark in f".{name}" for name in names for mark in marks):
        return total
    shape, own = shape_of(facts).parts, mtp_shape(facts).stored
    return round(total * shape.total / (shape.total + own.total))


def target_named(name: str) -> Known:
    """As `find_target`; raises `MissingError` with the nearest name."""
    found = find_target(name)
    if found is not None:
        return found
    known = _spelt(name, WITHOUT_SHAPE)
    if known is not None:
        raise MissingError(f"{known} cannot be planned: {WITHOUT_SHAPE[known]}")
    local = read_facts(name)
    assert not isinstance(local, ModelFacts)
    raise MissingError(f"unknown model {name!r}: {local.message}", help=_near(name, [*TARGETS]))


def draft_named(name: str, target: Known, method: str | None = None) -> KnownDrafting:
    """The draft that `name` means beside `target`: a checkpoint, a known id, `mtp` (the target's own layers), `ngram`
    or `suffix`. Raises `MissingError` with the nearest name, `SpecctlError` for what is no such draft."""
    if name in MODEL_FREE:
        return KnownDrafting(name, model_free(name), None, "no weights", None, UNKNOWN)
    if name == "mtp":
        return _own_layers(target)
    known = _spelt(name, DRAFTS)
    row = DRAFTS[known] if known else None
    local = read_facts(name)
    if isinstance(local, ModelFacts):
        names = tensor_names(local.path) or ()
        own = any("embed_tokens" in each for each in names)
        shape = draft_shape(local, target.facts, method=method, own_embedding=own)
        accepted = published(row.published, row.source) if row else UNKNOWN
        count = row.k if row else local.proposed_tokens
        origin = f"config.json in {local.path}"
        return KnownDrafting(name, shape, local, origin, count, accepted, _stored(local), local.verifier)
    if row is not None and known is not None:
        return _of_row(known, row, target)
    plain = find_target(name)
    unsized = _spelt(name, WITHOUT_SIZE)
    if plain is None and unsized is not None:
        raise MissingError(
            f"the size of {unsized} is not published",
            help="give the folder of the checkpoint, or an id in the local cache",
        )
    if plain is None:
        raise MissingError(f"unknown draft {name!r}: {local.message}", help=_near(name, [*DRAFTS, "mtp", "ngram"]))
    shape = draft_shape(plain.facts, target.facts, method=method)
    return KnownDrafting(plain.name, shape, plain.facts, plain.origin, None, UNKNOWN, plain.stored_bytes)


def _of_row(name: str, row: KnownDraft, target: Known) -> KnownDrafting:
    if row.config is not None:
        facts = ModelFacts(name, TABLE, row.config)
        shape = draft_shape(facts, target.facts, method=row.method, own_embedding=row.own_embedding)
    else:
        facts = ModelFacts(name, TABLE, {"torch_dtype": "bfloat16"})
        shape = given_shape(row.method, row.parameters, row.elements, row.heads, row.layers, row.max_k)
    if row.max_k is not None:
        shape = replace(shape, max_k=row.max_k)
    accepted = published(row.published, row.source)
    return KnownDrafting(name, shape, facts, f"built-in table: {row.source}", row.k, accepted, None, row.target)


def _own_layers(target: Known) -> KnownDrafting:
    k, lengths, source = MTP_PUBLISHED.get(target.name, (None, {}, ""))
    shape, accepted = mtp_shape(target.facts), published(lengths, source)
    return KnownDrafting("mtp", shape, target.facts, "layers of the target", k, accepted, None, target.name)


def other_target(draft: KnownDrafting, target: Known) -> str | None:
    """The target a draft was made for, where that is another one than `target`.

    Quantized copies count as the same, and so does a folder of the same shape, whatever it is called."""
    if draft.target is None or _base(draft.target) == _base(target.name):
        return None
    meant = find_target(draft.target)
    if target.facts.path != TABLE and (meant is None or shape_of(meant.facts) == shape_of(target.facts)):
        return None
    return draft.target


def _base(name: str) -> str:
    last = name.lower().rstrip("/").split("/")[-1]
    return re.sub(r"[-_](fp8|nvfp4|mxfp4|int4|int8|awq|gptq|w4a16|w8a8|bf16|dynamic|quantized).*$", "", last)


def published(lengths: Lengths, source: str) -> Acceptance:
    """The mean over the data sets, for each k that all of them have; else at the k that most of them have."""
    counts = [set(each) for each in lengths.values()]
    shared = set.intersection(*counts) if counts else set()
    if not shared and counts:
        every = sorted(set.union(*counts))
        shared = {max(every, key=lambda k: sum(k in each for each in counts))}
    used = {name: each for name, each in lengths.items() if shared and shared <= set(each)}
    means = {k: sum(each[k] for each in used.values()) / len(used) for k in sorted(shared)}
    return Acceptance(means, f"published: mean over {', '.join(used)} ({source})") if means else UNKNOWN


def _spelt(name: str, table: Mapping[str, object]) -> str | None:
    """The table's spelling of `name`; case does not count, nor does the organisation where one entry fits."""
    wanted = name.strip().lower()
    exact = next((each for each in table if each.lower() == wanted), None)
    if exact is not None or "/" in wanted or not wanted:
        return exact
    short = [each for each in table if each.lower().split("/")[-1] == wanted]
    return short[0] if len(short) == 1 else None


def _near(name: str, known: list[str]) -> str:
    lower = {each.lower(): each for each in known} | {each.lower().split("/")[-1]: each for each in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    near = near or difflib.get_close_matches(name.lower().split("/")[-1], lower, n=1, cutoff=0.6)
    hint = f"did you mean {lower[near[0]]}? " if near else ""
    return f"{hint}give a folder with a config.json, an id in the local cache, or a known id (docs/planning.md)"

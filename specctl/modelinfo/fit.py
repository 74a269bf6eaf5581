"""Whether a draft fits a target: one check a question, each with its evidence. JSON files and headers only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from specctl.modelinfo.damage import config_fault, damage_of
from specctl.modelinfo.describe import has_template, is_assistant, method_of
from specctl.modelinfo.facts import ModelFacts
from specctl.modelinfo.taps import name_outputs
from specctl.modelinfo.tokens import token_table
from specctl.modelinfo.vocabulary import ADDED, OTHER, SAME, likeness_of, sizes
from specctl.modelinfo.weights import shapes, tensor_names

OK, NOTE, FAIL, SKIPPED = "ok", "note", "fail", "skipped"
TAP_KEY = "eagle_aux_hidden_state_layer_ids"
# Heads that read the target's hidden states; the others are language models.
HEADS = frozenset(("eagle", "eagle3", "mtp", "medusa", "mlp_speculator", "dflash", "dspark"))
_WIDTH_TENSORS = {"eagle": ("fc.weight", 2), "eagle3": ("fc.weight", 3), "dflash": ("fc.weight", None)}


@dataclass(frozen=True)
class Check:
    """One question: ``status`` is ok, note (works, but look at it), fail, or skipped (files do not say)."""

    name: str
    status: str
    evidence: str

    def as_dict(self) -> dict[str, str]:
        return {"name": self.name, "status": self.status, "evidence": self.evidence}


@dataclass(frozen=True)
class Pair:
    """A target and its draft. ``method``: what the draft is for; `draft_model` for an ordinary model."""

    target: ModelFacts
    draft: ModelFacts
    method: str

    @property
    def is_head(self) -> bool:
        return self.method in HEADS

    @property
    def layer_config(self) -> Mapping[str, Any]:
        """The part of the draft's config that describes its layers (the speculators layout nests it)."""
        return layer_config_of(self.draft.text)

    def number(self, key: str) -> int | None:
        found = self.layer_config.get(key)
        return found if isinstance(found, int) and not isinstance(found, bool) else None


def layer_config_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a draft's config that describes its layers."""
    inner = config.get("transformer_layer_config")
    return inner if isinstance(inner, Mapping) else config


def pair_of(target: ModelFacts, draft: ModelFacts) -> Pair:
    """The two, with the method told by the draft's content."""
    return Pair(target, draft, method_of(draft) or "draft_model")


def check_fit(pair: Pair) -> list[Check]:
    """All checks of a pair, in the order in which they matter."""
    return [check for look in CHECKS for check in look(pair)]


def fits(checks: list[Check]) -> str:
    """`no` where a check fails, `with-notes` where one has a note, else `yes`."""
    found = {check.status for check in checks}
    # Where neither says anything, nobody knows whether the ids of the two mean the same.
    unknown = {"tokenizer", "vocabulary"} <= {check.name for check in checks if check.status == SKIPPED}
    if unknown:
        found.add(NOTE)
    return "no" if FAIL in found else "with-notes" if NOTE in found else "yes"


def _weights(pair: Pair) -> Iterator[Check]:
    for role, facts in (("target", pair.target), ("draft", pair.draft)):
        fault = damage_of(facts.path)
        if fault:
            yield Check(f"{role} weights", FAIL, fault)
        if odd := config_fault(facts):
            yield Check(f"{role} config", FAIL, odd)


def _method(pair: Pair) -> Iterator[Check]:
    if pair.draft.path == pair.target.path:
        yield Check("method", FAIL, "draft and target are the same checkpoint: a draft must be cheaper")
    elif method_of(pair.target) is not None:
        yield Check("method", FAIL, f"the target is itself a draft for {method_of(pair.target)}")
    else:
        yield Check("method", OK, f"the draft is for {pair.method}, told by its content")


def _family(pair: Pair) -> Iterator[Check]:
    """An assistant of Gemma 4 reads the keys and values of its target, which other families keep in other ways."""
    kind = pair.target.model_type
    if is_assistant(pair.draft) and not kind.startswith("gemma4"):
        told = f"an assistant of Gemma 4 reads its target's keys and values; the target is {kind or 'of no named type'}"
        yield Check("family", FAIL, told)


def _verifier(pair: Pair) -> Iterator[Check]:
    """The target that the draft says it was trained for."""
    named = pair.draft.verifier or pair.draft.config.get("base_model_name_or_path")
    if not isinstance(named, str) or not named:
        return
    same = is_named(named, pair.target.name) or _last(named) == pair.target.path.name
    told = f"the draft was trained for {named}"
    yield Check("trained for", OK if same else NOTE, told if same else f"{told}; the target is {pair.target.name}")


def is_named(verifier: str, target: str) -> bool:
    """Whether a draft that was trained for ``verifier`` was for ``target``, by the last part of the names."""
    return _last(verifier) == _last(target)


def _last(name: str) -> str:
    return name.rstrip("/").rsplit("/", 1)[-1].lower()


def _tokenizer(pair: Pair) -> Iterator[Check]:
    one, other = token_table(pair.target.path), token_table(pair.draft.path)
    if other is None and pair.is_head:
        yield Check("tokenizer", OK, "the head brings none and uses the target's")
        return
    found = likeness_of(pair.target, pair.draft)
    if found is None:
        lacking = "target" if one is None else "draft"
        yield Check("tokenizer", SKIPPED, f"the {lacking} has no tokenizer.json that can be read")
    else:
        yield Check("tokenizer", {SAME: OK, ADDED: NOTE, OTHER: FAIL}[found.kind], found.evidence)


def _vocabulary(pair: Pair) -> Iterator[Check]:
    one, rows = pair.target.vocab_size, pair.number("vocab_size")
    small = pair.draft.number("draft_vocab_size", "truncated_vocab_size")
    differ = sizes(pair.target, rows)
    if one is None or rows is None:
        yield Check("vocabulary", SKIPPED, "a config.json names no vocab_size")
    elif differ:
        yield _sizes_differ(pair, *differ)
    else:
        yield Check("vocabulary", OK, f"both have {one} rows")
    if small is not None and one is not None and small < one:
        yield _map(pair, small, one)


def _sizes_differ(pair: Pair, one: int, other: int) -> Check:
    """Rows beyond the tokens are padding; where the tokens themselves are the same, they do no harm."""
    found = likeness_of(pair.target, pair.draft)
    told = f"the target has {one} rows, the draft {other}"
    if pair.is_head or (found is not None and found.kind == ADDED):
        return Check("vocabulary", NOTE, told)
    if found is None or found.kind == OTHER:
        return Check("vocabulary", FAIL, told)
    table = token_table(pair.target.path)
    used = max({**table.ordinary, **table.added}, default=0) + 1 if table else 0
    engines = "vLLM wants equal sizes or use_heterogeneous_vocab"
    return Check("vocabulary", NOTE, f"{told}; both tokenizers use {used}, the rest is padding ({engines})")


def has_map(draft: ModelFacts) -> bool | None:
    """Whether a checkpoint maps its own vocabulary to the target's; None where its tensors are not known."""
    names = tensor_names(draft.path)
    return None if names is None else any(name.rsplit(".", 1)[-1] in ("d2t", "t2d") for name in names)


def _map(pair: Pair, small: int, full: int) -> Check:
    held = shapes(pair.draft.path)
    if held is None:
        return Check("vocabulary map", SKIPPED, "the draft has no safetensors headers to read")
    if not has_map(pair.draft):
        return Check("vocabulary map", FAIL, f"the draft knows {small} of {full} tokens, but holds no map (d2t or t2d)")
    wrong = "d2t" in held and held["d2t"] != (small,)
    told = f"d2t has the shape {list(held['d2t'])}" if wrong else f"{small} of {full} tokens are drafted"
    return Check("vocabulary map", FAIL if wrong else OK, told + (f"; wanted [{small}]" if wrong else ""))


def made_for_width(head: ModelFacts) -> int | None:
    """The width of the states that a head reads, as its config states it; its own where it names no other."""
    own = layer_config_of(head.text).get("hidden_size")
    return head.number("target_hidden_size") or (own if isinstance(own, int) else None)


def widths(target: ModelFacts, head: ModelFacts) -> tuple[int, int] | None:
    """The target's width and the one that a head was made for, where both are known and differ."""
    ours, theirs = target.hidden_size, made_for_width(head)
    return (ours, theirs) if ours and theirs and ours != theirs else None


def _width(pair: Pair) -> Iterator[Check]:
    """Heads must be as wide as the states they read."""
    wanted = pair.target.hidden_size
    if not pair.is_head or wanted is None:
        return
    stated = pair.draft.number("backbone_hidden_size") if is_assistant(pair.draft) else None
    stated = stated or made_for_width(pair.draft)
    if stated is not None and stated != wanted:
        yield Check("hidden size", FAIL, f"the head is made for states of {stated}, the target's have {wanted}")
        return
    name, factor = _WIDTH_TENSORS.get(pair.method, ("", None))
    shape = (shapes(pair.draft.path) or {}).get(name)
    if shape is None or len(shape) != 2:
        yield Check("hidden size", OK if stated else SKIPPED, f"{wanted} in both" if stated else "the head names none")
        return
    taps = len(tap_ids(pair.draft) or ()) or factor
    if shape[1] % wanted or (taps and pair.method != "eagle3" and shape[1] != taps * wanted):
        yield Check("hidden size", FAIL, f"{name} reads {shape[1]} numbers; the target's states have {wanted}")
    else:
        yield Check("hidden size", OK, f"{name} reads {shape[1] // wanted} x {wanted}")


def tap_ids(draft: ModelFacts) -> list[int] | None:
    """The target layers that a head names, as it counts them; None where it names none."""
    nested = [draft.config.get(key) for key in ("eagle_config", "dflash_config")]
    places = [draft.config, *(each for each in nested if isinstance(each, Mapping))]
    for place in places:
        for key in (TAP_KEY, "aux_hidden_state_layer_ids", "target_layer_ids"):
            ids = place.get(key)
            if isinstance(ids, list) and ids and all(isinstance(each, int) for each in ids):
                return ids
    return None


def _taps(pair: Pair) -> Iterator[Check]:
    layers = pair.target.num_layers
    if pair.method not in ("eagle3", "dflash") or layers is None:
        return
    ids = tap_ids(pair.draft)
    if ids is None:
        usual = (2, layers // 2, layers - 3)
        good = len(set(usual)) == 3 and min(usual) > 0
        told = f"the head names no layers; of {layers} the usual ones are {', '.join(map(str, usual))}"
        yield Check("tap layers", OK if good else FAIL, told)
    elif max(ids) > layers or min(ids) < -1 or len(set(ids)) < len(ids):
        yield Check("tap layers", FAIL, f"the head reads layers {ids}; the target has {layers}")
    elif (
        pair.method == "eagle3"
        and "speculators_model_type" not in pair.draft.config
        and name_outputs(ids, layers) is None
    ):
        yield Check(
            "tap layers", NOTE,
            f"{ids} may count layers passed, or name the layers whose output is read (one less): set aux_layers",
        )  # fmt: skip
    else:
        yield Check("tap layers", OK, f"{ids} of {layers}")


def _context(pair: Pair) -> Iterator[Check]:
    one, other = pair.target.max_positions, pair.number("max_position_embeddings")
    if one is None or other is None:
        return
    if other >= one:
        yield Check("context", OK, f"{other} positions, the target has {one}")
    else:
        told = f"the draft was made for {other} positions, the target for {one}: expect fewer accepted tokens beyond"
        yield Check("context", NOTE, told)


def _rope(pair: Pair) -> Iterator[Check]:
    """Other positions than in training are a silent fault of heads; for models of one family merely odd."""
    one, other = theta_of(pair.target.text), theta_of(pair.layer_config)
    if one is None or other is None or not pair.is_head:
        return
    same = one == other
    yield Check("rope theta", OK if same else NOTE, f"{other:g}" + ("" if same else f"; the target has {one:g}"))


def theta_of(config: Mapping[str, Any]) -> float | None:
    """The base of the rotations that a config states."""
    nested = config.get("rope_parameters")
    found = config.get("rope_theta") or (nested.get("rope_theta") if isinstance(nested, Mapping) else None)
    return float(found) if isinstance(found, (int, float)) else None


def _template(pair: Pair) -> Iterator[Check]:
    if has_template(pair.target.path) is False:
        yield Check("chat template", NOTE, "the target has none: a draft trained on conversations will accept little")


def _numbers(pair: Pair) -> Iterator[Check]:
    if pair.draft.dtype == "float16" and pair.target.dtype not in (None, "float16"):
        yield Check("dtype", NOTE, f"the draft is float16, the target {pair.target.dtype}: float16 may overflow")
    if pair.draft.quant_method and not pair.target.quant_method:
        yield Check("quantization", NOTE, f"the draft is {pair.draft.quant_method}, the target is not quantized")


def _embedding(pair: Pair) -> Iterator[Check]:
    names = tensor_names(pair.draft.path)
    if names is None or pair.method not in ("eagle", "eagle3"):
        return
    own = any(name.endswith("embed_tokens.weight") for name in names)
    narrow = pair.number("hidden_size") not in (None, pair.target.hidden_size)
    if own:
        yield Check("embedding", OK, "the head brings its own")
    elif narrow:
        yield Check("embedding", FAIL, "the head has no embedding of its own, and the target's has another width")
    else:
        yield Check("embedding", OK, "the target's is used")


CHECKS: tuple[Callable[[Pair], Iterator[Check]], ...] = (
    _weights,
    _method,
    _family,
    _verifier,
    _tokenizer,
    _vocabulary,
    _width,
    _taps,
    _embedding,
    _context,
    _rope,
    _template,
    _numbers,
)

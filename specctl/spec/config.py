"""`SpecDecodeConfig`: the one canonical, frozen form of a speculative setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from specctl.spec.methods import METHODS, Method

# What a file of specctl's own says about itself: where it can run, where it is from, what to expect of it.
ABOUT = ("engines", "source", "published", "advice")


def _changed(part: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults; tuples become lists."""
    found = {}
    for row in fields(part):
        value = getattr(part, row.name)
        if row.compare and value != row.default:
            found[row.name] = list(value) if isinstance(value, tuple) else value
    return found


@dataclass(frozen=True)
class Acceptance:
    """How drafted tokens are verified.

    `method`: `standard` (rejection sampling, lossless), `block` (joint, lossless), `coupled` (noise fixed by seed and
    position: the same text with any draft or none, lossless), `typical` and `relaxed` (lossy),
    `synthetic` (forced rates, for measurements). `synthetic_rates[i]`: probability that the first i + 1 drafts are
    accepted; `synthetic_length`: tokens a step, bonus included. `threshold_single` and `threshold_acc` are SGLang's
    two probabilities; `relaxed_topk` and `relaxed_delta` are TensorRT-LLM's, in effect between `thinking_begin_token`
    and `thinking_end_token` (ids), or everywhere where these are None.
    """

    method: str = "standard"
    synthetic_rates: tuple[float, ...] | None = None
    synthetic_length: float | None = None
    threshold_single: float = 1.0
    threshold_acc: float = 1.0
    relaxed_topk: int | None = None
    relaxed_delta: float | None = None
    posterior_threshold: float | None = None
    thinking_begin_token: int | None = None
    thinking_end_token: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The values that differ from the defaults, as JSON types."""
        return _changed(self)

    @property
    def lossy(self) -> bool:
        """Whether the output's distribution may differ from the target's."""
        return self.method not in ("standard", "block", "coupled") or (self.threshold_single, self.threshold_acc) != (
            1.0,
            1.0,
        )


@dataclass(frozen=True)
class ScheduleStep:
    """At batch sizes `first` to `last` (None: no upper end), draft `num_speculative_tokens` tokens (0: none)."""

    first: int
    last: int | None
    num_speculative_tokens: int

    def as_list(self) -> list[int | None]:
        """`[first, last, k]`."""
        return [self.first, self.last, self.num_speculative_tokens]


def filled(steps: tuple[ScheduleStep, ...], most: int | None) -> tuple[ScheduleStep, ...]:
    """The same schedule in order, without gaps and without lengths above `most`: batch sizes that no range holds take
    the range before them, as vLLM and the bundled runtime read it.
    """
    ordered = sorted(steps, key=lambda step: step.first)
    ends: list[int | None] = [after.first - 1 for after in ordered[1:]]
    ends += [step.last for step in ordered[-1:]]
    return tuple(
        ScheduleStep(
            step.first, last, step.num_speculative_tokens if most is None else min(step.num_speculative_tokens, most)
        )
        for step, last in zip(ordered, ends, strict=True)
    )


@dataclass(frozen=True)
class Tree:
    """A drafted tree, dynamic or static; the root is no drafted node.

    Dynamic: `topk` branches a node, and of all nodes the `num_nodes` likeliest are verified (None: as the engine
    chooses). Static: `choices`, the path of each node in ranks, so that (0, 2) is the third-best token behind the best
    one: what Medusa and TensorRT-LLM call choices and vLLM called speculative_token_tree.
    """

    topk: int | None = None
    num_nodes: int | None = None
    choices: tuple[tuple[int, ...], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """What is set, as JSON types."""
        if self.choices:
            return {"choices": [list(path) for path in self.choices]}
        return {"topk": self.topk} | ({} if self.num_nodes is None else {"num_nodes": self.num_nodes})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tree:
        """The tree of `as_dict`'s shape."""
        paths = tuple(tuple(path) for path in data.get("choices") or ())
        return cls(data.get("topk"), data.get("num_nodes"), paths)

    @property
    def breadth(self) -> int:
        """Most branches that a node has."""
        return self.topk or max(path[-1] + 1 for path in self.choices)

    @property
    def depth(self) -> int | None:
        """The longest path of a static tree; None for a dynamic one, which is as deep as k."""
        return max(map(len, self.choices), default=None)

    @property
    def fault(self) -> str | None:
        """Why no such tree can be drafted; None where it can."""
        if not self.choices:
            return None if self.topk and self.topk > 0 else "has neither topk nor choices"
        if self.topk is not None or self.num_nodes is not None:
            return "has choices, which fix its shape, and topk or num_nodes as well"
        known = set(self.choices) | {()}
        for path in self.choices:
            if not path or min(path) < 0:
                return f"has the path {list(path)}; paths hold ranks from 0 on"
            if path[:-1] not in known:
                return f"has the path {list(path)} without {list(path[:-1])}, which it goes through"
        return None if len(known) == len(self.choices) + 1 else "has a path twice"


@dataclass(frozen=True)
class DraftOptions:
    """How the draft checkpoint is loaded and run; None: as the engine does by itself."""

    tensor_parallel_size: int | None = None
    quantization: str | None = None
    max_model_len: int | None = None
    revision: str | None = None
    code_revision: str | None = None
    load_format: str | None = None
    attention_backend: str | None = None
    moe_backend: str | None = None
    kv_cache_dtype: str | None = None
    enforce_eager: bool | None = None
    window_size: int | None = None
    sink_size: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The options that are set."""
        return _changed(self)


@dataclass(frozen=True)
class Origin:
    """Where a spec came from: file name or `<argv>`, dialect and release. Never part of equality."""

    source: str = "<memory>"
    dialect: str = "specctl"
    release: str = ""


@dataclass(frozen=True)
class SpecDecodeConfig:
    """One speculative setting, whoever's spelling it came in.

    `num_speculative_tokens` is k: drafted tokens a step and request, the root not counted, the depth for a tree; None
    where the engine takes it from the checkpoint. `model` is the draft (folder, id or bundled name), None where the
    method needs none. `engine_options[engine]` carries native keys that have no canonical meaning, as they were
    written. `about` holds what the file says about itself: `engines` (ranges of releases by engine), `source`,
    `published`, `advice`. Two specs are equal when they mean the same; `about`, `origin` and `places` are left out of
    the comparison."""

    method: Method
    num_speculative_tokens: int | None = None
    model: str | None = None
    target: str | None = None
    draft_sample_method: str = "greedy"
    acceptance: Acceptance = Acceptance()
    schedule: tuple[ScheduleStep, ...] = ()
    tree: Tree | None = None
    max_concurrency: int | None = None
    draft: DraftOptions = DraftOptions()
    engine_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    about: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    origin: Origin = field(default=Origin(), compare=False)
    places: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def limits(self) -> Mapping[str, str]:
        """Ranges of releases by engine that the setting was made for; empty where it does not say."""
        found: Mapping[str, str] = self.about.get("engines") or {}
        return found

    def as_dict(self) -> dict[str, Any]:
        """The spec as JSON types, in the shape of specctl's own YAML without its `specctl: 1` line and `about`.

        `method` and `num_speculative_tokens` always stand; everything else only where it differs from the default.
        """
        found: dict[str, Any] = {}
        if self.target is not None:
            found["target"] = self.target
        found["method"] = self.method.name
        if self.model is not None:
            found["model"] = self.model
        found["num_speculative_tokens"] = self.num_speculative_tokens
        found |= self.method.own_keys()
        return found | self._shared_keys()

    def _shared_keys(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.draft_sample_method != "greedy":
            found["draft_sample_method"] = self.draft_sample_method
        if self.tree is not None:
            found["tree"] = self.tree.as_dict()
        if self.acceptance != Acceptance():
            found["acceptance"] = self.acceptance.as_dict()
        if self.schedule:
            found["schedule"] = [step.as_list() for step in self.schedule]
        if self.max_concurrency is not None:
            found["max_concurrency"] = self.max_concurrency
        if self.draft != DraftOptions():
            found["draft"] = self.draft.as_dict()
        options = {engine: dict(keys) for engine, keys in self.engine_options.items() if keys}
        return found | ({"engine_options": options} if options else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SpecDecodeConfig:
        """Build a spec from `as_dict`'s shape. Raises KeyError or TypeError for wrong data."""
        rest = dict(data)
        method_class = METHODS[rest.pop("method")]
        own = {row.name for row in fields(method_class)}
        method = method_class(**{key: _tuple(rest.pop(key)) for key in list(rest) if key in own})
        if "acceptance" in rest:
            rest["acceptance"] = Acceptance(**{k: _tuple(v) for k, v in rest["acceptance"].items()})
        if "schedule" in rest:
            rest["schedule"] = tuple(ScheduleStep(*step) for step in rest["schedule"])
        if "tree" in rest:
            rest["tree"] = Tree.from_dict(rest["tree"])
        if "draft" in rest:
            rest["draft"] = DraftOptions(**rest["draft"])
        about = {key: rest.pop(key) for key in ABOUT if key in rest}
        return cls(method=method, about=about, **rest)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value

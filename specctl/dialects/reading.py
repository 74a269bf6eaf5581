"""What a reader hands on: native values with their routes, surroundings, and what reading itself had to say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specctl.diagnostics import Fix, Route
from specctl.dialects.coerce import BadValue
from specctl.dialects.field import Field
from specctl.errors import MissingError
from specctl.modelinfo import ModelFacts, ModelProblem, read_facts
from specctl.source import Document
from specctl.spec import SpecDecodeConfig

REFUSES = "refuses"
FAILS = "fails-at-start"


# Arguments beside the setting that rules compute with.
COUNTS = frozenset(
    {
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "context_parallel_size",
        "tp_size",
        "pp_size",
        "dp_size",
        "attn_dp_size",
        "attn_cp_size",
        "max_model_len",
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_running_requests",
        "page_size",
        "max_batch_size",
    }
)
STRUCTURED = ("_config", "_paths", "_processors")


_VENDOR = re.compile(r"^((nvidia|geforce|amd|instinct|tesla)[\s_-]+)+")


@dataclass(frozen=True)
class Finding:
    """Something to say about a route. Its code's page gives name and severity; `severity` and `stage` override them."""

    code: str
    message: str
    route: Route = ()
    help: str | None = None
    notes: tuple[str, ...] = ()
    fix: Fix | None = None
    at_key: bool = False
    severity: str | None = None
    stage: str = REFUSES


@dataclass(frozen=True)
class Change:
    """A value that the engine itself replaces: `old` as written (None: not written), `new` as used, and why."""

    code: str
    key: str
    old: Any
    new: Any
    why: str
    help: str | None = None


@dataclass(frozen=True)
class Value:
    """One native key as given: `raw` as written, `value` as the engine sees it, `route` its place, `row` its row."""

    key: str
    raw: Any
    value: Any
    route: Route
    row: Field
    good: bool = True


@dataclass
class Surroundings:
    """What a verdict depends on beside the setting itself; see `specctl.check`.

    `elsewhere`: the setting is for another machine (a manifest, a script), so that a path which is not here is
    unknown rather than missing. `in_file`: the target is named by a file alone."""

    target: str | None = None
    args: dict[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    platform: str | None = None
    host: Mapping[str, Any] = field(default_factory=dict)
    elsewhere: bool = False
    _models: dict[str, ModelFacts | ModelProblem] = field(default_factory=dict)
    in_file: bool = False
    _told: bool = False

    def __post_init__(self) -> None:
        self._told = self.target is not None
        # As people and drivers write it: "NVIDIA H100 80GB HBM3".
        self.platform = _VENDOR.sub("", (self.platform or "").strip().lower()) or None

    def serves(self, name: Any, *, in_file: bool = False) -> None:
        """The setting's own word for its target; what the caller named stands above it.

        `in_file`: the word stands in a file, which may be meant for another machine."""
        if isinstance(name, str) and name and not self._told:
            self.target, self.in_file = name, in_file

    def model(self, name: str | None) -> ModelFacts | ModelProblem | None:
        """Facts of a model by the name the setting uses; None for no name."""
        if name is None:
            return None
        if name not in self._models:
            found = read_facts(name)
            if self.elsewhere and isinstance(found, ModelProblem) and found.kind == "missing":
                found = replace(found, kind="unknown")
            self._models[name] = found
        return self._models[name]

    def facts(self, name: str | None) -> ModelFacts | None:
        """As `model`, but None where the config could not be read."""
        found = self.model(name)
        return found if isinstance(found, ModelFacts) else None

    def tidy(self) -> None:
        """Leave out arguments of a kind that no rule expects: counts that are no whole numbers, odd containers."""
        kept = {}
        for key, value in self.args.items():
            if key in COUNTS and (isinstance(value, bool) or not isinstance(value, int)):
                continue
            if isinstance(value, (str, int, float, bool)) or value is None or key.endswith(STRUCTURED):
                kept[key] = value
        self.args = kept

    @property
    def target_facts(self) -> ModelFacts | None:
        """Facts of the target, where it is given and readable."""
        return self.facts(self.target)


@dataclass
class Reading:
    """One setting in an engine's own words.

    `values`: by native key. `off`: the setting switches speculation off. `blocked`: nothing usable was read.
    `effective`: what the engine ends up with, under its own names, and `changes` how it came to differ. `fallback`:
    findings that count only where nothing else is said of their place. `arg_routes`: where the engine's other
    arguments stand."""

    dialect: str
    engine: str
    release: str
    document: Document
    around: Surroundings
    values: dict[str, Value] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    fallback: list[Finding] = field(default_factory=list)
    effective: dict[str, Any] = field(default_factory=dict)
    spec: SpecDecodeConfig | None = None
    off: bool = False
    blocked: bool = False
    notes: dict[str, Any] = field(default_factory=dict)
    arg_routes: dict[str, Route] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        """The value the engine sees at a native key; `default` where it is not given, null, or of a wrong type."""
        found = self.values.get(key)
        return default if found is None or found.value is None or not found.good else found.value

    def given(self, key: str) -> bool:
        """Whether a usable, non-null value was given."""
        return self.get(key) is not None

    def route(self, key: str) -> Route:
        """Where a native key (or an argument beside the setting) stands; the whole source where it is not given."""
        found = self.values.get(key)
        return found.route if found else self.arg_routes.get(key, ())

    def say(self, finding: Finding) -> None:
        """Add a finding of reading."""
        self.findings.append(finding)

    def change(self, code: str, key: str, old: Any, new: Any, why: str, help: str | None = None) -> None:
        """Record that the engine replaces a value."""
        self.changes.append(Change(code, key, old, new, why, help))


def missing_file(reading: Reading, error: MissingError, route: Route) -> Finding:
    """The finding for a file that a flag names and that is not here; on another machine it may well be there."""
    if reading.around.elsewhere:
        text = f"{error.message.split(' (', 1)[0]} on this machine, so the settings in it were not checked"
        return Finding("SPC012", text, route, help="check that file by itself, too", severity="warning")
    return Finding("SPC012", error.message, route, help=error.help)


def shown(value: Any) -> str:
    """A value as a user would write it: JSON-like, short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value != value:
        return "NaN"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that a mistyped one most likely means, or None."""
    table = {name.lower().replace("-", "_"): name for name in known}
    import difflib  # late: most settings have no misspelt key

    found = difflib.get_close_matches(word.lower().replace("-", "_"), table, n=1, cutoff=0.75)
    return table[found[0]] if found else None


def coerce(
    reading: Reading, row: Field, raw: Any, route: Route, table: Mapping[str, Any], *, silent: bool = False
) -> Value:
    """The value of one key as the engine's parser sees it; says SPC006 where it refuses, SPC010 where it reads it
    otherwise.
    """
    if raw is None and row.nullable:
        return Value(row.key, raw, None, route, row)
    try:
        value = table[row.kind](raw)
    except BadValue as bad:
        reading.say(_bad_type(row, raw, route, bad.wanted))
        return Value(row.key, raw, None, route, row, good=False)
    if not silent and _differs(raw, value):
        reading.say(
            Finding(
                "SPC010",
                f"{row.key} is {shown(raw)}; the engine reads it as {shown(value)}",
                route,
                help=f"write {shown(value)}",
                fix=Fix(route, value),
            )
        )
    return Value(row.key, raw, value, route, row)


def _differs(raw: Any, value: Any) -> bool:
    if isinstance(raw, (bool, str)) or isinstance(value, bool):
        return type(raw) is not type(value)
    if isinstance(raw, float) and isinstance(value, int):
        return True
    if isinstance(raw, list) and isinstance(value, list):
        return any(_differs(old, new) for old, new in zip(raw, value, strict=False))
    return False


def _bad_type(row: Field, raw: Any, route: Route, wanted: str) -> Finding:
    example = {"int": "3", "float": "0.5", "bool": "true", "str": '"..."'}.get(row.kind)
    help_text = f"write {row.key} as {wanted}" + (f", such as {example}" if example else "")
    if raw is None:
        help_text = f"leave {row.key} out, or give it {wanted}"
    return Finding("SPC006", f"{row.key} is {shown(raw)}; {wanted} was wanted", route, help=help_text)

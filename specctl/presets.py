"""The presets: settings in specctl's own format that come with it, what they say of themselves, and whether they hold.

python -m specctl.presets        writes docs/presets.md
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specctl.diagnostics import ERROR, WARNING, Result
from specctl.dialects.foreign import title
from specctl.errors import MissingError, SpecctlError
from specctl.resources import preset as file_of
from specctl.resources import preset_names
from specctl.rules.checker import check as judge
from specctl.rules.checker import check_path
from specctl.rules.convert import Converted, convert
from specctl.rules.report import Report
from specctl.spec import KNOWN_RELEASES, SpecDecodeConfig
from specctl.spec.release import allows

OWN = "specctl"
_FORMS = {"vllm": "json", "sglang": "argv", "trtllm": "yaml"}


@dataclass(frozen=True)
class Best:
    """The best published figure: `value` tokens a verify step (`length`), or accepted / drafted tokens."""

    value: float
    length: bool
    k: int
    dataset: str

    def __str__(self) -> str:
        what = f"{self.value:.2f}" if self.length else f"{self.value:.0%} accepted"
        return f"{what} ({self.dataset}, k={self.k})"


@dataclass(frozen=True)
class Preset:
    """One preset: its file, its text with all comments, and the setting."""

    name: str
    path: Path
    text: str
    config: SpecDecodeConfig

    @property
    def engines(self) -> Mapping[str, str]:
        """Ranges of releases by engine."""
        return self.config.limits

    @property
    def published(self) -> list[dict[str, Any]]:
        """The published figures as they stand in the file."""
        return list(self.config.about.get("published") or ())

    def releases(self) -> list[tuple[str, str]]:
        """Every known engine release that can run it; the bundled runtime is not among them."""
        return [
            (engine, release)
            for engine, limit in self.engines.items()
            if engine != OWN
            for release in KNOWN_RELEASES[engine]
            if allows(limit, release)
        ]

    def best(self) -> Best | None:
        """The best published acceptance length at the preset's own k; another k's or a rate where it has none."""
        found = [
            Best(float(value), key == "acceptance_length", entry["k"], str(dataset))
            for entry in self.published
            for key in ("acceptance_length", "acceptance_rate")
            for dataset, value in (entry.get(key) or {}).items()
        ]
        own = self.config.num_speculative_tokens
        return max(found, key=lambda each: (each.length, each.k == own, each.value), default=None)


@dataclass(frozen=True)
class Outcome:
    """What checking one preset found: the engine releases it was written for, and every result that was judged."""

    name: str
    releases: tuple[tuple[str, str], ...]
    results: tuple[Result, ...]
    faults: tuple[str, ...]

    def holds(self, *, strict: bool = False) -> bool:
        """Whether nothing is wrong with it; with `strict`, warnings count too."""
        bad = sum(result.count(ERROR) + (result.count(WARNING) if strict else 0) for result in self.results)
        return not bad and not self.faults


def names() -> list[str]:
    """The names of all presets, sorted."""
    return preset_names()


def unknown(name: str, message: str) -> MissingError:
    """The error for a name that no preset has, with the nearest one."""
    near = difflib.get_close_matches(name, names(), n=1, cutoff=0.5)
    return MissingError(message, help=f"did you mean {near[0]}?" if near else "`specctl presets list` shows them all")


def find(name: str) -> Preset:
    """The preset of a name. Raises `MissingError` with a did-you-mean, `SpecctlError` where its file is no setting."""
    path = file_of(name)
    if path is None:
        raise unknown(name, f"there is no preset {name!r}")
    report = check_path(str(path), dialect=OWN)
    if report.config is None:
        raise SpecctlError(f"the preset {name} cannot be read", help=f"`specctl presets check {name}` says why")
    return Preset(name, path, report.result.text, report.config)


def every() -> list[Preset]:
    """All presets by name."""
    return [find(name) for name in names()]


def conversions(preset: Preset, to: str | None = None) -> Iterator[Converted]:
    """The preset in the words of each engine release that can run it; `to`: of this engine alone."""
    for engine, release in preset.releases():
        if to in (None, engine):
            yield convert(preset.config, engine, to_release=release)


def check(name_or_path: str) -> Outcome:
    """Reads a preset (or any file in specctl's format), holds it against schema and rules, writes it for each engine
    release that it says can run it, and reads that back as the engine would.
    """
    path = file_of(name_or_path) or Path(name_or_path)
    if not path.is_file():
        raise unknown(name_or_path, f"no preset and no file is called {name_or_path!r}")
    name = path.stem
    own = check_path(str(path), dialect=OWN)
    if own.config is None:
        return Outcome(name, (), (own.result,), ())
    preset = Preset(name, path, own.result.text, own.config)
    results = [own.result] if own.config.method.runs_in_specctl or OWN in preset.engines else []
    releases = tuple(preset.releases())
    for engine, release in releases:
        results += _on(path, own, engine, release)
    return Outcome(name, releases, tuple(results), tuple(_faults(preset)))


def _on(path: Path, own: Report, engine: str, release: str) -> list[Result]:
    """The results on one engine: of the file, of the conversion's errors, and of the converted text as read there."""
    there = check_path(str(path), dialect=OWN, engine=engine, release=release)
    written = convert(own, engine, to_release=release)
    form = _FORMS[engine]
    again = judge(written.output if form == "argv" else written.text, engine=engine, release=release, form=form)
    errors = [result for result in (written.report.result, again.result) if result.count(ERROR)]
    return [there.result, *errors]


def _faults(preset: Preset) -> Iterator[str]:
    if not preset.engines:
        yield "engines names none; say which engines and releases can run it"
    for engine, limit in preset.engines.items():
        if engine != OWN and engine not in {name for name, _ in preset.releases()}:
            known = ", ".join(KNOWN_RELEASES[engine])
            yield f"engines says {title(engine)} {limit}; known releases are {known}"


def engines_text(preset: Preset) -> str:
    """The engines as a reader writes them: `vLLM >=0.31, SGLang >=0.5.22`."""
    return ", ".join(
        title(name) if name == OWN or limit == "*" else f"{title(name)} {limit}"
        for name, limit in preset.engines.items()
    )


_HEAD = """\
# Presets

Made by `python -m specctl.presets`. A preset is a file in specctl's own format that comes with the package; its name
stands wherever `--spec` takes a file. The names are reserved: a file of the same name is `./NAME`.

```
specctl presets list [--target T] [--engine E] [--method M]
specctl presets show gpt-oss-120b-eagle3-v3 --to vllm
specctl convert --spec gpt-oss-120b-eagle3-v3 --to trtllm --to-release 1.4.0rc0
specctl validate-config --spec gpt-oss-120b-eagle3-v3 --engine vllm
```

`engines` holds the releases that can run a preset; another release is an error, an engine that is not named a warning.
A lower bound is the release that a source names, else the oldest one whose rules specctl knows. The published figure is
the best one at the preset's k (another k where there is none): tokens a verify step, the bonus token included.
Conditions, sources and advice on the load stand in each file.

## Presets of your own

Any file in this format serves `--spec FILE`; `specctl presets check FILE` holds it against the schema and the rules and
writes it for each engine it names. Beside the setting itself it may say:

| key | what |
| --- | --- |
| `engines` | ranges of releases: `vllm: ">=0.31,<0.33"`, `trtllm: ">=1.4.0rc0"`, `specctl: "*"` |
| `source` | where setting and figures are from: a text or a list |
| `published` | entries of `k`, `acceptance_length` or `acceptance_rate` by dataset, `conditions`, `source` |
| `advice` | up to which load it pays: a text or a list |
| `engine_options` | native keys of one engine, kept as they are: `vllm: {disable_padded_drafter_batch: true}` |

A warning that is meant to stand is explained in a comment: `# specctl: ignore-file SPC402`, and why.

## The presets that come with specctl

| preset | target | method | k | draft | engines | published |
| --- | --- | --- | --- | --- | --- | --- |
"""


def page() -> str:
    """docs/presets.md."""
    lines = []
    for preset in every():
        spec = preset.config
        cells = (
            preset.name,
            spec.target or "any",
            spec.method.name,
            str(spec.num_speculative_tokens or "-"),
            spec.model or "-",
            engines_text(preset),
            str(preset.best() or "-"),
        )
        lines.append(f"| {' | '.join(cells)} |\n")
    return _HEAD + "".join(lines)


if __name__ == "__main__":
    (Path(__file__).parents[1] / "docs" / "presets.md").write_text(page(), encoding="utf-8")

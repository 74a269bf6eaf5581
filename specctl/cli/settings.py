"""The settings of one command line, for the commands that take them.

`main` puts a `Settings` on the Typer context (`ctx.obj`). A command asks it:

    settings: Settings = ctx.obj
    for spec, report in settings.resolve(target="demo"):     # [] where no setting was given
        ...

`resolve` reads every candidate (each `--speculative-config`, `--config` and `--spec` is one; smaller vLLM or SGLang
flags make one together) and returns `(SpecDecodeConfig | None, Report)` pairs; the spec is None where nothing usable
was read. `settings.require(...)` does the same, prints the diagnostics to standard error and raises `SpecctlError`
(exit 1) where a setting has an error: what serve and bench want."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from specctl.errors import EXIT_FINDINGS, EXIT_MISSING, SpecctlError, UsageError
from specctl.source.flags import Candidate, Flags

if TYPE_CHECKING:
    from specctl.rules.report import Report
    from specctl.spec import SpecDecodeConfig

RUN_HERE = ("SPC113",)  # methods that vLLM has lost and the bundled runtime has
BY_NAME = ("SPC209", "SPC210", "SPC211")  # what follows from vLLM's guess by the name of a draft's folder

SETTINGS_HELP = """\b
Settings, in the words of each engine:
  vLLM          --speculative-config '{...}' (-sc), --speculative-config.KEY VALUE,
                --spec-method, --spec-model, --spec-tokens
  SGLang        --speculative-algorithm, --speculative-draft-model-path, --speculative-num-steps,
                --speculative-eagle-topk, --speculative-num-draft-tokens, and all other --speculative-* flags
  TensorRT-LLM  --config FILE.yaml with speculative_config:
  specctl       --spec FILE.yaml or --spec PRESET
  any           --config FILE.yaml (vLLM, SGLang, TensorRT-LLM or specctl, told apart by content)
"""


@dataclass(frozen=True)
class Settings:
    """The setting flags of this command line, unread."""

    flags: Flags

    def __bool__(self) -> bool:
        return bool(self.flags)

    def candidates(self) -> list[Candidate]:
        """The settings as typed, one for each candidate."""
        return self.flags.candidates()

    def behind_dashes(self) -> tuple[str, ...]:
        """The words behind `--`."""
        return self.flags.engine_command

    def without_command(self) -> Settings:
        """These settings where the words behind `--` are none: an engine's own flags, that go to it untouched."""
        return Settings(replace(self.flags, engine_command=()))

    def of_release(self, release: str | None) -> dict[str, Any]:
        """The option for `resolve` and `require`. Raises `UsageError` for a release without a setting it could mean."""
        if release is not None and not self:
            raise UsageError(
                f"--release {release} says for which release of an engine a setting is written; no setting is given",
                help="leave out --release",
            )
        return {} if release is None else {"release": release}

    def resolve(self, **options: Any) -> list[tuple[SpecDecodeConfig | None, Report]]:
        """Read and check each candidate. `options` are those of `specctl.check` (engine, release, target, platform,
        …).
        """
        reports = [self.check(each, **options) for each in self.candidates()]
        return [(report.config, report) for report in reports]

    def check(self, candidate: Candidate, **options: Any) -> Report:
        """The report of one candidate. Raises `MissingError` for a missing file, `UsageError` for a mixed one."""
        from specctl.rules.checker import check_argv, check_path

        if candidate.kind == "file":
            return check_path(candidate.tokens[0], **options)
        if candidate.kind == "spec":
            held = _draft_report(candidate.tokens[0], options)
            if held is not None:
                return held
            return check_path(_spec_file(candidate.tokens[0]), **(options | {"dialect": "specctl"}))
        return check_argv(list(candidate.tokens), kind=candidate.kind, **options)

    def to_run(self, **options: Any) -> list[tuple[SpecDecodeConfig, Report]]:
        """As `require`, for the bundled runtime: flags that name no method mean what their draft's folder holds, and
        what an engine has no runner for may have one here.
        """
        from specctl.cli.recognised import as_held

        words = " ".join(token for each in self.candidates() for token in each.tokens if each.kind != "file")
        guessed = bool(words) and "method" not in words and "algorithm" not in words
        ignored = (*options.pop("ignore", ()), *RUN_HERE, *(BY_NAME if guessed else ()))
        found = self.require(**options, ignore=ignored)
        return [(as_held(spec, guessed) if "method" not in words else spec, report) for spec, report in found]

    def require(self, **options: Any) -> list[tuple[SpecDecodeConfig, Report]]:
        """As `resolve`, but diagnostics are printed and an error ends the command: `SpecctlError` with
        exit status 1, or 3 where all that is wrong is a missing file."""
        from specctl.diagnostics import as_text

        found: list[tuple[SpecDecodeConfig, Report]] = []
        resolved = self.resolve(**options)
        noisy = [report.result for _, report in resolved if report.diagnostics]
        if noisy:
            sys.stderr.write(as_text.render(noisy, colour=sys.stderr.isatty(), quiet=True))
        for spec, report in resolved:
            if not report.valid:
                raise SpecctlError(
                    f"the setting of {report.source} cannot be used",
                    help="the diagnostics above say why",
                    exit_code=EXIT_MISSING if report.only_missing else EXIT_FINDINGS,
                )
            for note in report.result.assumptions:
                if note.startswith("release "):
                    print(f"note: {note}", file=sys.stderr)
            if spec is not None:  # None: the setting leaves speculation off
                found.append((spec, report))
        return found


def _draft_report(name: str, options: dict[str, Any]) -> Report | None:
    """The report where `--spec` names a draft instead of a preset or a file."""
    from pathlib import Path

    from specctl.cli.recognised import folder_report
    from specctl.resources import preset

    return None if preset(name) is not None or Path(name).is_file() else folder_report(name, options)


def _spec_file(name: str) -> str:
    """The file that `--spec` means: that of a preset, whose names come first and are reserved, or a path."""
    from pathlib import Path

    from specctl.resources import preset

    found = preset(name)
    if found is None:
        if name and Path(name).exists():
            return name
        from specctl.presets import unknown

        raise unknown(name, f"no preset and no file is called {name!r} (looked for {Path(name).absolute()} too)")
    if Path(name).is_file():
        print(f"note: --spec {name} is the preset; the file of that name is ./{name}", file=sys.stderr)
    return str(found)

"""`specctl serve --engine vllm|sglang|trtllm`: the real engine, checked before it starts and followed while it runs."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specctl.errors import MissingError, SpecctlError, UsageError

if TYPE_CHECKING:
    from specctl.cli.settings import Settings
    from specctl.launch.command import Command
    from specctl.launch.engines import Launcher
    from specctl.launch.process import EngineProcess
    from specctl.rules.report import Report
    from specctl.spec import SpecDecodeConfig


@dataclass(frozen=True)
class Start:
    """What the command line says about the start of an engine.

    ``interval``: seconds between two lines of acceptance.
    """

    engine: str
    engine_command: str | None
    dry_run: bool
    start_timeout: float
    interval: float
    host: str
    port: int
    release: str | None


def run_engine(settings: Settings, target: str | None, start: Start, options: Mapping[str, Any]) -> int:
    """Check, convert, print the command, start, follow. Returns the engine's own status once it started.

    ``options``: specctl's other options that were typed, by name.
    """
    from specctl.launch.command import make_command
    from specctl.launch.engines import LAUNCHERS

    if start.port == 0:
        raise UsageError(f"--port 0 does not go with --engine {start.engine}", help="name the port")
    launcher = LAUNCHERS[start.engine]
    program, release, platform = _engine(launcher, start)
    more = settings.behind_dashes()
    own = settings.without_command()
    surroundings = {"release": release, "platform": platform, "args": _arguments(launcher, release, options, more)}
    target, setting, method = _setting(own, target, launcher, surroundings)
    command = make_command(
        launcher, program, target, setting,
        release=release, host=start.host, port=start.port, options=options, more=more,
    )  # fmt: skip
    _check_whole(command, launcher, release, platform)
    _show(command)
    return 0 if start.dry_run else _follow(command, start, method)


def _engine(launcher: Launcher, start: Start) -> tuple[Path, str, str | None]:
    """The program, the release whose rules hold, and the platform where the package tells it."""
    from specctl.launch.installed import find_program, installed
    from specctl.spec.release import known

    try:
        asked = known(launcher.name, start.release)
    except ValueError as error:
        raise UsageError(f"--release: {error}") from None
    try:
        found = installed(find_program(start.engine_command, launcher.program), launcher.distributions)
    except MissingError:
        if not start.dry_run:
            raise
        _say(f"note: {start.engine_command or launcher.program} is not here; the command is for release {asked}")
        return Path(start.engine_command or launcher.program), asked, None
    if found.version is None:
        _say(f"note: {found.program} does not tell its release; the rules of {launcher.title} {asked} are used")
        return found.program, asked, None
    platform = "cpu" if "cpu" in found.version.partition("+")[2] else None
    return found.program, _rules_for(launcher, found.version, start.release), platform


def _rules_for(launcher: Launcher, version: str, asked: str | None) -> str:
    from specctl.spec.release import Release, known

    try:
        rules = known(launcher.name, version)
        exact = Release.parse(version) == Release.parse(rules)
    except ValueError:
        rules, exact = known(launcher.name, asked), False
    if asked is not None and known(launcher.name, asked) != rules:
        _say(f"note: --release {asked} is not what is installed; {launcher.title} {version} is")
    what = f"{launcher.title} {version} is installed"
    _say(f"note: {what}" + ("" if exact else f"; the nearest rules that are known are those of {rules}"))
    return rules


def _arguments(launcher: Launcher, release: str, options: Mapping[str, Any], more: Sequence[str]) -> dict[str, Any]:
    """The engine's other arguments by their Python names: parallelism, lengths and what else a verdict hangs on."""
    from specctl.dialects.reading import Surroundings
    from specctl.launch.command import option_flags
    from specctl.rules.checker import read_document
    from specctl.source.command import command_document

    flags = [token for name, value in options.items() for token in option_flags(launcher, name, value)]
    line = command_document([launcher.program, *launcher.words, "target", *flags, *more])
    around = Surroundings()
    reading = read_document(line, "argv", engine=launcher.name, release=release, around=around, dialect=launcher.name)
    return {name: value for name, value in reading.around.args.items() if value != "target"}


def _setting(
    settings: Settings, target: str | None, launcher: Launcher, options: dict[str, Any]
) -> tuple[str, SpecDecodeConfig | Path | None, str]:
    """The target, the setting and its method, checked by the engine's rules; an error ends the command before anything
    starts. No method where the acceptance is not to be judged.
    """
    candidates = settings.candidates()
    if len(candidates) > 1:
        raise UsageError(f"{len(candidates)} settings were given; a server runs one")
    options = {"engine": launcher.name, **options}
    if target is None:
        named = [spec.target for spec, _ in settings.resolve(**options) if spec is not None and spec.target]
        target = named[0] if named else "demo"
    found = settings.require(target=target, **options) if candidates else []
    if not found:
        return target, None, ""
    spec, report = found[0]
    method = "" if spec.acceptance.lossy else spec.method.name
    if candidates[0].kind != "file":
        return target, spec, method
    path = Path(candidates[0].tokens[0])
    if report.result.dialect == launcher.name:
        return target, path, method
    _say(f"note: of {path} only the setting of speculation is taken over; give other options after --")
    return target, spec, method


def _check_whole(command: Command, launcher: Launcher, release: str, platform: str | None) -> None:
    """The whole command line, with the engine's own flags, by the same rules: parallelism, lengths and the like."""
    from specctl.diagnostics import ERROR, as_text
    from specctl.rules.checker import check_argv

    with tempfile.TemporaryDirectory(prefix="specctl-") as folder:
        argv = list(command.in_folder(Path(folder)).argv)
        report = check_argv(
            [launcher.program, *launcher.words, *_behind_words(argv)],
            engine=launcher.name, release=release, platform=platform, env=dict(os.environ),
        )  # fmt: skip
    if not _matters(report):
        return
    wrong = [each for each in report.diagnostics if each.severity == ERROR]
    if wrong:
        sys.stderr.write(as_text.render([report.result], colour=sys.stderr.isatty(), quiet=True))
        raise SpecctlError(
            f"{launcher.title} {release} would not start with this command line", help="the diagnostics above say why"
        )


def _matters(report: Report) -> bool:
    """Whether the line sets speculation at all; without it there is nothing of ours to judge."""
    return report.config is not None


def _behind_words(argv: Sequence[str]) -> list[str]:
    """Target and flags, whichever program they stand behind."""
    at = argv.index("--host")
    return [argv[at - 1], *argv[at:]]


def _show(command: Command) -> None:
    for name, text in command.files.items():
        print(f"# {name}")
        print(text, end="")
    print(command.shown(), flush=True)


def _follow(command: Command, start: Start, method: str) -> int:
    from specctl.launch.process import EngineProcess

    with tempfile.TemporaryDirectory(prefix="specctl-") as folder:
        placed = command.in_folder(Path(folder))
        with EngineProcess(placed, sys.stderr.buffer) as process:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda number, _: process.send_signal(number))
            process.wait_until_healthy(start.start_timeout)
            print(f"healthy      {command.launcher.title} at {command.url}/v1; Ctrl-C or SIGTERM ends it", flush=True)
            _tell_acceptance(process, start, method)
            status = process.status
    print(f"stopped      {command.launcher.title} ended with status {status}", flush=True)
    return status or 0


def _tell_acceptance(process: EngineProcess, start: Start, method: str) -> None:
    """A line every interval in which something was drafted, one where the draft of ``method`` looks broken, and one for
    the whole run.
    """
    from specctl.launch.acceptance import AcceptanceReader

    reader = AcceptanceReader(start.engine, process.command.url)
    said, alarmed = "", False
    while not process.wait(start.interval):
        line = reader.line()
        # What does not change, such as metrics that are off, is said once.
        if line is not None and line != said and not process.told_to_end:
            print(f"speculation  {line}", flush=True)
        said = line or said
        alarm = None if alarmed else reader.alarm(method)
        if alarm is not None:
            alarmed = True
            print(f"ALARM        {alarm.text}", flush=True)
    total = reader.total_line()
    if total is not None:
        print(f"speculation  in all: {total}", flush=True)
    reader.close()


def _say(line: str) -> None:
    print(line, file=sys.stderr)

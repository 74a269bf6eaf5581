"""The command line that starts an engine with a setting."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specctl.dialects.dialect import DIALECTS
from specctl.dialects.render import render
from specctl.errors import UsageError
from specctl.launch.engines import Launcher
from specctl.resources import bundled_model
from specctl.source.flags import owner
from specctl.spec import SpecDecodeConfig

# Where the settings file of an engine is to lie, until the start writes it.
SETTINGS_FILE = "speculation.yaml"
_LISTEN = ("--host", "--port")


@dataclass(frozen=True)
class Command:
    """What starts an engine.

    ``argv``: the command line; ``files``: texts of the files that it names and that the start has to write;
    ``host``, ``port``: where it will listen.
    """

    launcher: Launcher
    argv: tuple[str, ...]
    host: str
    port: int
    files: Mapping[str, str]

    @property
    def url(self) -> str:
        """Base URL; an engine that listens on every address is asked on this machine's own."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def shown(self) -> str:
        """The command as one types it into a shell."""
        return shlex.join(self.argv)

    def in_folder(self, folder: Path) -> Command:
        """The same command with its files written into ``folder``."""
        for name, text in self.files.items():
            (folder / name).write_text(text, "utf-8")
        placed = tuple(str(folder / token) if token in self.files else token for token in self.argv)
        return replace(self, argv=placed, files={})


def place_of(model: str) -> str:
    """A bundled name as the path that the engine can read; every other name as it is."""
    found = bundled_model(model)
    return model if found is None else str(found)


def make_command(
    launcher: Launcher,
    program: Path,
    target: str,
    setting: SpecDecodeConfig | Path | None,
    *,
    release: str,
    host: str,
    port: int,
    options: Mapping[str, Any] | None = None,
    more: Sequence[str] = (),
) -> Command:
    """The command that starts ``target`` on an engine.

    ``setting``: a spec, which is written in the engine's spelling for ``release``; or the engine's own settings file,
    which is handed over as it is; None starts without speculation. ``options``: specctl's options by name, written as
    the engine's flags. ``more``: the engine's own flags, untouched. Raises UsageError where ``more`` says again what
    specctl writes, or an option has no counterpart.
    """
    _no_repeats(launcher, setting, more)
    options = dict(options or {})
    if place_of(target) != target and "served_model_name" in launcher.options:
        options.setdefault("served_model_name", [target])
    argv = [*launcher.head(program, place_of(target)), "--host", host, "--port", str(port)]
    for name, value in options.items():
        argv += option_flags(launcher, name, value)
    flags, files = _setting(launcher, setting, release)
    argv += flags
    if setting is not None:
        argv += [flag for flag in launcher.metrics_flags if flag not in more]
    return Command(launcher, (*argv, *more), host, port, files)


def option_flags(launcher: Launcher, name: str, value: Any) -> list[str]:
    """One of specctl's options as the engine's flag; raises UsageError where it has none."""
    flag = launcher.options.get(name)
    typed = "--" + name.replace("_", "-")
    if flag is None:
        raise UsageError(
            f"{typed} is an option of the bundled runtime; {launcher.title} is started without it",
            help=f"leave it out, or give {launcher.title}'s own flags after --",
        )
    return [flag, *map(str, value if isinstance(value, (list, tuple)) else [value])]


def _setting(
    launcher: Launcher, setting: SpecDecodeConfig | Path | None, release: str
) -> tuple[list[str], dict[str, str]]:
    if setting is None:
        return [], {}
    if isinstance(setting, Path):
        return [launcher.config_flags[0], str(setting)], {}
    spec = replace(setting, model=place_of(setting.model)) if setting.model else setting
    output = DIALECTS[launcher.name].write(spec, release)
    if launcher.name == "sglang":
        return list(output), {}
    text = render(output, launcher.name)
    if launcher.name == "vllm":
        return ["--speculative-config", text.strip()], {}
    # Iteration statistics are off by default, and acceptance is told nowhere else.
    return [launcher.config_flags[0], SETTINGS_FILE], {SETTINGS_FILE: text + "enable_iter_perf_stats: true\n"}


def _no_repeats(launcher: Launcher, setting: SpecDecodeConfig | Path | None, more: Sequence[str]) -> None:
    for token in more:
        name = token.split("=", 1)[0]
        if name in _LISTEN:
            raise UsageError(f"{name} stands behind --", help=f"give {name} to specctl, before the --")
        if owner(token) is not None:
            raise UsageError(
                f"{name} behind -- would go to {launcher.title} unchecked", help="put the setting before the --"
            )
        one_file = isinstance(setting, Path) or (setting is not None and launcher.name == "trtllm")
        if one_file and name in launcher.config_flags:
            raise UsageError(
                f"{name} behind -- is a second settings file; {launcher.title} reads one",
                help="put both into one file and give it as --config before the --",
            )

"""`specctl bench --engine vllm|sglang|trtllm`: the real engine, started once plainly and once for each candidate."""

from __future__ import annotations

import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specctl.errors import MissingError, UsageError

if TYPE_CHECKING:
    from specctl.bench.order import Servers
    from specctl.bench.server import Endpoint
    from specctl.launch.engines import Launcher
    from specctl.spec import SpecDecodeConfig

TORCH = "torch"
ENGINES = (TORCH, "vllm", "sglang", "trtllm")

Opt = typer.Option


@dataclass(frozen=True)
class EngineOptions:
    """Which engine runs the candidates."""

    engine: Annotated[str, Opt(help="What runs: torch (the bundled runtime), vllm, sglang, trtllm.")] = TORCH
    engine_command: Annotated[str | None, Opt(help="Program of the real engine. [its name on PATH]")] = None
    engine_log: Annotated[
        str | None, Opt(metavar="FILE", help="Write the real engine's output here. [standard error]")
    ] = None
    start_timeout: Annotated[float, Opt(min=1, help="Seconds that the real engine gets to be healthy.")] = 1800.0

    @property
    def real(self) -> bool:
        """Whether a real engine is started. Raises `UsageError` for one that there is not."""
        if self.engine not in ENGINES:
            raise UsageError(f"--engine is {self.engine!r}; it must be one of {', '.join(ENGINES)}")
        if self.engine == TORCH and self.engine_command is not None:
            raise UsageError("--engine-command is for vllm, sglang and trtllm", help="name one with --engine")
        return self.engine != TORCH

    def checked_by(self) -> dict[str, Any]:
        """Whose rules the settings are checked by; nothing for the bundled runtime."""
        return {"engine": self.engine} if self.real else {}

    def servers(self, target: str, more: Sequence[str], near_tie: float) -> Servers:
        """Servers that are started one after the other, with `more` flags of the engine's own.

        Raises `MissingError` where the engine is not here.
        """
        from specctl.bench.order import Servers
        from specctl.launch.engines import LAUNCHERS
        from specctl.launch.installed import find_program

        launcher = LAUNCHERS[self.engine]
        program = find_program(self.engine_command, launcher.program)
        release = _release(launcher, program)
        log = sys.stderr.fileno() if self.engine_log is None else _opened(self.engine_log)

        @contextmanager
        def start(spec: SpecDecodeConfig | None) -> Iterator[Endpoint]:
            with _running(launcher, program, release, target, spec, more, log, self.start_timeout) as endpoint:
                yield endpoint

        return Servers(start=start, near_tie=near_tie)


def _opened(file: str) -> int:
    import os

    try:
        return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    except OSError as error:
        raise MissingError(f"cannot write {file}: {error.strerror or error}") from None


def _release(launcher: Launcher, program: Path) -> str:
    """The known release nearest to what is installed."""
    from specctl.launch.installed import installed
    from specctl.spec.release import known

    version = installed(program, launcher.distributions).version
    try:
        return known(launcher.name, version)
    except ValueError:
        return known(launcher.name, None)


@contextmanager
def _running(
    launcher: Launcher,
    program: Path,
    release: str,
    target: str,
    spec: SpecDecodeConfig | None,
    more: Sequence[str],
    log: int,
    timeout_s: float,
) -> Iterator[Endpoint]:
    """The engine with one setting, from healthy to stopped."""
    from specctl.bench.server import Endpoint
    from specctl.launch.command import make_command
    from specctl.launch.process import EngineProcess

    command = make_command(
        launcher, program, target, spec, release=release, host="127.0.0.1", port=_free_port(), more=more
    )
    print(f"starting     {command.shown()}", file=sys.stderr, flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="specctl-") as folder,
        open(log, "wb", closefd=False) as sink,
        EngineProcess(command.in_folder(Path(folder)), sink) as process,
    ):
        process.wait_until_healthy(timeout_s)
        yield Endpoint(command.url)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])

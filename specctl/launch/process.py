"""An engine as a process: started, followed, waited for, told signals, ended."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import BinaryIO

import httpx

from specctl.errors import MissingError, SpecctlError
from specctl.launch.command import Command
from specctl.launch.failure import explain

KEPT_LOG_BYTES = 1 << 16
HEALTH_SECONDS = 0.5
# After the engine's own end its workers get this long before they are killed.
WORKERS_SECONDS = 3.0
_SIGNAL_BASE = 128


class EngineProcess:
    """One run of an engine. ``log`` receives its output, untouched; the end of it is kept to explain failures.

    A context manager: leaving it ends the engine and everything that it started.
    """

    def __init__(self, command: Command, log: BinaryIO, env: Mapping[str, str] | None = None) -> None:
        self.command = command
        self._log = log
        self._kept = bytearray()
        self._signals = 0
        _port_must_be_free(command)
        try:
            # A session of its own: a Ctrl-C of the terminal reaches the engine through `send_signal` alone, once.
            self._process = subprocess.Popen(
                command.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True, env=None if env is None else dict(env),
            )  # fmt: skip
        except OSError as error:
            raise MissingError(f"{command.argv[0]} cannot be started: {error.strerror}") from None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log_end(self) -> str:
        """The last output, at most `KEPT_LOG_BYTES`."""
        return self._kept.decode("utf-8", "replace")

    @property
    def told_to_end(self) -> bool:
        """Whether a signal was passed on."""
        return self._signals > 0

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def status(self) -> int | None:
        """The exit status as a shell has it: 128 + n where signal n ended it; None while it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else _SIGNAL_BASE - code

    def wait_until_healthy(self, seconds: float) -> None:
        """Return when ``/health`` answers 200.

        Raises SpecctlError with the engine's own exit status where it ends before; with exit code 1 where it is not
        healthy in time, and then the engine is ended.
        """
        deadline = time.monotonic() + seconds
        with httpx.Client(base_url=self.command.url, trust_env=False, timeout=5) as client:
            while time.monotonic() < deadline:
                if self.wait(HEALTH_SECONDS):
                    raise self._failed()
                with contextlib.suppress(httpx.HTTPError):
                    if client.get("/health").status_code == httpx.codes.OK:
                        return
        self.stop()
        raise SpecctlError(
            f"{self.command.launcher.title} was not healthy within {seconds:g} s ({self.command.url}/health); ended it",
            help="raise --start-timeout where it is still loading; its log is above",
        )

    def _failed(self) -> SpecctlError:
        self._reader.join(WORKERS_SECONDS)
        failure = explain(self.log_end, self._process.returncode)
        title = self.command.launcher.title
        return SpecctlError(
            f"{title} did not start: {failure.reason} (exit status {self.status})\n  {title} says: {failure.words}",
            help=failure.cure,
            exit_code=self.status or 1,
        )

    def wait(self, seconds: float) -> bool:
        """Whether the engine ended within ``seconds``."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.ended

    def send_signal(self, number: int) -> None:
        """Pass a signal on. The second one ends the engine and everything it started, at once."""
        self._signals += 1
        if self._signals == 1:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
        else:
            self._kill_all()

    def stop(self, seconds: float = 30.0) -> None:
        """End the engine: SIGTERM, and SIGKILL to whatever is left after ``seconds``."""
        if not self.ended:
            self._process.terminate()
            self.wait(seconds)
        self._reader.join(WORKERS_SECONDS if self.ended else 0)
        self._kill_all()
        self._process.wait()

    def _kill_all(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while chunk := os.read(stream.fileno(), 1 << 14):
            self._kept += chunk
            del self._kept[:-KEPT_LOG_BYTES]
            with contextlib.suppress(OSError, ValueError):  # a closed log must not stop the engine
                self._log.write(chunk)
                self._log.flush()


def _port_must_be_free(command: Command) -> None:
    """Whoever else answers on the port would pass for the engine."""
    host, port = command.url.removeprefix("http://").rsplit(":", 1)
    with contextlib.suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), timeout=1):
        raise MissingError(
            f"port {port} on {command.host} is in use by another process",
            help="choose another with --port, or end that process",
        )

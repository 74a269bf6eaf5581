"""How far a run is: a bar with the remaining time on a terminal, a line for each stage elsewhere; always on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

LINES = 20

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from specctl.bench.load import Block, Runner


class Silent:
    """Says nothing."""

    def start(self, total: int) -> None:
        """See `session.Progress`."""

    def advance(self, done: int, doing: str) -> None:
        """See `session.Progress`."""

    def seen(self, runner: Runner, concurrency: int, block: Block) -> None:
        """See `session.Progress`."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *problem: object) -> None:
        pass


class Lines(Silent):
    """A line when another stage begins, at most one for each twentieth of the run."""

    def __init__(self) -> None:
        self._total = 0
        self._done = 0
        self._stage = ""
        self._next = 0.0

    def start(self, total: int) -> None:
        """See `session.Progress`."""
        self._total = total

    def advance(self, done: int, doing: str) -> None:
        """See `session.Progress`."""
        if doing != self._stage and self._done >= self._next:
            self._stage = doing
            self._next = self._done + self._total / LINES
            print(f"[{self._done}/{self._total} requests] {doing}", file=sys.stderr, flush=True)
        self._done += done


class Bar(Silent):
    """rich's progress bar, taken away when the run is over."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("requests"))
        console = Console(stderr=True)
        # The bar's own thread takes time from the run it shows; twice a second is enough.
        self._bar: RichProgress = Progress(
            *columns, TimeRemainingColumn(), console=console, transient=True, refresh_per_second=2
        )
        self._task: TaskID | None = None

    def start(self, total: int) -> None:
        """See `session.Progress`."""
        self._task = self._bar.add_task("warm-up", total=total)

    def advance(self, done: int, doing: str) -> None:
        """See `session.Progress`."""
        if self._task is not None:
            self._bar.update(self._task, advance=done, description=doing)

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._bar.stop()


def choose(quiet: bool) -> Silent:
    """The progress display for this process's stderr."""
    if quiet:
        return Silent()
    return Bar() if sys.stderr.isatty() else Lines()

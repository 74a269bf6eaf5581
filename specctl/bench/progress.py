"""How far a run is: a live table and a bar on a terminal, a line for each stage elsewhere; always on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from specctl.bench.candidates import BASELINE
from specctl.bench.verdict import label

LINES = 20

if TYPE_CHECKING:
    from rich.console import Group
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID
    from rich.table import Table

    from specctl.bench.records import Block, Runner


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


class Tally:
    """What is known so far: mean TPOT of each run at each level, and how often it is faster than the baseline."""

    def __init__(self) -> None:
        self.levels: list[int] = []
        self.names: list[str] = []
        self._sums: dict[tuple[str, int], tuple[float, int]] = {}

    def add(self, runner: Runner, concurrency: int, block: Block) -> None:
        """Count a block."""
        name = label(runner.name, runner.k)
        times = [record.tpot_s for record in block.records if not record.failed and record.tpot_s is not None]
        seconds, count = self._sums.get((name, concurrency), (0.0, 0))
        self._sums[(name, concurrency)] = (seconds + sum(times), count + len(times))
        self.names += [name] * (name not in self.names)
        self.levels = sorted({*self.levels, concurrency})

    def cell(self, name: str, level: int) -> str:
        """The baseline's TPOT in ms; a candidate's speed-up over it so far; a dot where nothing is known."""
        mean, base = self._mean(name, level), self._mean(BASELINE, level)
        if mean is None:
            return "·"
        return f"{1000 * mean:.1f} ms" if name == BASELINE or not base else f"{base / mean:.2f}x"

    def _mean(self, name: str, level: int) -> float | None:
        seconds, count = self._sums.get((name, level), (0.0, 0))
        return seconds / count if count else None

    def rows(self) -> list[str]:
        """The runs, the baseline first."""
        return sorted(self.names, key=lambda name: name != BASELINE)


class Bar(Silent):
    """A live table of what is known so far and a bar with the remaining time, taken away when the run is over."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._console = Console(stderr=True)
        self._tally = Tally()
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), MofNCompleteColumn())
        self._bar: RichProgress = Progress(*columns, TimeRemainingColumn(), console=self._console, expand=True)
        self._task: TaskID | None = None
        # The display's own thread takes time from the run it shows; twice a second is enough.
        self._live = Live(console=self._console, transient=True, refresh_per_second=2, get_renderable=self._drawn)

    def _drawn(self) -> Group:
        from rich.console import Group

        return Group(*([live_table(self._tally, self._console.width)] if self._tally.names else []), self._bar)

    def start(self, total: int) -> None:
        """See `session.Progress`. A pilot may change the total on the way."""
        if self._task is None:
            self._task = self._bar.add_task("warm-up", total=total)
        else:
            self._bar.update(self._task, total=total)

    def advance(self, done: int, doing: str) -> None:
        """See `session.Progress`."""
        if self._task is not None:
            self._bar.update(self._task, advance=done, description=doing)

    def seen(self, runner: Runner, concurrency: int, block: Block) -> None:
        """See `session.Progress`."""
        self._tally.add(runner, concurrency, block)

    def __enter__(self) -> Bar:
        self._live.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._live.stop()


NAME_WIDTH, CELL_WIDTH = 24, 10


def live_table(tally: Tally, width: int) -> Table:
    """The table as rich draws it, with as many levels as the terminal is wide for; the lowest ones stay."""
    from rich.table import Table

    levels = tally.levels[: max(1, (width - NAME_WIDTH - 4) // CELL_WIDTH)]
    table = Table(box=None, pad_edge=False)
    table.add_column("TPOT, speed-up so far", no_wrap=True, max_width=NAME_WIDTH)
    for level in levels:
        table.add_column(f"conc {level}", justify="right", no_wrap=True)
    for name in tally.rows():
        table.add_row(name, *(tally.cell(name, level) for level in levels))
    return table


def choose(quiet: bool) -> Silent:
    """The progress display for this process's stderr."""
    if quiet:
        return Silent()
    return Bar() if sys.stderr.isatty() else Lines()

"""Progress goes to stderr, in few lines where there is no terminal."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from specctl.bench import progress
from tests.bench.stand_ins import block, record


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.choose(quiet=True) as told:
        told.start(10)
        told.advance(5, "warm-up")
    assert capsys.readouterr() == ("", "")


def test_lines_are_few_and_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.choose(quiet=False) as told:
        told.start(10_000)
        for repeat in range(5_000):
            told.advance(2, f"repeat {repeat}")
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert printed.out == ""
    assert lines[0] == "[0/10000 requests] repeat 0"
    assert 10 <= len(lines) <= progress.LINES


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress.choose(quiet=False) as told:
        told.start(4)
        told.advance(4, "repeat 1/1, concurrency 8")
    printed = capsys.readouterr()
    assert "repeat 1/1, concurrency 8" in printed.err
    assert "4/4" in printed.err
    assert printed.out == ""


def test_the_live_table_fits_80_columns_and_tells_the_speed_up() -> None:
    tally = progress.Tally()
    for name, k, tpot in (("baseline", None, 0.02), ("transformers-assisted", 4, 0.01), ("ngram", 4, 0.04)):
        for level in (1, 2, 4, 8, 16, 32, 64):
            runner = SimpleNamespace(name=name, k=k)
            tally.add(runner, level, block(record(0, tpot_s=tpot), record(1, error="died")))  # type: ignore[arg-type]
    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(progress.live_table(tally, 80))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[-2:] == ["conc", "16"]
    assert "20.0 ms" in lines[1]
    assert lines[2].startswith("transformers-assisted")
    assert "2.00x" in lines[2]
    assert "0.50x" in lines[3]

"""Progress goes to stderr, in few lines where there is no terminal."""

from __future__ import annotations

import pytest

from specctl.bench import progress


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

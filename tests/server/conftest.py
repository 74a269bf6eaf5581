"""No test of the server may hang: each has a time limit."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.server.fake_engine import FakeEngine, FakeTarget
from tests.server.live import Live, live

LIMIT_S = 90


@pytest.fixture(autouse=True)
def time_limit() -> Iterator[None]:
    def over(*_: object) -> None:
        raise TimeoutError(f"the test took more than {LIMIT_S} s")

    old = signal.signal(signal.SIGALRM, over)
    signal.alarm(LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


@pytest.fixture(scope="module")
def fake() -> Iterator[Live]:
    """A server that speculates (k = 3), shared by the tests of a module that do not disturb each other."""
    with live(FakeEngine(k=3), FakeTarget(), per_request_metrics="summary") as found:
        yield found

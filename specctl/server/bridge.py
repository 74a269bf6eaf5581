"""The thread that owns the engine, and the way between it and the event loop.

HTTP handlers run on the event loop and never touch the engine: `submit` and `cancel` put messages into a queue, the
thread empties it between two steps, and what a step produced comes back through `Stream`. So a cancelled request is
gone when the step that is running has ended.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from specctl.errors import SpecctlError
from specctl.runtime.options import Counters
from specctl.runtime.request import Emission, Request
from specctl.runtime.stats import SpecStats
from specctl.server.api_error import ApiError, bad_request, draining, engine_dead, internal_error, queue_full
from specctl.server.engine_port import EnginePort

log = logging.getLogger("specctl.server")


@dataclass
class Entry:
    """One request on its way: where its emissions go, and what was seen of it (times of `time.monotonic`, seconds)."""

    request: Request
    choice: int
    stream: Stream
    arrival: float
    started: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    num_tokens: int = 0
    num_cached: int = 0


@dataclass(frozen=True)
class Snapshot:
    """The engine's state after its last step; the event loop reads this copy, never the engine."""

    running: int = 0
    kv_usage: float = 0.0
    stats: SpecStats = field(default_factory=SpecStats)
    counters: Counters = field(default_factory=Counters)


class Observer:
    """Told by the engine's thread what happened; `metrics` counts it. Does nothing by itself."""

    def tokens(self, entry: Entry, count: int, now: float) -> None:
        """`count` new tokens of a request; `entry.last_token` is still the time of those before, None at the first."""

    def finished(self, entry: Entry, reason: str, now: float) -> None:
        """A request left: `stop`, `length`, `abort` or `error`."""


class ClientGone(Exception):
    """The stream was cancelled because nobody reads it any more."""


_Event = tuple[int, Emission] | ApiError | ClientGone


class Stream:
    """The emissions of one HTTP call's requests, in order of arrival, each with the index of its choice."""

    def __init__(self, bridge: Bridge, requests: Sequence[Request], arrival: float, n: int) -> None:
        self._bridge = bridge
        self._n = n
        self.loop = asyncio.get_running_loop()
        self.entries = [Entry(request, choice, self, arrival) for choice, request in enumerate(requests)]
        self.open = {entry.request.id for entry in self.entries}
        self._events: asyncio.Queue[_Event] = asyncio.Queue()
        self._left = len(self.entries)
        self._closed = False

    def siblings(self, entry: Entry) -> list[Entry]:
        """The requests for answers to the same prompt, this one among them."""
        first = entry.choice - entry.choice % self._n
        return self.entries[first : first + self._n]

    def put(self, event: _Event) -> None:
        """Called on the event loop only."""
        self._events.put_nowait(event)

    async def __aiter__(self) -> AsyncIterator[tuple[int, Emission]]:
        """Yield until every choice has finished; raises ApiError when one failed, ClientGone when cancelled."""
        while self._left:
            event = await self._events.get()
            if isinstance(event, Exception):
                self.cancel()
                raise event
            if event[1].finish_reason is not None:
                self._left -= 1
            yield event

    def hang_up(self) -> None:
        """Nobody reads any more: abort the requests and wake whoever iterates."""
        self.cancel()
        self.put(ClientGone())

    def cancel(self) -> None:
        """Abort whatever of this call still runs. Harmless when all is done, and when called twice."""
        if not self._closed:
            self._closed = True
            if self._left:
                self._bridge.cancel(self)


@dataclass(frozen=True)
class _Add:
    entries: Sequence[Entry]


@dataclass(frozen=True)
class _Abort:
    stream: Stream
    error: ApiError | None = None


@dataclass(frozen=True)
class _AbortAll:
    error: ApiError


@dataclass(frozen=True)
class _Stop:
    pass


_Message = _Add | _Abort | _AbortAll | _Stop


class Bridge:
    """Owns the engine and its thread.

    `capacity`: requests that may be inside at once, running or waiting; one more is refused with 429.
    """

    def __init__(self, engine: EnginePort, capacity: int, observer: Observer | None = None) -> None:
        self._engine = engine
        self._capacity = capacity
        self._observer = observer or Observer()
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._entries: dict[str, Entry] = {}  # of the engine's thread
        self._lock = threading.Lock()
        self._inside = 0  # requests between submit and their end; under the lock
        self._draining = False
        self._dead = False
        self._thread = threading.Thread(target=self._run, name="specctl-engine", daemon=True)
        self.snapshot = Snapshot()

    # ---- the event loop's side

    def start(self) -> None:
        """Start the engine's thread."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the engine's thread runs and no step of it has thrown."""
        return not self._dead and self._thread.is_alive()

    @property
    def is_draining(self) -> bool:
        """Whether new requests are refused because the server ends."""
        return self._draining

    @property
    def inside(self) -> int:
        """Requests that run or wait."""
        return self._inside

    @property
    def waiting(self) -> int:
        """Requests that wait for a slot."""
        return max(0, self._inside - self.snapshot.running)

    def check_open(self, count: int) -> None:
        """Whether `count` requests would be taken now.

        Raises ApiError: 503 while draining, 500 when the engine has died, 429 when the queue is full, 400 when the call
        alone is larger than the queue can ever take.
        """
        if self._draining:
            raise draining()
        if not self.alive:
            raise engine_dead()
        if count > self._capacity:
            wanted = f"one call may ask for at most {self._capacity} answers"
            raise bad_request(f"{wanted}, this one asks for {count}", "n", "too_many_choices")
        if self._inside + count > self._capacity:
            raise queue_full(self._inside)

    def submit(self, requests: Sequence[Request], arrival: float, n: int = 1) -> Stream:
        """Hand over the requests of one call, `n` for each of its prompts, all or none. Call on the event loop.

        Raises ApiError as `check_open`.
        """
        self.check_open(len(requests))
        with self._lock:
            if self._inside + len(requests) > self._capacity:
                raise queue_full(self._inside)
            self._inside += len(requests)
        stream = Stream(self, requests, arrival, n)
        self._inbox.put(_Add(stream.entries))
        if self._dead:  # it died between the question and the message: nobody will read the queue
            self._fail_inbox()
        return stream

    def cancel(self, stream: Stream) -> None:
        """Abort the requests of a stream before the next step."""
        self._inbox.put(_Abort(stream))

    def drain(self) -> None:
        """Refuse new requests from now on; those inside go on."""
        self._draining = True

    def abort_all(self, error: ApiError) -> None:
        """End everything that is inside; its clients get `error`."""
        self._inbox.put(_AbortAll(error))

    def stop(self, timeout_s: float = 10.0) -> bool:
        """End the thread after its present step. False when it did not end in time."""
        self._draining = True
        self._inbox.put(_Stop())
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # ---- the engine's thread

    def _run(self) -> None:
        try:
            while self._read_inbox():
                self._step()
        except BaseException as exc:
            # Whatever it is: clients must hear of it, or they wait for ever.
            log.critical("the engine's thread has died: %s", type(exc).__name__, exc_info=exc)
        finally:
            self._dead = True
            self._fail_inbox()

    def _read_inbox(self) -> bool:
        """Do what the messages say; sleep on the queue while the engine has nothing to do. False: stop."""
        while True:
            try:
                message = self._inbox.get(block=not self._engine.has_work())
            except queue.Empty:
                return True
            if isinstance(message, _Stop):
                return False
            self._handle(message)
            self._publish()

    def _handle(self, message: _Message) -> None:
        if isinstance(message, _Add):
            for entry in message.entries:
                self._add(entry)
        elif isinstance(message, _Abort):
            for request_id in list(message.stream.open):
                self._drop(request_id)
        elif isinstance(message, _AbortAll):
            self._fail({entry.stream for entry in self._entries.values()}, message.error)

    def _add(self, entry: Entry) -> None:
        try:
            self._engine.add(entry.request)
        except SpecctlError as exc:
            self._refuse(entry, bad_request(exc.message, code="invalid_request"))
        except Exception as exc:
            log.error("request=%s could not be added: %s", entry.request.id, type(exc).__name__, exc_info=exc)
            self._refuse(entry, internal_error())
        else:
            self._entries[entry.request.id] = entry

    def _refuse(self, entry: Entry, error: ApiError) -> None:
        self._leave(entry, "error", time.monotonic())
        _deliver([(entry.stream, error)])

    def _drop(self, request_id: str) -> None:
        entry = self._entries.get(request_id)
        if entry is not None:
            self._engine.abort(request_id)
            self._leave(entry, "abort", time.monotonic())

    def _step(self) -> None:
        emissions = list(self._engine.step())
        now = time.monotonic()
        events: list[tuple[Stream, _Event]] = []
        for emission in emissions:
            entry = self._entries.get(emission.request_id)
            if entry is not None:
                events.append((entry.stream, self._seen(entry, emission, now)))
        # Counters first: whoever has the answer finds it counted.
        self._publish()
        _deliver(events)

    def _seen(self, entry: Entry, emission: Emission, now: float) -> _Event:
        if emission.token_ids:
            entry.num_tokens += len(emission.token_ids)
            entry.started, entry.num_cached = emission.started, emission.num_cached
            entry.first_token = now if entry.first_token is None else entry.first_token
            self._observe(lambda: self._observer.tokens(entry, len(emission.token_ids), now))
            entry.last_token = now
        if emission.finish_reason is not None:
            self._leave(entry, emission.finish_reason, now)
        if emission.finish_reason == "error":
            if emission.refused:
                return bad_request(f"the request cannot go on: {emission.error}", code="invalid_request")
            log.error("request=%s failed in the engine: %s", entry.request.id, emission.error)
            return internal_error()
        return entry.choice, emission

    def _leave(self, entry: Entry, reason: str, now: float) -> None:
        self._entries.pop(entry.request.id, None)
        with self._lock:
            if entry.request.id not in entry.stream.open:
                return
            entry.stream.open.discard(entry.request.id)
            self._inside -= 1
        self._observe(lambda: self._observer.finished(entry, reason, now))

    def _observe(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as exc:  # a metric that cannot be written must not end the engine
            log.error("metrics: %s", exc)

    def _publish(self) -> None:
        engine = self._engine
        self.snapshot = Snapshot(engine.num_running, engine.kv_usage, engine.stats.copy(), engine.counters)

    def _fail(self, streams: Iterable[Stream], error: ApiError) -> None:
        for stream in streams:
            for request_id in list(stream.open):
                self._drop(request_id)
            _deliver([(stream, error)])

    def _fail_inbox(self) -> None:
        """The thread is over: answer everything that is inside and everything that still waits in the queue."""
        entries = list(self._entries.values())
        self._entries.clear()
        while True:
            try:
                message = self._inbox.get_nowait()
            except queue.Empty:
                break
            if isinstance(message, _Add):
                entries.extend(message.entries)
        for entry in entries:
            self._leave(entry, "error", time.monotonic())
        _deliver([(stream, engine_dead()) for stream in {entry.stream for entry in entries}])


def _deliver(events: Sequence[tuple[Stream, _Event]]) -> None:
    """Pass events to the event loop; one wake-up for all of a step."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Stream, _Event]]] = {}
    for stream, event in events:
        by_loop.setdefault(stream.loop, []).append((stream, event))
    for loop, batch in by_loop.items():
        try:
            loop.call_soon_threadsafe(_put_all, batch)
        except RuntimeError:  # the loop is closed: nobody is left to tell
            log.debug("an event loop closed before its answers came")


def _put_all(batch: Sequence[tuple[Stream, _Event]]) -> None:
    for stream, event in batch:
        stream.put(event)

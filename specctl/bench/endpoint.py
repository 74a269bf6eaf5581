"""Load on a running server: the same jobs as in process, sent over HTTP and timed by what comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from specctl.bench.conversation import follow_text, next_turn, not_asked
from specctl.bench.records import Block, Clock, Job, Record
from specctl.bench.scrape import Difference, difference
from specctl.bench.server import CHAT, Endpoint, Server, metrics_page, probe
from specctl.bench.stream import EVENTS, Answer, CountTokens, said
from specctl.bench.workloads import as_text
from specctl.dialects.counters import Page

if TYPE_CHECKING:
    from aiohttp import ClientSession

    from specctl.spec.config import SpecDecodeConfig

# uvicorn, and so every engine here, closes a connection that was idle for 5 s; a request sent just then is lost.
KEEPALIVE_S = 3.0
SETTLE_S = 2.0
SETTLE_STEP_S = 0.05
# Servers that answer with token ids when asked; others may refuse a field that they do not know.
PARTIAL = "interrupted: requests in flight are left out, so throughput is a little low, and their counters are unknown"
SENDS_IDS = ("vllm", "specctl")
_Result = TypeVar("_Result")


class EndpointRunner:
    """One server, asked over HTTP. `close` it in the end. `partial`: what had ended of a block that was interrupted."""

    max_concurrency: int | None = None

    def __init__(
        self,
        name: str,
        k: int | None,
        spec: SpecDecodeConfig | None,
        endpoint: Endpoint,
        tokenize: CountTokens | None = None,
        clock: Clock = time.perf_counter,
    ) -> None:
        self.name = name
        self.k = k
        self.spec = spec
        self._tokenize = tokenize
        self._clock = clock
        self._ended: list[Record] = []
        self.partial: Block | None = None
        self._loop = asyncio.Runner()
        try:
            self._session = self._do(_session(endpoint.timeout_s))
            self.server: Server = self._do(probe(self._session, endpoint))
        except BaseException:
            self.close()
            raise

    def _do(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return self._loop.run(work)

    def close(self) -> None:
        """Give the connections back."""
        session = getattr(self, "_session", None)
        if session is not None:
            self._do(session.close())
        self._loop.close()

    def run(self, jobs: Sequence[Job], concurrency: int, /) -> Block:
        """See `Runner.run`. Whatever interrupts it, nothing stays in flight."""
        self._ended, self.partial = [], None
        start = self._clock()
        try:
            return self._do(self._block(jobs, concurrency))
        except KeyboardInterrupt:
            ends = [record.last_token_s for record in self._ended if record.last_token_s is not None]
            if ends:
                self.partial = Block(tuple(self._ended), max(ends) - start, notes=(PARTIAL,))
            raise

    async def _block(self, jobs: Sequence[Job], concurrency: int) -> Block:
        before = await metrics_page(self._session, self.server.endpoint, self.server.model)
        start = self._clock()
        records = await self._all(jobs, concurrency, start)
        ends = [record.last_token_s for record in records if record.last_token_s is not None]
        told = await self._counted(before, records)
        return Block(tuple(records), max(ends, default=start) - start, told.stats, self._notes(told, records))

    async def _all(self, jobs: Sequence[Job], concurrency: int, start: float) -> list[Record]:
        """Every job's record, in the order of sending; at most `concurrency` of them in flight."""
        places = asyncio.Semaphore(concurrency)
        found: list[Record] = []

        async def one(job: Job) -> None:
            asked: Job | None = job
            async with places:
                while asked is not None:
                    found.append(record := Record(asked, self._clock()))
                    await self._send(record)
                    self._ended.append(record)
                    asked = next_turn(record, follow_text)
                    found.extend(not_asked(record))

        async with asyncio.TaskGroup() as group:
            for job in jobs:
                await asyncio.sleep(max(0.0, start + job.at_s - self._clock()) if job.at_s else 0)
                group.create_task(one(job))
        return found

    async def _send(self, record: Record) -> None:
        import aiohttp

        endpoint = self.server.endpoint
        path = "/v1/chat/completions" if endpoint.form == CHAT else "/v1/completions"
        answer, content_type = Answer(record, self._clock), EVENTS
        try:
            async with self._session.post(
                endpoint.url + path, json=self.body(record.job), headers=endpoint.headers
            ) as response:
                if response.status != 200:
                    moved = f" (redirected to {response.url})" if response.history else ""
                    record.error = f"HTTP {response.status}{moved}: {said(await _json(response))}"
                    return
                content_type = response.content_type
                async for data in response.content.iter_any():
                    answer.feed(data)
        except aiohttp.TooManyRedirects as error:
            record.error = f"redirected in a circle, to {error.request_info.real_url}"
        except TimeoutError:
            record.error = f"no answer within {endpoint.timeout_s:g} s (--timeout)"
        except (aiohttp.ClientError, OSError) as error:
            record.error = f"the connection broke: {error or type(error).__name__}"
        answer.end(self._tokenize, content_type)

    def body(self, job: Job) -> dict[str, Any]:
        """The request's JSON. What a value leaves off is not sent, since servers differ in what they take."""
        sampling, endpoint = job.sampling, self.server.endpoint
        body: dict[str, Any] = {"model": self.server.model}
        if endpoint.form == CHAT:
            body["messages"] = [dict(message) for message in job.prompt.messages]
        else:
            body["prompt"] = list(job.prompt.token_ids) or as_text(job.prompt)
        body |= {"max_tokens": sampling.max_tokens, "temperature": sampling.temperature}
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        off = {"top_p": 1.0, "top_k": 0, "min_p": 0.0}
        body |= {name: getattr(sampling, name) for name, value in off.items() if getattr(sampling, name) != value}
        if not sampling.greedy:
            body["seed"] = sampling.seed
        if sampling.ignore_eos:
            body["ignore_eos"] = True
        if self.server.engine in SENDS_IDS:
            body["return_token_ids"] = True
        if self.server.engine == "sglang":
            body["return_spec_tokens_details"] = True
        return body | endpoint.extra

    async def _counted(self, before: Page | None, records: Sequence[Record]) -> Difference:
        """The counters since `before`. A server may count a step after it has sent it, so they are left to settle."""
        ended = [record for record in records if not record.failed]
        ours = sum(record.told_tokens or 0 for record in ended)
        deadline = self._clock() + SETTLE_S
        while True:
            after = await metrics_page(self._session, self.server.endpoint, self.server.model)
            told = difference(before, after, len(ended))
            if told.tokens is None or told.tokens >= ours or self._clock() > deadline:
                return told
            await asyncio.sleep(SETTLE_STEP_S)

    def _notes(self, told: Difference, records: Sequence[Record]) -> tuple[str, ...]:
        notes = list(told.notes)
        ours = [record.told_tokens for record in records if not record.failed]
        known = sum(count for count in ours if count is not None)
        if told.tokens is not None and None not in ours and told.tokens > known and len(ours) == len(records):
            notes.append("the server generated tokens for others meanwhile: its counters are not of this run alone")
        if None in ours:
            how = "unknown, and so is TPOT; give --tokenizer FOLDER"
            if self._tokenize is not None:
                how = "counted with the tokenizer"
            elif all(record.token_ids for record in records if record.told_tokens is None and not record.failed):
                how = "counted by their ids"
            notes.append(f"the stream has no usage; output tokens are {how}")
        return tuple(notes)

    def margin(self, record: Record, place: int) -> float | None:
        """How far apart the server's two best tokens were at token `place` of an answer; None where it will not say."""
        return self._do(self._margin(record, place))

    async def _margin(self, record: Record, place: int) -> float | None:
        body = self.body(record.job) | {"stream": False, "max_tokens": place + 1}
        for name in ("stream_options", "return_token_ids", "return_spec_tokens_details"):
            body.pop(name, None)
        endpoint = self.server.endpoint
        chat = endpoint.form == CHAT
        path = "/v1/chat/completions" if chat else "/v1/completions"
        body |= {"logprobs": True, "top_logprobs": 2} if chat else {"logprobs": 2}
        import aiohttp

        try:
            async with self._session.post(endpoint.url + path, json=body, headers=endpoint.headers) as response:
                return None if response.status != 200 else top_two(await _json(response), place)
        except (aiohttp.ClientError, OSError):
            return None


def top_two(body: Any, place: int) -> float | None:
    """The distance of the two best log-probabilities at token `place` of an answer in one piece; None without them."""
    try:
        told = body["choices"][0]["logprobs"]
        if "content" in told:
            values = [each["logprob"] for each in told["content"][place]["top_logprobs"]]
        else:
            values = list(told["top_logprobs"][place].values())
        first, second = sorted(map(float, values), reverse=True)[:2]
    except (KeyError, TypeError, IndexError, ValueError):
        return None
    return first - second


async def _session(timeout_s: float) -> ClientSession:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S)
    timeout = aiohttp.ClientTimeout(total=timeout_s, connect=min(timeout_s, 30))
    return aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=1 << 20)


async def _json(response: Any) -> Any:
    text = await response.text(errors="replace")
    try:
        import json

        return json.loads(text)
    except ValueError:
        return text.strip() or response.reason

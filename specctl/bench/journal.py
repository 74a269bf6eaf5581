"""A file of finished blocks, so that a stopped run goes on where it stood."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from specctl.bench.prompt_rows import Prompt
from specctl.bench.records import Block, Job, Record, Runner
from specctl.bench.session import Journal, Schedule, Turn
from specctl.bench.workloads import Workload
from specctl.errors import MissingError, UsageError

if TYPE_CHECKING:
    from specctl.bench.order import Order
    from specctl.runtime import SpecStats, StepCosts
    from specctl.spec.config import SpecDecodeConfig

Key = dict[str, Any]
BEGINNING = '{"key"'
TIMES = ("submitted_s", "first_token_s", "last_token_s", "gaps_s")
TOLD = (
    *("token_ids", "finish_reason", "error", "text", "reply", "told_tokens", "told_prompt_tokens"),
    *("cached_tokens", "counted"),
)


def run_key(order: Order, schedule: Schedule, workload: Workload, runners: Sequence[Runner]) -> Key:
    """What must be the same for blocks of two runs to belong together."""
    plan = [(each.name, each.k, each.spec) for each in runners]
    return plan_key(order, schedule, workload, plan) | {"servers": [_server(runner) for runner in runners]}


def plan_key(
    order: Order,
    schedule: Schedule,
    workload: Workload,
    plan: Sequence[tuple[str, int | None, SpecDecodeConfig | None]],
) -> Key:
    """`run_key` for servers that do not run yet: names, k and settings of what will be measured."""
    sampling = {name: value for name, value in asdict(schedule.sampling).items() if name != "seed"}
    return {
        "target": order.target,
        "runners": [[name, k, None if spec is None else spec.as_dict()] for name, k, spec in plan],
        "prompts": [[prompt.id, _digest(prompt)] for prompt in workload.prompts],
        "concurrency": list(schedule.concurrency),
        "repeats": schedule.repeats,
        "num_prompts": schedule.num_prompts,
        "arrivals": None if schedule.arrivals is None else asdict(schedule.arrivals),
        "sampling": json.loads(json.dumps(sampling, default=list)),
        "seed": schedule.seed,
        "device": order.device,
        "dtype": order.dtype,
        "threads": order.threads,
    }


def _digest(prompt: Prompt) -> str:
    """What changes with anything that is asked."""
    asked = [prompt.messages, prompt.turns, prompt.token_ids, prompt.output_len, prompt.at_s]
    return sha256(json.dumps(asked).encode()).hexdigest()[:16]


def _server(runner: Runner) -> list[Any] | None:
    """Where a server is and what is asked of it; None in process."""
    server = getattr(runner, "server", None)
    if server is None:
        return None
    return [
        server.endpoint.url,
        server.model,
        server.engine,
        server.release,
        server.endpoint.form,
        server.endpoint.extra,
    ]


class FileJournal:
    """Blocks in a file of JSON lines, the key first. Raises `UsageError` for the file of another run."""

    def __init__(self, path: Path, key: Key) -> None:
        self._path = path
        self._key = json.loads(json.dumps(key))
        self._found: dict[tuple[int, int, int, int], dict[str, Any]] = {}
        self._file: IO[str] | None = None

    def __enter__(self) -> FileJournal:
        try:
            lines = self._path.read_text("utf-8", errors="replace").split("\n") if self._path.exists() else []
            if len(lines) == 1 and lines[0].startswith(BEGINNING):
                lines = []  # stopped while it wrote the first line
            self._read([line for line in lines if line.strip()])
            self._file = self._path.open("a" if lines else "w", encoding="utf-8")
            if lines and lines[-1]:
                self._file.write("\n")  # the last line was cut off while it was written
            if not any(line.strip() for line in lines):
                self._write({"key": self._key})
        except OSError as error:
            raise MissingError(f"cannot use {self._path}: {error.strerror or error}") from None
        return self

    def __exit__(self, *problem: object) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self, lines: list[str]) -> None:
        rows: list[dict[str, Any]] = []
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                continue  # cut off while it was written: that block is measured again
            rows += [row] if isinstance(row, dict) else []
        if not rows:
            if lines:
                raise UsageError(f"{self._path} is no journal of a bench", help="name a new file with --resume")
            return
        theirs = rows[0].get("key")
        if theirs != self._key:
            differs = [
                name for name in self._key if not isinstance(theirs, dict) or theirs.get(name) != self._key[name]
            ]
            raise UsageError(
                f"{self._path} is of another run (other {', '.join(differs)})", help="name a new file with --resume"
            )
        for row in rows[1:]:
            if isinstance(row.get("place"), list) and isinstance(row.get("records"), list):
                self._found[tuple(row["place"])] = row

    def _write(self, row: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
        self._file.flush()

    def known(self, turn: Turn, runner: int) -> Block | None:
        """See `session.Journal`."""
        row = self._found.get((turn.repeat, turn.concurrency, turn.number, runner))
        return None if row is None else _block(row, turn.jobs)

    def keep(self, turn: Turn, runner: int, block: Block) -> None:
        """See `session.Journal`."""
        place = [turn.repeat, turn.concurrency, turn.number, runner]
        self._write({"place": place} | _row(block, turn.jobs))


class _Shifted:
    """One journal for runtimes that are measured one after the other, each alone: the one at this place."""

    def __init__(self, journal: FileJournal, place: int) -> None:
        self._journal, self._place = journal, place

    def known(self, turn: Turn, runner: int) -> Block | None:
        """See `session.Journal`."""
        return self._journal.known(turn, self._place + runner)

    def keep(self, turn: Turn, runner: int, block: Block) -> None:
        """See `session.Journal`."""
        self._journal.keep(turn, self._place + runner, block)


@contextmanager
def journal_at(path: Path | None, key: Key, place: int) -> Iterator[Journal | None]:
    """The journal of the runtime at this place, where there is one to keep."""
    if path is None:
        yield None
        return
    with FileJournal(path, key) as journal:
        yield _Shifted(journal, place)


def _row(block: Block, jobs: Sequence[Job]) -> dict[str, Any]:
    places = {job.index: place for place, job in enumerate(jobs)}
    records = [
        {name: getattr(record, name) for name in (*TIMES, *TOLD)}
        | {"job": places[record.job.index], "stats": None if record.stats is None else asdict(record.stats)}
        | ({"turn": _turn(record.job)} if record.job.turn else {})
        for record in block.records
    ]
    return {
        "records": records,
        "duration_s": block.duration_s,
        "stats": None if block.stats is None else asdict(block.stats),
        "notes": list(block.notes),
        "draft_s": block.draft_s,
        "verify_s": block.verify_s,
        "costs": None if block.costs is None else asdict(block.costs),
    }


def _block(row: dict[str, Any], jobs: Sequence[Job]) -> Block:
    records = tuple(
        Record(
            job=_job(jobs[each["job"]], each.get("turn")),
            stats=_stats(each["stats"]),
            **{name: each[name] for name in (*TIMES, *TOLD)},
        )
        for each in row["records"]
    )
    return Block(
        records,
        row["duration_s"],
        _stats(row["stats"]),
        tuple(row["notes"]),
        row["draft_s"],
        row["verify_s"],
        _costs(row["costs"]),
    )


def _turn(job: Job) -> dict[str, Any]:
    """What a later turn asked: the conversation so far, which the file of prompts does not hold."""
    prompt = job.prompt
    return {"number": job.turn, "messages": prompt.messages, "token_ids": prompt.token_ids, "turns": prompt.turns}


def _job(job: Job, turn: dict[str, Any] | None) -> Job:
    if turn is None:
        return job
    messages, ids, later = tuple(turn["messages"]), tuple(turn["token_ids"]), tuple(turn["turns"])
    return job.following(replace(job.prompt, messages=messages, token_ids=ids, turns=later), turn["number"])


def _costs(found: dict[str, Any] | None) -> StepCosts | None:
    from specctl.runtime import StepCosts

    return None if found is None else StepCosts(**found)


def _stats(found: dict[str, Any] | None) -> SpecStats | None:
    from specctl.runtime import SpecStats

    return None if found is None else SpecStats(**found)

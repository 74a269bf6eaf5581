"""transformers' own `generate` on the same weights and dtype: plain, with prompt lookup, with an assistant model.

It takes one prompt at a time, so these run at concurrency 1 alone. Tokens are timed by a streamer, which is handed each
new token (each verified block, when assisted) as soon as it is chosen. The assistant drafts exactly k tokens a round
(threshold 0, constant schedule), lookup matches up to 4 tokens: as near to our own settings as its options come.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig
from transformers.generation.streamers import BaseStreamer
from transformers.utils import logging

from specctl.bench.conversation import Follow, next_turn, not_asked, unfollowed
from specctl.bench.peers import ASSISTED, LOOKUP, PeerSetup
from specctl.bench.records import Block, Clock, Job, Record, Runner
from specctl.errors import SpecctlError
from specctl.runtime.models.loading import model_folder
from specctl.spec.config import SpecDecodeConfig

MAX_MATCH = 4


def load_peers(names: Sequence[str], setup: PeerSetup) -> list[Runner]:
    """One runner for each name, all over one copy of the target."""
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    target = _load(model_folder(setup.target), setup)
    assistant = _load(model_folder(setup.draft), setup) if ASSISTED in names and setup.draft else None
    if assistant is not None:
        assistant.generation_config.update(
            num_assistant_tokens=setup.k, num_assistant_tokens_schedule="constant", assistant_confidence_threshold=0.0
        )
    return [_runner(name, setup, target, assistant) for name in names]


def _load(folder: Path, setup: PeerSetup) -> Any:
    dtype = getattr(torch, setup.dtype)
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True)
    except (ValueError, OSError, ImportError, KeyError, RuntimeError) as error:
        raise SpecctlError(f"transformers cannot load {folder}: {error}", help="leave --against out") from error
    # What a checkpoint brings along (sampling defaults, repetition penalties) would decode something else.
    model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]
    return model.to(setup.device).eval()


def _runner(name: str, setup: PeerSetup, target: Any, assistant: Any) -> GenerateRunner:
    own: dict[str, Any] = {}
    if name == LOOKUP:
        own = {"prompt_lookup_num_tokens": setup.k, "max_matching_ngram_size": MAX_MATCH}
    elif name == ASSISTED:
        own = {"assistant_model": assistant}
    eos = sorted(setup.eos_token_ids)
    return GenerateRunner(name, setup.k if own else None, target, eos, own, follow=setup.follow)


class _Watch(BaseStreamer):  # type: ignore[no-untyped-call,misc,unused-ignore]
    """Notes the time of each token; the first thing that a streamer is given is the prompt."""

    def __init__(self, record: Record, clock: Clock) -> None:
        self._record = record
        self._clock = clock
        self._saw_prompt = False

    def put(self, value: Any) -> None:
        """Take what `generate` has just chosen: token ids of any shape, on the CPU."""
        if self._saw_prompt:
            self._record.take(value.flatten().tolist(), self._clock())
        self._saw_prompt = True

    def end(self) -> None:
        """Nothing is held back."""


class GenerateRunner:
    """`model.generate`, one request after the other."""

    spec: SpecDecodeConfig | None = None
    max_concurrency: int | None = 1

    def __init__(
        self,
        name: str,
        k: int | None,
        model: Any,
        eos_token_ids: list[int],
        options: dict[str, Any],
        clock: Clock = time.perf_counter,
        follow: Follow = unfollowed,
    ) -> None:
        self.name = name
        self.k = k
        self._model = model
        self._eos = eos_token_ids
        self._options = options
        self._clock = clock
        self._follow = follow

    def run(self, jobs: Sequence[Job], _concurrency: int, /) -> Block:
        """See `Runner.run`; the concurrency is 1."""
        start = self._clock()
        records: list[Record] = []
        for job in jobs:
            asked: Job | None = job
            while asked is not None:
                records.append(record := self._answer(asked))
                asked = next_turn(record, self._follow)
                records += not_asked(record)
        ends = [record.last_token_s for record in records if record.last_token_s is not None]
        return Block(tuple(records), max(ends, default=start) - start)

    def _answer(self, job: Job) -> Record:
        record = Record(job, self._clock())
        prompt = torch.tensor([job.prompt.token_ids], device=self._model.device)
        if job.sampling.seed is not None and not job.sampling.greedy:
            torch.manual_seed(job.sampling.seed)
        try:
            with torch.inference_mode():
                self._model.generate(
                    prompt,
                    attention_mask=torch.ones_like(prompt),
                    streamer=_Watch(record, self._clock),
                    generation_config=self._config(job),
                    **self._options,
                )
        except (ValueError, RuntimeError, IndexError) as error:
            record.error = f"{type(error).__name__}: {error}"
        ended = bool(record.token_ids) and record.token_ids[-1] in self._eos
        record.finish_reason = "error" if record.failed else "stop" if ended else "length"
        return record

    def _config(self, job: Job) -> Any:
        wanted = job.sampling
        sampling: dict[str, Any] = {"do_sample": False}
        if not wanted.greedy:
            sampling = {
                "do_sample": True,
                "temperature": wanted.temperature,
                "top_p": wanted.top_p,
                "top_k": wanted.top_k,
            }
            sampling["min_p"] = wanted.min_p or None
        eos = self._eos or None
        pad = self._eos[0] if self._eos else 0
        sampling |= {"max_new_tokens": wanted.max_tokens, "eos_token_id": eos, "pad_token_id": pad}
        return GenerationConfig(**sampling)  # type: ignore[no-untyped-call]

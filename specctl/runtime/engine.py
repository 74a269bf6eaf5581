"""The engine: requests in, tokens out, one target forward a step for everything that runs.

    step = schedule -> draft -> one forward over all rows -> verify -> append -> report

A row is a prompt token of a prefill chunk, the newest token of a decoding sequence, or one of its drafted tokens. The
engine knows no method by name: a proposer, or none, is handed to it. A fault in one request ends that request alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any

from torch import Tensor

from specctl.errors import SpecctlError
from specctl.runtime.acceptance import Coupled, Standard, Verifier, first_token
from specctl.runtime.adjust import check_possible
from specctl.runtime.admission import check_prompt, make_sequence
from specctl.runtime.batch import Batch, make_batch, scores_prompt
from specctl.runtime.draft import NO_DRAFT, Draft, Proposer, SharesCache
from specctl.runtime.draft_length import DraftLength, Fixed
from specctl.runtime.drafting import Drafting
from specctl.runtime.integrity import watch
from specctl.runtime.logprobs import output_logprobs, score_prompt
from specctl.runtime.models.linear import step_clock
from specctl.runtime.options import Counters, EngineOptions
from specctl.runtime.prefix import PrefixCache
from specctl.runtime.request import Emission, Request
from specctl.runtime.sampling import request_seed
from specctl.runtime.scheduler import BLOCK, Chunk, Scheduler, blocks, make_limits
from specctl.runtime.sequence import Sequence
from specctl.runtime.stats import SpecStats, StepTimes
from specctl.runtime.target import Target
from specctl.runtime.verify import Outcome

log = logging.getLogger("specctl.runtime")


class Engine:
    """Continuous batching over one target. Used from one thread."""

    def __init__(
        self,
        target: Target,
        proposer: Proposer | None,
        options: EngineOptions,
        verifier: Verifier | None = None,
        length: DraftLength | None = None,
    ) -> None:
        self.target = target
        self.max_model_len = min(options.max_model_len or target.max_model_len, target.max_model_len)
        self.stats = SpecStats()
        self.times = StepTimes()
        self.remarks: tuple[str, ...] = ()
        self._length: DraftLength = length or Fixed(proposer.num_speculative_tokens if proposer else 0)
        self._verifier: Verifier = verifier or (Coupled() if options.coupled else Standard())
        self._options = options
        self._drafting = Drafting(proposer, target.vocab_size)
        # The nodes of a tree need an entry each, though most of them share a position.
        branched = proposer is not None and proposer.num_draft_tokens > proposer.num_speculative_tokens
        self._entries = self.max_model_len + (self.num_draft_tokens if branched else 0)
        self._cache: Any = target.model.make_cache(options.max_num_seqs, self._entries)
        if isinstance(proposer, SharesCache):
            proposer.share(self._cache)
        self._scheduler = self._make_scheduler()
        self._rows = watch(self._cache, "target's") if options.check_cache else None
        self._prefixes = PrefixCache(self._copy, self._cache.release)
        shared = self._cache.prefixes_can_be_shared and self._drafting.shares_prefixes
        self.prefix_caching = options.prefix_caching and shared

    def _make_scheduler(self) -> Scheduler:
        return Scheduler(make_limits(self._options, self.max_model_len, self._entries, 1 + self.num_draft_tokens))

    @property
    def num_speculative_tokens(self) -> int:
        return self._drafting.proposer.num_speculative_tokens if self._drafting.proposer else 0

    @property
    def proposer(self) -> Proposer | None:
        """What drafts, None where nothing does."""
        return self._drafting.proposer

    @property
    def num_draft_tokens(self) -> int:
        """Drafted tokens a step and request at most: k, or the nodes of a tree."""
        return self._drafting.proposer.num_draft_tokens if self._drafting.proposer else 0

    @property
    def num_slots(self) -> int:
        """Sequences that can run at once."""
        return self._options.max_num_seqs

    @property
    def kv_cache_tokens(self) -> int:
        """Cache entries that all sequences together may have."""
        return self._scheduler.num_blocks * BLOCK

    def limit_kv_cache(self, tokens: int) -> None:
        """Let all sequences together have ``tokens`` cache entries from now on, at most what the slots hold.

        Raises SpecctlError where one conversation would not fit. For use before the first request.
        """
        self._options = replace(self._options, kv_cache_tokens=min(tokens, self.kv_cache_tokens))
        self._scheduler = self._make_scheduler()

    @property
    def measured_length(self) -> bool:
        """Whether drafts are as long as it pays by measurement rather than as the setting says."""
        return self._drafting.proposer is not None and self._options.measured_length

    @property
    def notes(self) -> tuple[str, ...]:
        """Where this run does otherwise than the setting or its engine; to be told to the user."""
        own = (*(self._drafting.proposer.notes if self._drafting.proposer else ()), *self.remarks)
        if not self._options.prefix_caching or self.prefix_caching:
            return own
        whose = "the draft needs the target's states of the whole prompt" if self._cache.prefixes_can_be_shared else ""
        return (
            *own,
            f"no prefix caching: {whose or 'this target keeps a recurrent state, which holds no prefix to share'}",
        )

    @property
    def lossless(self) -> bool:
        """Whether the output's distribution is the target's."""
        return self._verifier.lossless

    @property
    def num_running(self) -> int:
        return len(self._scheduler.running)

    @property
    def num_waiting(self) -> int:
        return len(self._scheduler.waiting)

    @property
    def kv_usage(self) -> float:
        """Computed tokens of running sequences, in blocks, as a share of the cache."""
        used = sum(blocks(sequence.num_computed) for sequence in self._scheduler.running)
        return used / self._scheduler.num_blocks

    @property
    def counters(self) -> Counters:
        prefixes = self._prefixes
        preemptions, failures = self._scheduler.num_preemptions, self._drafting.num_failures
        return Counters(preemptions, prefixes.num_queries, prefixes.num_hits, failures)

    def has_work(self) -> bool:
        return bool(self._scheduler.running or self._scheduler.waiting)

    def add(self, request: Request) -> None:
        """Queue a request; raises SpecctlError for a prompt that the target cannot take or an id that already runs."""
        check_prompt(request.prompt_token_ids, self.target.vocab_size, self.max_model_len)
        if self._scheduler.find(request.id) is not None:
            raise SpecctlError(f"a request with the id {request.id!r} is already running", help="give each its own id")
        seed = request_seed(self._options.seed, request.id, request.sampling.seed)
        self._scheduler.add(make_sequence(request, self.target, self._verifier.randomness(seed)))

    def abort(self, request_id: str) -> bool:
        """Drop a request at once and free its slot; False where no such request is waiting or running."""
        sequence = self._scheduler.find(request_id)
        if sequence is None:
            return False
        self._retire(sequence, keep=True)
        return True

    def forget(self) -> None:
        """Drop what earlier requests left behind for later ones, so that the next is served as the first one was.

        Raises RuntimeError while requests run or wait.
        """
        if self.has_work():
            raise RuntimeError(f"{self.num_running + self.num_waiting} requests run or wait; forget between requests")
        while self._prefixes.drop_oldest():
            pass
        if self._drafting.proposer:
            self._drafting.proposer.forget()

    def step(self) -> list[Emission]:
        """One forward of the target; what it produced, request by request. Empty when there is nothing to do."""
        while (sequence := self._scheduler.overfull()) is not None:
            self._leave(sequence, keep=True)
            self._scheduler.preempt(sequence)
        while (sequence := self._scheduler.next()) is not None:
            self._admit(sequence)
        while self._scheduler.reserved + self._prefixes.num_blocks > self._scheduler.num_blocks:
            if not self._prefixes.drop_oldest():
                break
        decodes, chunks = self._scheduler.plan()
        if not decodes and not chunks:
            return []
        began = step_clock()
        k = self._length.choose(len(decodes)) if decodes else 0
        drafts = self._draft(decodes, k)
        drafted = step_clock()
        before = [sequence.stats.num_accepted_tokens for sequence in decodes]
        emissions = self._run(decodes, drafts, chunks)
        if not chunks:
            ended = step_clock()
            self.times.add(drafted - began, ended - drafted)
            after = [sequence.stats.num_accepted_tokens for sequence in decodes]
            self._length.observe(k, [b - a for a, b in zip(before, after, strict=True)], ended - began)
        return emissions

    def _admit(self, sequence: Sequence) -> None:
        free = self._scheduler.free_slots()
        slot, reused = free[0], 0
        if self.prefix_caching and sequence.request.sampling.prompt_logprobs is None:
            running = {each.slot: each.tokens[: each.num_computed] for each in self._scheduler.running}
            # At least one token is computed: its logits, or its state, are needed.
            limit = sequence.num_to_prefill - 1
            slot, reused = self._prefixes.begin(sequence.tokens, limit, free, running)
        self._scheduler.run(sequence, slot)
        sequence.num_computed = reused
        if sequence.started is None:
            sequence.started, sequence.num_cached = monotonic(), reused
        self._drafting.start(sequence)

    def _copy(self, source: int, slot: int, count: int) -> int:
        if source != slot:
            self._cache.copy(source, slot, count)
        return self._drafting.carry(source, slot, count)

    def _run(self, decodes: list[Sequence], drafts: list[Draft], chunks: list[Chunk]) -> list[Emission]:
        """One forward and what follows from it. Where the forward throws, each sequence is tried alone."""
        batch = make_batch(decodes, drafts, chunks)
        if self._rows:
            self._rows.step(batch, [s.tokens for s in (*decodes, *(chunk.sequence for chunk in chunks))])
        try:
            logits, hidden = self._forward(batch)
        except Exception as error:
            if len(batch.spans) == 1:
                return [self._fail((decodes or [chunks[0].sequence])[0], error)]
            alone = [self._run([s], [d], []) for s, d in zip(decodes, drafts, strict=True)]
            alone += [self._run([], [], [chunk]) for chunk in chunks]
            return [emission for emissions in alone for emission in emissions]
        return self._verify(decodes, drafts, logits, hidden, batch) + self._finish_prefills(
            chunks, logits, hidden, batch
        )

    def _forward(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Logits of the rows that want them; hidden states of all rows where the proposer lives on them."""
        model, layers = self.target.model, self._drafting.hidden_layers
        if not layers:
            return model.forward(batch.tokens, batch.spans, self._cache, batch.logit_rows), None
        return model.forward_tapped(batch.tokens, batch.spans, self._cache, batch.logit_rows, layers)

    def _draft(self, decodes: list[Sequence], k: int) -> list[Draft]:
        if not self._drafting.proposer or not decodes:
            return [NO_DRAFT] * len(decodes)
        # The context must hold the drafted tokens and the bonus token behind them.
        limits = [min(k, self.max_model_len - len(sequence.tokens) - 1) for sequence in decodes]
        return self._drafting.propose(decodes, limits)

    def _verify(
        self, decodes: list[Sequence], drafts: list[Draft], logits: Tensor, hidden: Tensor | None, batch: Batch
    ) -> list[Emission]:
        """What each sequence got, and how many of its drafted tokens were accepted."""
        wanted = self._verifier.needs_best or any(s.request.sampling.greedy for s in decodes)
        best = logits.argmax(dim=-1).tolist() if wanted else []
        emissions = []
        for sequence, draft, first, begin in zip(decodes, drafts, batch.firsts, batch.begins, strict=False):
            rows = slice(first, first + len(draft.tokens) + 1)
            states = _part(hidden, begin, len(draft.tokens) + 1)
            work = partial(self._accept, sequence, draft, logits[rows], best[rows], states)
            emissions.append(self._guarded(sequence, work))
        return emissions

    def _accept(
        self, sequence: Sequence, draft: Draft, logits: Tensor, best: list[int], hidden: Tensor | None
    ) -> Emission:
        """Judge a draft and append what stands; the rows are those of this sequence."""
        outcome = self._judge(sequence, draft, logits, best)
        for stats in (sequence.stats, self.stats):
            stats.record(len(draft.tokens), outcome.accepted, draft.depth)
        block, kept = self._settle(sequence, draft, outcome)
        return self._take(sequence, block, logits[kept], None if hidden is None else hidden[kept])

    def _guarded(self, sequence: Sequence, work: Callable[[], Emission]) -> Emission:
        try:
            return work()
        except Exception as error:
            return self._fail(sequence, error)

    def _fail(self, sequence: Sequence, error: Exception) -> Emission:
        """End one request because of a fault in it; its own fault where the error is for the user."""
        name, own = sequence.request.id, isinstance(error, SpecctlError)
        # What is wrong with a request is told to whoever sent it; it may quote what should not be in a log.
        log.error("request=%s ends: %s", name, type(error).__name__, exc_info=None if own else error)
        self._retire(sequence, keep=False)
        told = error.message if isinstance(error, SpecctlError) else f"{type(error).__name__}: {error}"
        return Emission(name, [], "", "error", error=told, refused=own)

    def _judge(self, sequence: Sequence, draft: Draft, logits: Tensor, best: list[int]) -> Outcome:
        """What stands of a draft, by its rows as the request wants them."""
        if sequence.adjustment:
            logits = sequence.adjustment.apply(logits, draft.paths())
            best = logits.argmax(dim=-1).tolist() if best else []
        outcome = self._verifier.judge(sequence, draft, logits, best)
        if sequence.adjustment:
            check_possible(logits[outcome.last_row], outcome.next_token)
        return outcome

    def _settle(self, sequence: Sequence, draft: Draft, outcome: Outcome) -> tuple[list[int], slice | list[int]]:
        """The tokens that stand and the rows that gave them. The path of a tree becomes a chain in the cache."""
        if draft.parents is None:
            return [*draft.tokens[: outcome.accepted], outcome.next_token], slice(outcome.accepted + 1)
        assert outcome.path is not None, "the outcome of a tree names its path"
        kept = [0, *(node + 1 for node in outcome.path)]
        if kept != list(range(len(kept))):
            self._cache.move(sequence.slot, sequence.num_computed, kept)
        return [*(draft.tokens[node] for node in outcome.path), outcome.next_token], kept

    def _finish_prefills(
        self, chunks: list[Chunk], logits: Tensor, hidden: Tensor | None, batch: Batch
    ) -> list[Emission]:
        emissions = []
        skipped = len(batch.spans) - len(chunks)
        for chunk, first, begin in zip(chunks, batch.firsts[skipped:], batch.begins[skipped:], strict=True):
            sequence, states = chunk.sequence, _part(hidden, begin, chunk.count)
            rows = logits[first : first + (chunk.count if scores_prompt(sequence) else 1)]
            begun = sequence.num_computed
            sequence.num_computed += chunk.count
            if sequence.num_computed < sequence.num_to_prefill or sequence.num_output:
                score_prompt(sequence, begun, rows)
                if states is not None:
                    self._drafting.observe(sequence, states)
                continue
            emissions.append(self._guarded(sequence, partial(self._begin, sequence, begun, rows, states)))
        return emissions

    def _begin(self, sequence: Sequence, begun: int, logits: Tensor, hidden: Tensor | None) -> Emission:
        """The prompt is computed, from token ``begun`` on in this step: the first token."""
        score_prompt(sequence, begun, logits)
        last = logits[-1:]
        return self._take(sequence, [first_token(sequence, last)], last, hidden)

    def _take(self, sequence: Sequence, block: list[int], logits: Tensor, hidden: Tensor | None) -> Emission:
        """Append ``block``, whose tokens the rows of ``logits`` [len(block), vocab] gave, and say what came of it."""
        taken = sequence.append(block, self.target.eos_token_ids, self.max_model_len)
        # All that stands is computed but for the newest token; rejected drafts behind it are as good as gone.
        sequence.num_computed = len(sequence.tokens) - 1
        finished = sequence.finish_reason is not None
        text = sequence.text.take(finished)
        first = sequence.num_output == len(taken)
        emission = Emission(
            sequence.request.id,
            taken,
            text,
            sequence.finish_reason,
            sequence.stop_reason,
            sequence.stats if finished else None,
            logprobs=output_logprobs(sequence, logits, taken),
            prompt_logprobs=sequence.prompt_logprobs if first and scores_prompt(sequence) else None,
            num_cached=sequence.num_cached,
            started=sequence.started,
        )
        if finished:
            self._retire(sequence, keep=True)
        else:
            self._drafting.observe(sequence, hidden)
        return emission

    def _leave(self, sequence: Sequence, keep: bool) -> None:
        """A running sequence leaves its slot; ``keep``: what it computed may serve others."""
        self._drafting.finish(sequence)
        if keep and self.prefix_caching:
            self._prefixes.keep(sequence.slot, sequence.tokens[: sequence.num_computed])
        elif self._options.kv_cache_tokens is not None:
            self._cache.release(sequence.slot)

    def _retire(self, sequence: Sequence, keep: bool) -> None:
        if sequence.slot >= 0:
            self._leave(sequence, keep)
        self._scheduler.remove(sequence)


def _part(hidden: Tensor | None, begin: int, count: int) -> Tensor | None:
    return None if hidden is None else hidden[begin : begin + count]

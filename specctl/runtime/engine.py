"""The engine: requests in, tokens out, one target forward a step for everything that runs.

    step = schedule -> draft -> one forward over all rows -> verify -> append -> report

A row is a prompt token of a prefill chunk, the newest token of a decoding sequence, or one of its drafted tokens. The
engine knows no method by name: a proposer, or none, is handed to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

from torch import Tensor

from specctl.errors import SpecctlError
from specctl.runtime.acceptance import Coupled, Standard, Verifier
from specctl.runtime.adjust import make_adjustment
from specctl.runtime.batch import Batch, make_batch
from specctl.runtime.draft import NO_DRAFT, Draft, Proposer, SharesCache, cut
from specctl.runtime.draft_length import DraftLength, Fixed
from specctl.runtime.logprobs import token_logprobs
from specctl.runtime.request import Emission, Request, TokenLogprobs
from specctl.runtime.sampling import probabilities, request_seed
from specctl.runtime.scheduler import Chunk, Scheduler
from specctl.runtime.sequence import Sequence
from specctl.runtime.stats import SpecStats, StepTimes
from specctl.runtime.target import Target
from specctl.runtime.text import TextStream
from specctl.runtime.verify import Outcome


@dataclass(frozen=True)
class EngineOptions:
    """Limits of an engine. ``max_num_batched_tokens``: rows a step may have before prefill chunks have to wait.

    ``max_model_len`` None takes the target's own context. ``coupled``: noise fixed by seed and place, so that sampled
    text does not depend on the draft (see `specctl.runtime.acceptance.Coupled`); a draft's setting asks for it by its
    ``acceptance``, this option by itself serves plain decoding. ``measured_length``: a draft's length follows
    measured acceptance and times instead of the setting, which it never exceeds. Raises ValueError for limits below 1.
    """

    max_num_seqs: int = 16
    max_model_len: int | None = None
    max_num_batched_tokens: int = 512
    seed: int = 0
    coupled: bool = False
    measured_length: bool = False

    def __post_init__(self) -> None:
        for name in ("max_num_seqs", "max_model_len", "max_num_batched_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")


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
        self._proposer = proposer
        self._length: DraftLength = length or Fixed(self.num_speculative_tokens)
        self._verifier: Verifier = verifier or (Coupled() if options.coupled else Standard())
        self._options = options
        self._scheduler = Scheduler(options.max_num_seqs, options.max_num_batched_tokens)
        # The nodes of a tree need an entry each, though most of them share a position.
        branched = proposer is not None and proposer.num_draft_tokens > proposer.num_speculative_tokens
        spare = self.num_draft_tokens if branched else 0
        self._cache: Any = target.model.make_cache(options.max_num_seqs, self.max_model_len + spare)
        if isinstance(proposer, SharesCache):
            proposer.share(self._cache)

    @property
    def num_speculative_tokens(self) -> int:
        return self._proposer.num_speculative_tokens if self._proposer else 0

    @property
    def num_draft_tokens(self) -> int:
        """Drafted tokens a step and request at most: k, or the nodes of a tree."""
        return self._proposer.num_draft_tokens if self._proposer else 0

    @property
    def notes(self) -> tuple[str, ...]:
        """Where this run does otherwise than the engine whose setting it was; to be told to the user."""
        return self._proposer.notes if self._proposer else ()

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
        """Computed tokens of running sequences as a share of all cache entries."""
        used = sum(sequence.num_computed for sequence in self._scheduler.running)
        return used / (self._options.max_num_seqs * self.max_model_len)

    def has_work(self) -> bool:
        return bool(self._scheduler.running or self._scheduler.waiting)

    def add(self, request: Request) -> None:
        """Queue a request; raises SpecctlError for a prompt that the target cannot take or an id that already runs."""
        self._check(request)
        seed = request_seed(self._options.seed, request.id, request.sampling.seed)
        text = TextStream(self.target.decode, request.sampling.stop)
        prompt, target = list(request.prompt_token_ids), self.target
        sampling = request.sampling
        grammar = target.grammars.start(sampling.grammar) if sampling.grammar else None
        adjustment = make_adjustment(
            sampling, prompt, target.eos_token_ids, target.vocab_size, target.model.device, grammar
        )
        self._scheduler.add(Sequence(request, prompt, self._verifier.randomness(seed), text, adjustment, grammar))

    def _check(self, request: Request) -> None:
        prompt = request.prompt_token_ids
        if not prompt:
            raise SpecctlError("the prompt is empty", help="give at least one token")
        if len(prompt) >= self.max_model_len:
            raise SpecctlError(
                f"the prompt has {len(prompt)} tokens; with max_model_len {self.max_model_len} it may have "
                f"{self.max_model_len - 1}, so that one new token fits",
                help="shorten the prompt, or raise max_model_len where the target's own context allows it",
            )
        wrong = next((token for token in prompt if not 0 <= token < self.target.vocab_size), None)
        if wrong is not None:
            raise SpecctlError(f"token id {wrong} is not in the target's vocabulary of {self.target.vocab_size}")
        if self._scheduler.find(request.id) is not None:
            raise SpecctlError(f"a request with the id {request.id!r} is already running", help="give each its own id")

    def abort(self, request_id: str) -> bool:
        """Drop a request at once and free its slot; False where no such request is waiting or running."""
        sequence = self._scheduler.find(request_id)
        if sequence is None:
            return False
        self._retire(sequence)
        return True

    def forget(self) -> None:
        """Drop what earlier requests left behind for later ones, so that the next is served as the first one was.

        Raises RuntimeError while requests run or wait.
        """
        if self.has_work():
            raise RuntimeError(f"{self.num_running + self.num_waiting} requests run or wait; forget between requests")
        if self._proposer:
            self._proposer.forget()

    def step(self) -> list[Emission]:
        """One forward of the target; what it produced, request by request. Empty when there is nothing to do."""
        for sequence in self._scheduler.admit():
            if self._proposer:
                self._proposer.start(sequence)
        decodes, chunks = self._scheduler.plan()
        if not decodes and not chunks:
            return []
        began = perf_counter()
        k = self._length.choose(len(decodes)) if decodes else 0
        drafts = self._draft(decodes, k)
        drafted = perf_counter()
        batch = make_batch(decodes, drafts, chunks)
        logits, hidden = self._forward(batch)
        emissions, accepted = self._verify(decodes, drafts, logits, hidden, batch)
        if not chunks:
            ended = perf_counter()
            self.times.add(drafted - began, ended - drafted)
            self._length.observe(k, accepted, ended - began)
        return emissions + self._finish_prefills(chunks, logits, hidden, batch)

    def _forward(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Logits of the rows that want them; hidden states of all rows where the proposer lives on them."""
        model, layers = self.target.model, self._proposer.hidden_layers if self._proposer else ()
        if not layers:
            return model.forward(batch.tokens, batch.spans, self._cache, batch.logit_rows), None
        return model.forward_tapped(batch.tokens, batch.spans, self._cache, batch.logit_rows, layers)

    def _draft(self, decodes: list[Sequence], k: int) -> list[Draft]:
        if not self._proposer or not decodes:
            return [NO_DRAFT] * len(decodes)
        # The context must hold the drafted tokens and the bonus token behind them.
        limits = [min(k, self.max_model_len - len(sequence.tokens) - 1) for sequence in decodes]
        drafts = self._proposer.propose(decodes, limits)
        return [cut(d, s.grammar) if s.grammar else d for s, d in zip(decodes, drafts, strict=True)]

    def _verify(
        self, decodes: list[Sequence], drafts: list[Draft], logits: Tensor, hidden: Tensor | None, batch: Batch
    ) -> tuple[list[Emission], list[int]]:
        """What each sequence got, and how many of its drafted tokens were accepted."""
        wanted = self._verifier.needs_best or any(s.request.sampling.greedy for s in decodes)
        best = logits.argmax(dim=-1).tolist() if wanted else []
        emissions, accepted = [], []
        for sequence, draft, first, begin in zip(decodes, drafts, batch.firsts, batch.begins, strict=False):
            rows = slice(first, first + len(draft.tokens) + 1)
            outcome = self._judge(sequence, draft, logits[rows], best[rows])
            for stats in (sequence.stats, self.stats):
                stats.record(len(draft.tokens), outcome.accepted, draft.depth)
            block, kept = self._settle(sequence, draft, outcome)
            states = _part(hidden, begin, len(draft.tokens) + 1)
            states = None if states is None else states[kept]
            emissions.append(self._take(sequence, block, logits[rows][kept], states))
            accepted.append(outcome.accepted)
        return emissions, accepted

    def _judge(self, sequence: Sequence, draft: Draft, logits: Tensor, best: list[int]) -> Outcome:
        """What stands of a draft, by its rows as the request wants them."""
        if sequence.adjustment:
            logits = sequence.adjustment.apply(logits, draft.paths())
            best = logits.argmax(dim=-1).tolist() if best else []
        return self._verifier.judge(sequence, draft, logits, best)

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
            sequence.num_computed += chunk.count
            if sequence.num_computed < sequence.num_prompt:
                if self._proposer and states is not None:
                    self._proposer.observe(sequence, states)
                continue
            raw = logits[first : first + 1]
            emissions.append(self._take(sequence, [self._first_token(sequence, raw)], raw, states))
        return emissions

    def _first_token(self, sequence: Sequence, logits: Tensor) -> int:
        """The token behind the prompt; ``logits`` [1, vocab]."""
        sampling = sequence.request.sampling
        row = sequence.adjustment.apply(logits, [[]])[0] if sequence.adjustment else logits[0]
        if sampling.greedy:
            return int(row.argmax())
        return sequence.randomness.pick(probabilities(row, sampling), len(sequence.tokens))

    def _take(self, sequence: Sequence, block: list[int], logits: Tensor, hidden: Tensor | None) -> Emission:
        """Append ``block``, whose tokens the rows of ``logits`` [len(block), vocab] gave, and say what came of it."""
        taken = sequence.append(block, self.target.eos_token_ids, self.max_model_len)
        # All that stands is computed but for the newest token; rejected drafts behind it are as good as gone.
        sequence.num_computed = len(sequence.tokens) - 1
        finished = sequence.finish_reason is not None
        text = sequence.text.take(finished)
        if finished:
            self._retire(sequence)
        elif self._proposer:
            self._proposer.observe(sequence, hidden)
        stats = sequence.stats if finished else None
        logprobs = _logprobs(sequence, logits, taken)
        reason, why = sequence.finish_reason, sequence.stop_reason
        return Emission(sequence.request.id, taken, text, reason, why, stats, logprobs=logprobs)

    def _retire(self, sequence: Sequence) -> None:
        if self._proposer and sequence.slot >= 0:
            self._proposer.finish(sequence)
        self._scheduler.remove(sequence)


def _logprobs(sequence: Sequence, logits: Tensor, taken: list[int]) -> list[TokenLogprobs] | None:
    wanted = sequence.request.sampling.logprobs
    return None if wanted is None else token_logprobs(logits[: len(taken)], taken, wanted)


def _part(hidden: Tensor | None, begin: int, count: int) -> Tensor | None:
    return None if hidden is None else hidden[begin : begin + count]

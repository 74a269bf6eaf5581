"""One request on its way through the engine: its tokens, its slot, how far the target has come."""

from __future__ import annotations

from collections.abc import Sequence as Tokens
from dataclasses import dataclass, field

from specctl.runtime.adjust import Adjustment
from specctl.runtime.grammar import Grammar
from specctl.runtime.request import Request, TokenLogprobs
from specctl.runtime.sampling import Randomness
from specctl.runtime.stats import SpecStats
from specctl.runtime.text import TextStream


# Compared by identity: two sequences are never the same one.
@dataclass(eq=False)
class Sequence:
    """``tokens``: prompt and output; ``num_computed``: tokens whose keys and values the target's cache holds.

    While the sequence decodes, the target has computed all tokens but the newest. ``adjustment``: what the request
    changes about its logits, None where it asks for nothing; ``grammar``: the part of it that drafts are cut by.
    ``arrival`` orders sequences by when they came; ``num_cached``: prompt tokens that were not computed for it, because
    the cache held them; ``started``: when it first had a slot; ``drafting``: False once its proposer failed.
    """

    request: Request
    tokens: list[int]
    randomness: Randomness
    text: TextStream
    adjustment: Adjustment | None = None
    grammar: Grammar | None = None
    slot: int = -1
    arrival: int = 0
    num_computed: int = 0
    num_cached: int = 0
    started: float | None = None
    drafting: bool = True
    prompt_logprobs: list[TokenLogprobs | None] = field(default_factory=list)
    stats: SpecStats = field(default_factory=SpecStats)
    finish_reason: str | None = None
    stop_reason: str | int | None = None

    def __post_init__(self) -> None:
        if self.request.keep_steps:
            self.stats.steps = []

    @property
    def num_prompt(self) -> int:
        return len(self.request.prompt_token_ids)

    @property
    def num_output(self) -> int:
        return len(self.tokens) - self.num_prompt

    @property
    def decoding(self) -> bool:
        """Whether all is computed but the newest token, which the target produced."""
        return self.num_output > 0 and self.num_computed == len(self.tokens) - 1

    @property
    def num_to_prefill(self) -> int:
        """Tokens to compute before decoding begins, or goes on after a preemption."""
        return self.num_prompt if self.num_output == 0 else len(self.tokens) - 1

    def append(self, block: Tokens[int], eos: frozenset[int], max_model_len: int) -> list[int]:
        """Take tokens of ``block`` until one of them ends the request, exactly where plain decoding would end it.

        Returns the tokens taken.
        """
        for taken, token in enumerate(block, start=1):
            self.tokens.append(token)
            if self.adjustment:
                self.adjustment.take(token)
            if self._ends(token, eos, max_model_len):
                return list(block[:taken])
        return list(block)

    def _ends(self, token: int, eos: frozenset[int], max_model_len: int) -> bool:
        sampling = self.request.sampling
        early = self.num_output < sampling.min_tokens
        if token in eos and not sampling.ignore_eos:
            self.finish_reason = "stop"
            if sampling.include_stop:
                self.text.push(token, search=False)
        elif token in sampling.stop_token_ids and not early:
            self.finish_reason, self.stop_reason = "stop", token
            if sampling.include_stop:
                self.text.push(token, search=False)
        elif (found := self.text.push(token, search=not early)) is not None:
            self.finish_reason, self.stop_reason = "stop", found
        elif self.num_output >= sampling.max_tokens or len(self.tokens) >= max_model_len:
            self.finish_reason = "length"
        return self.finish_reason is not None

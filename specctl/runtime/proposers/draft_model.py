"""A smaller language model of the same vocabulary proposes token by token, many sequences at once."""

from __future__ import annotations

from collections.abc import Sequence as Many

import torch
from torch import Tensor

from specctl.runtime.draft import NO_DRAFT, Draft
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.loading import Model, load_model, model_folder, read_config
from specctl.runtime.proposers import Slots, drafted_tokens
from specctl.runtime.proposers.vocabulary import check_same_vocabulary
from specctl.runtime.sampling import draw, probabilities
from specctl.runtime.sequence import Sequence
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig

MAX_DRAFTED = 128


class DraftModelProposer:
    """The draft's own cache has a slot for each of the target's.

    ``_computed[slot]``: leading tokens that the draft's cache holds, drafted ones included while they are being
    verified. `observe` cuts it back to the tokens that stand. The newest is never among them, and where all k were
    accepted neither is the last of them, which was proposed but not processed: both are fed before the next draft.
    """

    notes: tuple[str, ...] = ()
    hidden_layers: tuple[int, ...] = ()

    def __init__(self, model: Model, k: int, slots: Slots, vocab_size: int, sample: bool) -> None:
        self._model = model
        self._k = k
        self._chunk = slots.max_num_batched_tokens
        self._max_len = min(slots.max_len, model.max_positions)
        self._cache = model.make_cache(slots.count, self._max_len)
        self._computed: dict[int, int] = {}
        self._vocab_size = vocab_size
        self._sample = sample

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> DraftModelProposer:
        """Raises SpecctlError where the vocabulary is not the target's, MissingError where there is no draft."""
        assert spec.model is not None, "a spec of this method names its draft"
        folder = model_folder(spec.model)
        config = read_config(folder)
        check_same_vocabulary(target, folder, spec.model, config.vocab_size)
        model = load_model(folder, config, target.model.dtype, target.model.device)
        sample = spec.draft_sample_method == "probabilistic"
        return cls(model, drafted_tokens(spec, MAX_DRAFTED), slots, target.vocab_size, sample)

    @property
    def num_speculative_tokens(self) -> int:
        return self._k

    def start(self, sequence: Sequence) -> None:
        self._computed[sequence.slot] = 0

    def propose(self, sequences: Many[Sequence], limits: Many[int]) -> list[Draft]:
        """k tokens a sequence, fewer where the limit or the draft's own context ends first."""
        counts = [self._count(sequence, limit) for sequence, limit in zip(sequences, limits, strict=True)]
        active = [sequence for sequence, count in zip(sequences, counts, strict=True) if count > 0]
        if not active:
            return [NO_DRAFT] * len(sequences)
        wanted = [count for count in counts if count > 0]
        drafted = {s.slot: draft for s, draft in zip(active, self._draft(active, wanted), strict=True)}
        return [drafted.get(sequence.slot, NO_DRAFT) for sequence in sequences]

    def _count(self, sequence: Sequence, limit: int) -> int:
        """The last drafted token is never processed, so k tokens need k - 1 free entries behind the sequence."""
        return max(0, min(self._k, limit, self._max_len - len(sequence.tokens) + 1))

    def _draft(self, sequences: list[Sequence], counts: list[int]) -> list[Draft]:
        tokens: list[list[int]] = [[] for _ in sequences]
        probs: list[list[Tensor]] = [[] for _ in sequences]
        active = list(range(len(sequences)))
        logits = self._catch_up(sequences)
        while True:
            picked = self._pick([sequences[i] for i in active], logits)
            for i, (token, distribution) in zip(active, picked, strict=True):
                tokens[i].append(token)
                if distribution is not None:
                    probs[i].append(distribution)
            active = [i for i in active if len(tokens[i]) < counts[i]]
            if not active:
                break
            logits = self._advance([sequences[i] for i in active], [tokens[i] for i in active])
        for sequence, drafted in zip(sequences, tokens, strict=True):
            self._computed[sequence.slot] += len(drafted) - 1
        return [Draft(t, torch.stack(p) if p else None) for t, p in zip(tokens, probs, strict=True)]

    def _catch_up(self, sequences: list[Sequence]) -> Tensor:
        """Process what stands in the sequences but not yet in the cache; logits [n, vocab] after each newest token."""
        for sequence in sequences:
            self._prefill(sequence)
        spans, flat, rows = [], [], []
        for sequence in sequences:
            begin = self._computed[sequence.slot]
            fresh = sequence.tokens[begin:]
            spans.append(Span(sequence.slot, begin, len(fresh)))
            flat += fresh
            rows.append(len(flat) - 1)
            self._computed[sequence.slot] = len(sequence.tokens)
        return self._model.forward(flat, spans, self._cache, rows)

    def _prefill(self, sequence: Sequence) -> None:
        """Long arrears (a prompt) go in chunks of the step's token budget, all but the last one."""
        while len(sequence.tokens) - self._computed[sequence.slot] > self._chunk:
            begin = self._computed[sequence.slot]
            span = Span(sequence.slot, begin, self._chunk)
            self._model.forward(sequence.tokens[begin : span.end], [span], self._cache, [self._chunk - 1])
            self._computed[sequence.slot] = span.end

    def _advance(self, sequences: list[Sequence], tokens: list[list[int]]) -> Tensor:
        spans = [Span(s.slot, len(s.tokens) + len(t) - 1, 1) for s, t in zip(sequences, tokens, strict=True)]
        return self._model.forward([t[-1] for t in tokens], spans, self._cache, range(len(tokens)))

    def _pick(self, sequences: list[Sequence], logits: Tensor) -> list[tuple[int, Tensor | None]]:
        """The argmax; or for sampled requests, where asked for, a draw from the draft's own distribution."""
        logits = _widen(logits, self._vocab_size)
        best = logits.argmax(dim=-1).tolist()
        picked: list[tuple[int, Tensor | None]] = []
        for row, sequence in enumerate(sequences):
            sampling = sequence.request.sampling
            if not self._sample or sampling.greedy:
                picked.append((best[row], None))
                continue
            distribution = probabilities(logits[row], sampling)
            picked.append((draw(distribution, sequence.randomness.uniforms(1)[0]), distribution))
        return picked

    def observe(self, sequence: Sequence, hidden: Tensor | None = None) -> None:
        """Keep what the draft processed and verification let stand."""
        self._computed[sequence.slot] = min(self._computed[sequence.slot], len(sequence.tokens) - 1)

    def finish(self, sequence: Sequence) -> None:
        self._computed.pop(sequence.slot, None)


def _widen(logits: Tensor, vocab_size: int) -> Tensor:
    """Logits over the target's vocabulary: padding rows of either model can never be drafted by the other."""
    width = logits.shape[-1]
    if width >= vocab_size:
        return logits[:, :vocab_size]
    return torch.nn.functional.pad(logits, (0, vocab_size - width), value=float("-inf"))

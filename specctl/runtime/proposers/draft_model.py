"""A smaller language model proposes token by token, many sequences at once."""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import Self

from torch import Tensor

from specctl.runtime.draft import Draft
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.loading import Model, load_model, model_folder, read_config
from specctl.runtime.models.weights import check_finite
from specctl.runtime.proposers import Slots, check_takes_trees, drafted_tokens
from specctl.runtime.proposers.chain import Picker, draft_chain, draft_for
from specctl.runtime.proposers.left_rows import LeftRows
from specctl.runtime.proposers.tree import Scratch, Shape, Twig, draft_tree, make_shape
from specctl.runtime.proposers.vocabulary import Mapping, Translated, match_vocabulary
from specctl.runtime.sequence import Sequence
from specctl.runtime.target import Target
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel

MAX_DRAFTED = 128
SAME_IDS = Mapping()


class DraftModelProposer:
    """The draft's own cache has a slot for each of the target's.

    ``_computed[slot]``: leading tokens that the draft's cache holds, drafted ones included while they are being
    verified. `observe` cuts it back to the tokens that stand. The newest is never among them, and where all k were
    accepted neither is the last of them, which was proposed but not processed: both are fed before the next draft.
    """

    hidden_layers: tuple[int, ...] = ()

    def __init__(
        self,
        model: Model,
        k: int,
        slots: Slots,
        vocab_size: int,
        sample: bool,
        shape: Shape | None = None,
        mapping: Mapping = SAME_IDS,
    ) -> None:
        self.rows = slots.ledger()
        self._model = Translated(model, mapping, self.rows)
        self.notes = (mapping.note,) if mapping.note else ()
        self._k = k
        self._shape = shape
        self._chunk = slots.max_num_batched_tokens
        self._max_len = min(slots.max_len, model.max_positions)
        self._cache = model.make_cache(slots.count, self._max_len + (shape.num_expanded if shape else 0))
        self._computed: dict[int, int] = {}
        self._left = LeftRows(self._cache, self.rows)
        self.picker = Picker(vocab_size, sample, mapping.meaning)

    @classmethod
    def from_spec(cls, spec: SpecDecodeConfig, target: Target, slots: Slots) -> Self:
        """Raises SpecctlError where the vocabulary is not the target's, MissingError where there is no draft."""
        assert spec.model is not None, "a spec of this method names its draft"
        folder = model_folder(spec.model)
        config = read_config(folder)
        joined = isinstance(spec.method, DraftModel) and spec.method.heterogeneous_vocab
        mapping = match_vocabulary(target, folder, spec.model, config.vocab_size, joined)
        check_finite(folder)  # a target's text would show it; a draft's only loses its acceptance
        model = load_model(folder, config, target.model.dtype, target.model.device)
        sample = spec.draft_sample_method == "probabilistic"
        k = drafted_tokens(spec, MAX_DRAFTED)
        if spec.tree is not None:
            check_takes_trees(model, spec.model)
        return cls(model, k, slots, target.vocab_size, sample, make_shape(spec, k), mapping)

    @property
    def num_speculative_tokens(self) -> int:
        return self._k

    @property
    def num_draft_tokens(self) -> int:
        return self._shape.num_nodes if self._shape else self._k

    def start(self, sequence: Sequence) -> None:
        self._computed[sequence.slot] = self._left.begin(sequence.slot, carried=sequence.num_computed > 0)

    def carry(self, source: int, slot: int, count: int) -> int:
        """What the draft's cache lacks it computes by itself, so the target need not."""
        self._left.carry(source, slot, count, self._computed.get(source))
        return count

    def propose(self, sequences: Many[Sequence], limits: Many[int]) -> list[Draft]:
        """k tokens a sequence, fewer where the limit or the draft's own context ends first."""
        counts = [self._count(sequence, limit) for sequence, limit in zip(sequences, limits, strict=True)]
        return draft_for(sequences, counts, self._draft)

    def _count(self, sequence: Sequence, limit: int) -> int:
        """The last drafted token is never processed, so k tokens need k - 1 free entries behind the sequence."""
        return max(0, min(self._k, limit, self._max_len - len(sequence.tokens) + 1))

    def _draft(self, sequences: list[Sequence], counts: list[int]) -> list[Draft]:
        if self._shape:
            return self._draft_trees(sequences, counts, self._shape)
        ends = [len(sequence.tokens) for sequence in sequences]

        def advance(active: list[int], tokens: list[int]) -> Tensor:
            spans = [Span(sequences[i].slot, ends[i], 1) for i in active]
            for i in active:
                ends[i] += 1
            return self._model.forward(tokens, spans, self._cache, range(len(tokens)))

        drafts = draft_chain(sequences, counts, self._catch_up(sequences), advance, self.picker)
        for sequence, end in zip(sequences, ends, strict=True):
            self._computed[sequence.slot] = end
        return drafts

    def _draft_trees(self, sequences: list[Sequence], counts: list[int], shape: Shape) -> list[Draft]:
        """Nodes are scratch: those that are accepted are processed again with the next catch-up."""
        scratch = Scratch([s.slot for s in sequences], [len(s.tokens) for s in sequences])

        def expand(twigs: list[Twig]) -> Tensor:
            tokens = [twig.token for twig in twigs]
            return self._model.forward(tokens, scratch.spans(twigs), self._cache, range(len(tokens)))

        return draft_tree(sequences, counts, self._catch_up(sequences), expand, self.picker, shape)

    def _catch_up(self, sequences: list[Sequence]) -> Tensor:
        """Process what stands in the sequences but not yet in the cache; logits [n, vocab] after each newest token."""
        for sequence in sequences:
            self._prefill(sequence)
        spans, flat, rows = [], [], []
        for sequence in sequences:
            begin = self._computed[sequence.slot]
            fresh = sequence.tokens[begin:]
            if self.rows:
                self.rows.check(sequence.slot, sequence.tokens[:begin])
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

    def observe(self, sequence: Sequence, hidden: Tensor | None = None) -> None:
        """Keep what the draft processed and verification let stand."""
        self._computed[sequence.slot] = min(self._computed[sequence.slot], len(sequence.tokens) - 1)

    def finish(self, sequence: Sequence) -> None:
        self._left.leave(sequence.slot, self._computed.pop(sequence.slot, 0))

    def forget(self) -> None:
        """Nothing outlives a request."""

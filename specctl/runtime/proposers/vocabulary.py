"""Whether a draft speaks the target's language, and the way between two languages that share some words.

Ids with the same text pass as they are; what a draft does not share it never proposes, and reads as a stand-in. Two
different tokenizers are joined by the texts they share, token by token (token-level intersection: Timor et al., arXiv
2502.05202, and vLLM's ``use_heterogeneous_vocab``). The target judges every proposal, so none of this can change text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specctl.errors import SpecctlError
from specctl.modelinfo.facts import ModelFacts
from specctl.modelinfo.tokens import TokenTable, token_table
from specctl.modelinfo.vocabulary import OTHER, SAME, compare_tables, used_ids
from specctl.runtime.integrity import RowLedger
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.loading import Model
from specctl.runtime.target import Target, load_tokenizer

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json")
_CURE = "use a draft of the same model family; n-gram drafting needs none"
_JOIN = f"{_CURE}; or set heterogeneous_vocab: true (vLLM: use_heterogeneous_vocab), which drafts the tokens both share"
# How tokenizers write blanks and line ends inside a piece.
_WRITTEN = (("Ġ", " "), ("▁", " "), ("Ċ", "\n"), ("ĉ", "\t"), ("<0x0A>", "\n"), ("<0x09>", "\t"))


@dataclass(frozen=True)
class Mapping:
    """``reads[t]``: the draft's id for the target's id t, None where ids are the same. ``drafted``: those of its ids
    that the draft may propose, ``meaning`` the target's ids for them; None where all may be.
    """

    reads: list[int] | None = None
    drafted: Tensor | None = None
    meaning: Tensor | None = None
    note: str | None = None


def match_vocabulary(target: Target, folder: Path, name: str, rows: int, heterogeneous: bool = False) -> Mapping:
    """How a draft in ``folder``, of ``rows`` embedding rows, understands the target; ``heterogeneous``: join two
    different tokenizers by the texts they share.

    Raises SpecctlError with an id that means something else, with the two sizes where the draft has no tokenizer, and
    where two tokenizers to be joined share nothing.
    """
    if not any((folder / file).is_file() for file in _TOKENIZER_FILES):
        if rows != target.vocab_size:
            sizes = f"draft {name!r} has {rows} tokens, target {target.name!r} has {target.vocab_size}"
            raise SpecctlError(f"{sizes}, and the draft has no tokenizer to compare", help=_CURE)
        return Mapping()
    ours, theirs = _table(target.folder, target.tokenizer), _table(folder, None)
    facts = ModelFacts(target.name, target.folder, target.config.to_dict())
    found = compare_tables(ours, theirs, used_ids(facts))
    if found.kind == OTHER:
        if not heterogeneous:
            told = f"draft {name!r} has another vocabulary than target {target.name!r}: {found.evidence}"
            raise SpecctlError(told, help=_JOIN)
        return _join(target, ours, theirs, name, rows)
    if found.kind == SAME:
        short = rows < target.vocab_size
        return Mapping(_reads(target.vocab_size, {}, rows, _stand_in(theirs)) if short else None)
    same = [n for n in range(min(rows, target.vocab_size)) if n not in found.differing]
    reads = _reads(target.vocab_size, dict.fromkeys(found.differing, -1), rows, _stand_in(theirs))
    kept = torch.tensor(same, device=target.model.device)
    return Mapping(reads, kept, kept, f"draft {name}: {found.evidence}; it never proposes those")


def _table(folder: Path, tokenizer: Any) -> TokenTable:
    """The token table of a checkpoint, by transformers where the files have another shape."""
    found = token_table(folder)
    if found is None:
        loaded = tokenizer or load_tokenizer(folder)
        added = {int(number): str(token) for number, token in loaded.added_tokens_decoder.items()}
        ordinary = {number: piece for piece, number in loaded.get_vocab().items() if number not in added}
        found = TokenTable(ordinary, added)
    return found


def _stand_in(table: TokenTable) -> int:
    """What a draft reads for a token that it does not know: its unknown token, else its first."""
    names = {text: number for number, text in {**table.ordinary, **table.added}.items()}
    return next((names[text] for text in ("<unk>", "[UNK]", "<|unk|>") if text in names), 0)


def _reads(size: int, known: dict[int, int], rows: int, stand_in: int) -> list[int]:
    """The draft's ids for the target's, where -1 and ids beyond its ``rows`` become the stand-in."""
    wanted = (known.get(number, number) for number in range(size))
    return [number if 0 <= number < rows else stand_in for number in wanted]


def _join(target: Target, ours: TokenTable, theirs: TokenTable, name: str, rows: int) -> Mapping:
    own, other = ({**table.ordinary, **table.added} for table in (ours, theirs))
    meant = {_plain(text): number for number, text in sorted(own.items(), reverse=True)}
    found = {number: meant[plain] for number, text in other.items() if (plain := _plain(text)) in meant}
    pairs = sorted((number, to) for number, to in found.items() if number < rows and to < target.vocab_size)
    if not pairs:
        raise SpecctlError(f"draft {name!r} and target {target.name!r} share no token at all", help=_CURE)
    back = {to: number for number, to in reversed(pairs)}
    reads = _reads(target.vocab_size, {n: back.get(n, -1) for n in range(target.vocab_size)}, rows, _stand_in(theirs))
    drafted, meaning = zip(*((back[to], to) for to in sorted(back)), strict=True)
    device = target.model.device
    share = f"{len(back)} of the target's {len(own)} tokens"
    note = f"draft {name} has another tokenizer: it shares {share} by their text, and drafts no others"
    return Mapping(reads, torch.tensor(drafted, device=device), torch.tensor(meaning, device=device), note)


def _plain(text: str) -> str:
    for written, meant in _WRITTEN:
        text = text.replace(written, meant)
    return text


class Translated:
    """A draft behind the interface of `Model` that takes the target's ids and scores only what it may propose."""

    def __init__(self, model: Model, mapping: Mapping, ledger: RowLedger | None = None) -> None:
        self._ledger = ledger
        self._model = model
        self._reads = mapping.reads
        self._drafted = mapping.drafted
        self.max_positions, self.takes_trees = model.max_positions, model.takes_trees

    def keep(self, token: int) -> None:
        """Let ``token``, one of the draft's own, pass as it is."""
        if self._reads is not None and token < len(self._reads):
            self._reads[token] = token

    def make_cache(self, num_slots: int, max_len: int) -> Any:
        return self._model.make_cache(num_slots, max_len)

    def forward(self, token_ids: Sequence[int], spans: Sequence[Span], cache: Any, rows: Sequence[int]) -> Tensor:
        """Logits [len(rows), proposable tokens]."""
        if self._ledger:
            self._ledger.wrote(token_ids, spans)
        reads = self._reads
        known = token_ids if reads is None else [reads[t] if t < len(reads) else t for t in token_ids]
        logits = self._model.forward(known, spans, cache, rows)
        return logits if self._drafted is None else logits.index_select(-1, self._drafted)

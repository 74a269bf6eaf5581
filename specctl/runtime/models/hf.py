"""The adapter: any other causal language model of transformers, one sequence at a time.

Slower than the native decoder (no fused batch), but the same interface, so that every method runs on every target whose
cache can be cut back. Models with a recurrent state cannot be cut back and are refused when speculation is asked for.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from specctl.errors import SpecctlError
from specctl.runtime.kv_cache import Branches, Span
from specctl.runtime.models.pretrained import load_network


class SlotCaches:
    """One transformers cache a slot; a span that starts at 0 begins a new one."""

    def __init__(self, num_slots: int, max_len: int) -> None:
        self.num_slots = num_slots
        self.max_len = max_len
        self._caches: list[Any] = [None] * num_slots

    #: Whether the entries of a prefix serve any sequence that begins with it.
    prefixes_can_be_shared = True

    def copy(self, source: int, slot: int, count: int) -> None:
        """Copy the first ``count`` entries of ``source`` into ``slot``."""
        cache = copy.deepcopy(self._caches[source])
        if (surplus := cache.get_seq_length() - count) > 0:
            cache.crop(-surplus)
        self._caches[slot] = cache

    def release(self, slot: int) -> None:
        """The entries of ``slot`` are worth nothing."""
        self._caches[slot] = None

    def at(self, span: Span) -> Any:
        """The cache of the span's slot, cut back to the span's start."""
        cache = self._caches[span.slot]
        if span.start == 0 or cache is None:
            # Made without the config, so that every layer keeps all entries: a sliding layer that dropped old ones
            # could not be cut back after a rejected draft. The model's own mask still hides what lies outside the
            # window.
            cache = self._caches[span.slot] = DynamicCache()
        elif (surplus := cache.get_seq_length() - span.start) > 0:
            cache.crop(-surplus)
        return cache

    @torch.inference_mode()
    def move(self, slot: int, start: int, kept: Sequence[int]) -> None:
        """Let the entries ``start + kept[i]`` of a slot follow one another from ``start`` on and be the last."""
        rows = [*range(start), *(start + row for row in kept)]
        for layer in self._caches[slot].layers:
            if layer.is_initialized:  # layers that share another's keys and values hold none
                chosen = torch.tensor(rows, device=layer.keys.device)
                layer.keys, layer.values = (each.index_select(-2, chosen) for each in (layer.keys, layer.values))


class AdaptedModel:
    """A transformers model behind the interface of the native decoder."""

    def __init__(self, model: Any) -> None:
        self._model = model.eval()
        # transformers is renaming the argument, model by model.
        self._cache_argument = "cache" if "cache" in signature(model.forward).parameters else "past_key_values"
        config = model.config.get_text_config()
        self.embedding: Tensor = model.get_input_embeddings().weight.detach()
        self.head: Tensor = model.get_output_embeddings().weight.detach()
        self.vocab_size: int = self.head.shape[0]
        self.num_layers: int = config.num_hidden_layers
        self.max_positions: int = getattr(config, "max_position_embeddings", None) or 1 << 20
        self._windows = _windows(config)

    @property
    def dtype(self) -> torch.dtype:
        return self._model.dtype  # type: ignore[no-any-return]

    @property
    def device(self) -> torch.device:
        return self._model.device  # type: ignore[no-any-return]

    @cached_property
    def takes_trees(self) -> bool:
        """Whether the model keeps to a mask of branches: tried with two branches behind one token, since an
        architecture that reads its mask in another way would answer wrongly without a word.
        """
        if not self._windows.keys() <= {"full_attention", "sliding_attention"}:
            return False
        sees = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 0, 1]], dtype=torch.bool)
        tree = Span(0, 0, 4, Branches(0, (0, 1, 1, 2), sees))
        try:
            branched = self.forward([1, 2, 3, 4], [tree], self.make_cache(1, 4), [3])
        except (ValueError, TypeError, RuntimeError, KeyError, AttributeError):
            # Each architecture has its own way of not taking a mask; a tree on it is then refused by name.
            return False
        plain = self.forward([1, 2, 4], [Span(0, 0, 3)], self.make_cache(1, 3), [2])
        return bool((branched - plain).abs().max() <= 0.05 * plain.std())

    def make_cache(self, num_slots: int, max_len: int) -> SlotCaches:
        """Caches for ``num_slots`` sequences; they grow as they are used."""
        return SlotCaches(num_slots, max_len)

    def forward(
        self, token_ids: Sequence[int], spans: Sequence[Span], cache: SlotCaches, rows: Sequence[int]
    ) -> Tensor:
        """Logits [len(rows), vocab] of the batch rows ``rows``."""
        return torch.cat([logits for logits, _ in self._forward(token_ids, spans, cache, rows, ())])

    def forward_tapped(
        self,
        token_ids: Sequence[int],
        spans: Sequence[Span],
        cache: SlotCaches,
        rows: Sequence[int],
        layers: Sequence[int],
    ) -> tuple[Tensor, Tensor]:
        """As `forward`, and the hidden states [T, len(layers) * hidden] of all rows, as the native decoder gives them.

        Raises SpecctlError for the stream after the last layer and before the norm, which transformers does not show.
        """
        if self.num_layers in layers:
            raise SpecctlError(
                "the transformers adapter cannot show the hidden state after the last layer before its norm",
                help="this head needs a target of the native family (Llama, Qwen2, Qwen3, Mistral)",
            )
        parts = self._forward(token_ids, spans, cache, rows, layers)
        return torch.cat([logits for logits, _ in parts]), torch.cat([states for _, states in parts])

    @torch.inference_mode()
    def _forward(
        self,
        token_ids: Sequence[int],
        spans: Sequence[Span],
        cache: SlotCaches,
        rows: Sequence[int],
        layers: Sequence[int],
    ) -> list[tuple[Tensor, Tensor]]:
        """Logits of the wanted rows and states of all rows, span by span."""
        parts, begin = [], 0
        how: dict[str, Any] = {"use_cache": True, "output_hidden_states": bool(layers)}
        for span in spans:
            ids = torch.tensor([token_ids[begin : begin + span.count]], device=self.device)
            wanted = [row - begin for row in rows if begin <= row < begin + span.count]
            placed = self._placed(span) if span.branches else {}
            out = self._model(input_ids=ids, **how, **placed, **{self._cache_argument: cache.at(span)})
            # The last entry of the states has been through the final norm, so FINAL, -1, finds what it means.
            states = [out.hidden_states[layer][0] for layer in layers]
            parts.append((out.logits[0, wanted], torch.cat(states, dim=-1) if states else out.logits[0, :0]))
            begin += span.count
        return parts

    def _placed(self, span: Span) -> dict[str, Any]:
        """Positions and masks of a span of nodes: transformers takes a mask of four dimensions as it is, and one for
        each kind of layer where a model has several.
        """
        masks = {kind: _mask(span, window, self.dtype, self.device) for kind, window in self._windows.items()}
        return {
            "position_ids": torch.tensor([span.positions], device=self.device),
            "attention_mask": masks if len(masks) > 1 else next(iter(masks.values())),
        }


def _windows(config: Any) -> dict[str, int | None]:
    """The sliding window of each kind of attention layer, None for full attention."""
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None) or ["full_attention" if window is None else "sliding_attention"]
    return {kind: window if kind == "sliding_attention" else None for kind in kinds}


def _mask(span: Span, window: int | None, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Additive mask [1, 1, count, end of the span] of a span of nodes."""
    branches = span.branches
    assert branches is not None, "only spans of nodes come here"
    trunk, queries = torch.arange(branches.trunk), torch.tensor(span.positions).unsqueeze(-1)
    seen = trunk > queries - (window or span.end + 1)
    seen = torch.cat([seen, branches.within(window)], dim=-1)
    mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, float("-inf"))
    return mask[None, None].to(device)


def load_adapted(folder: Path, dtype: torch.dtype, device: torch.device) -> AdaptedModel:
    """Load ``folder`` through transformers; raises SpecctlError or DamagedError with the reason."""
    model = load_network(folder, dtype, device)
    if getattr(model, "_is_stateful", False):
        raise SpecctlError(
            f"{model.config.model_type} keeps a recurrent state that cannot be cut back after a rejected draft",
            help="run this target on an engine that keeps snapshots of the state",
        )
    return AdaptedModel(model)

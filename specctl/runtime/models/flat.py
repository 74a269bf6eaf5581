"""The adapter for the architectures of transformers whose attention can be handed to us: one flat batch a step, as in
the native decoder, so that linear layers and experts see the rows of all sequences at once.

Sliding windows, attention sinks, latent attention, layers that share keys and values, and recurrent layers are what
these architectures add; see `flat_step` and `recurrent`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from specctl.runtime.kv_cache import Span
from specctl.runtime.models.attention import make_plan
from specctl.runtime.models.exact import make_exact
from specctl.runtime.models.flat_step import ATTENTION, LayeredCache, Step, host
from specctl.runtime.models.hidden import FINAL
from specctl.runtime.models.pretrained import load_network
from specctl.runtime.models.recurrent import replace_recurrent


class FlatModel:
    """A transformers model behind the interface of the native decoder; ``network`` was loaded with our attention."""

    def __init__(self, network: Any) -> None:
        self._network = network.eval()
        self._step = Step()
        self._seen: dict[int, Tensor] = {}
        self._tapped: frozenset[int] = frozenset()
        decoder = network.get_decoder()
        self.config = network.config.get_text_config()
        self.layers: list[nn.Module] = list(decoder.layers)[: self.config.num_hidden_layers]
        self.embedding: Tensor = network.get_input_embeddings().weight.detach()
        self.head: Tensor = network.get_output_embeddings().weight.detach()
        self.vocab_size: int = self.head.shape[0]
        self.num_layers: int = len(self.layers)
        self.max_positions: int = getattr(self.config, "max_position_embeddings", None) or 1 << 20
        self._adopt(decoder)

    def _adopt(self, decoder: nn.Module) -> None:
        sources = kv_sources(self.config)
        for index, layer in enumerate(self.layers):
            for name, module in layer.named_children():
                if name == "linear_attn":
                    replace_recurrent(module, index, self._step)
                elif hasattr(module, "layer_idx"):
                    host(module, self._step, sources[index], writes=sources[index] == index)
            layer.register_forward_pre_hook(self._keeper(index), with_kwargs=True)
            if self.dtype == torch.float64:
                make_exact(layer)
        if self.dtype == torch.float64:
            make_exact(decoder.norm)  # type: ignore[arg-type]
        decoder.norm.register_forward_pre_hook(self._keeper(self.num_layers), with_kwargs=True)  # type: ignore[union-attr]
        decoder.norm.register_forward_hook(self._keep_final)  # type: ignore[union-attr]

    def _keeper(self, layer: int) -> Any:
        """A hook that keeps the stream after ``layer`` layers: what the next layer, or the final norm, is given."""

        def keep(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if layer in self._tapped:
                self._seen[layer] = (args[0] if args else kwargs["hidden_states"])[0]

        return keep

    def _keep_final(self, _module: nn.Module, _args: tuple[Any, ...], out: Tensor) -> None:
        if FINAL in self._tapped:
            self._seen[FINAL] = out[0]

    @property
    def network(self) -> Any:
        """The network itself, for heads that are built from its kind of layer."""
        return self._network

    @property
    def dtype(self) -> torch.dtype:
        return self._network.dtype  # type: ignore[no-any-return]

    @property
    def device(self) -> torch.device:
        return self._network.device  # type: ignore[no-any-return]

    def make_cache(self, num_slots: int, max_len: int) -> LayeredCache:
        """An empty cache of ``num_slots`` sequences of up to ``max_len`` tokens."""
        cache = LayeredCache(num_slots, max_len)
        cache.recurrent |= {index: {} for index in self.recurrent_layers}
        return cache

    @property
    def recurrent_layers(self) -> list[int]:
        """Layers that keep a state in place of keys and values."""
        kinds = getattr(self.config, "layer_types", None) or []
        return [index for index, kind in enumerate(kinds) if kind == "linear_attention"]

    @property
    def takes_trees(self) -> bool:
        """A recurrent state follows one path."""
        return not self.recurrent_layers

    def forward(
        self, token_ids: Sequence[int], spans: Sequence[Span], cache: LayeredCache, rows: Sequence[int]
    ) -> Tensor:
        """Logits [len(rows), vocab] of the batch rows ``rows``; all rows enter the cache."""
        return self._run(token_ids, spans, cache, rows)

    def forward_tapped(
        self,
        token_ids: Sequence[int],
        spans: Sequence[Span],
        cache: LayeredCache,
        rows: Sequence[int],
        layers: Sequence[int],
    ) -> tuple[Tensor, Tensor]:
        """As `forward`, and the hidden states [T, len(layers) * hidden] of all rows, side by side in the order of
        ``layers`` (see `specctl.runtime.models.hidden`).
        """
        with self._tapping(layers):
            logits = self._run(token_ids, spans, cache, rows)
            return logits, torch.cat([self._seen[layer] for layer in layers], dim=-1)

    @contextmanager
    def _tapping(self, layers: Sequence[int]) -> Iterator[None]:
        self._tapped = frozenset(layers)
        try:
            yield
        finally:
            self._tapped, self._seen = frozenset(), {}

    @torch.inference_mode()
    def _run(self, token_ids: Sequence[int], spans: Sequence[Span], cache: LayeredCache, rows: Sequence[int]) -> Tensor:
        plan = make_plan(spans, cache, self.device)
        self._step.cache, self._step.plan, self._step.spans = cache, plan, list(spans)
        out = self._network(
            input_ids=torch.tensor([token_ids], device=self.device),
            position_ids=plan.positions.unsqueeze(0),
            use_cache=False,
            logits_to_keep=torch.tensor(list(rows), device=self.device),
        )
        return out.logits[0]  # type: ignore[no-any-return]


def kv_keepers(config: Any) -> dict[str, int]:
    """For each kind of layer the last that keeps keys and values for others to read; empty where none does."""
    modes = getattr(config, "kv_sharing_modes", None) or []
    return {config.layer_types[layer]: layer for layer, mode in enumerate(modes) if mode == "store"}


def kv_sources(config: Any) -> list[int]:
    """For each layer the one whose keys and values it reads: itself, or where it shares, the one that keeps them."""
    modes = getattr(config, "kv_sharing_modes", None) or [None] * config.num_hidden_layers
    kept = kv_keepers(config)
    return [kept[config.layer_types[layer]] if mode == "reuse" else layer for layer, mode in enumerate(modes)]


def load_flat(folder: Path, dtype: torch.dtype, device: torch.device) -> FlatModel:
    """Load ``folder`` through transformers; raises SpecctlError or DamagedError with the reason."""
    network = load_network(folder, dtype, device, ATTENTION)
    if dtype == torch.float64:
        network.set_experts_implementation("eager")  # the fused kernels have no float64
    return FlatModel(network)

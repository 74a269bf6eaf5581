"""DFlash drafts (arXiv 2602.06036; the layout of z-lab/dflash, also as speculators writes it): Qwen3 layers that fill a
block of masks in one forward.

The target's states enter as keys and values of every layer and are not carried on; the block, the newest token and the
masks, attends to all of them and to the whole of itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from specctl.runtime.kv_cache import KVCache, Span
from specctl.runtime.models.heads.files import HeadFiles, draft_vocabulary
from specctl.runtime.models.hidden import check_layers
from specctl.runtime.models.native import read_layer
from specctl.runtime.models.stack import Stack


class DFlashHead:
    """``fusion`` [width, taps * hidden], ``context_norm`` and ``norm`` [width]; ``mask``: the token of an open place;
    ``block_size``: places of a block, the newest token's included.
    """

    def __init__(
        self,
        hidden_layers: tuple[int, ...],
        stack: Stack,
        tables: tuple[Tensor, Tensor, Tensor | None],
        fusion: Tensor,
        norms: tuple[Tensor, Tensor],
        mask: int,
        block_size: int,
    ) -> None:
        self.hidden_layers = hidden_layers
        self._stack = stack
        self._embedding, self._head, self.vocabulary = tables
        self._fusion = fusion
        self._context_norm, self._norm = norms
        self.mask = mask
        self.block_size = block_size

    def make_cache(self, num_slots: int, max_len: int) -> KVCache:
        """An empty cache; entry t of a slot belongs to the target's position t."""
        return self._stack.make_cache(num_slots, max_len)

    @torch.inference_mode()
    def keep(self, hidden: Tensor, spans: Sequence[Span], cache: KVCache) -> None:
        """Write the target's states [T, taps * hidden] at the places of ``spans``."""
        rows = self._stack.norm(F.linear(hidden, self._fusion), self._context_norm)
        place = self._stack.place(spans, cache)
        for index in range(len(self._stack.layers)):
            self._stack.keep(index, rows, place)

    @torch.inference_mode()
    def fill(self, tokens: Sequence[int], spans: Sequence[Span], cache: KVCache, rows: Sequence[int]) -> Tensor:
        """Logits [len(rows), draft vocab] of what stands at the rows ``rows``; each span is one block."""
        embedded = F.embedding(torch.tensor(tokens, device=self._embedding.device), self._embedding)
        out = self._stack.run(embedded, self._stack.place(spans, cache, causal=False))
        chosen = out.index_select(0, torch.tensor(rows, device=out.device))
        return self._stack.linear(self._stack.norm(chosen, self._norm), self._head)


def load_dflash(files: HeadFiles, taps: Sequence[int] | None, mask: int | None) -> DFlashHead:
    """``taps`` (by the layer whose output is meant) and ``mask`` override the checkpoint's own.

    Raises MissingError or DamagedError for a config or tensors that are absent or do not fit.
    """
    weights, text = files.weights, files.layers
    config = files.layer_config(text)
    if "sliding_attention" in (text.get("layer_types") or []):
        raise files.refuse("layers with a sliding window do not run here")
    if (kind := files.config.get("projector_type", "dflash")) != "dflash":
        raise files.refuse(f"projector_type is {kind!r}; only 'dflash' runs here")
    width, num_layers = config.hidden_size, files.num_layers(text)
    hidden_layers = _taps(files, taps)
    shape = files.shape(config, num_layers)
    layers = [read_layer(weights, f"layers.{i}.", shape) for i in range(num_layers)]
    own = weights.find("lm_head.weight", None, width)
    head = files.target.head if own is None else own
    if head.shape[1] != width:
        raise files.refuse(f"hidden_size is {width}, the target's head is {head.shape[1]} wide")
    fusion = weights.finite("fc.weight", width, len(hidden_layers) * files.target.embedding.shape[1])
    norms = weights.get("hidden_norm.weight", width), weights.get("norm.weight", width)
    stack = files.stack(config, shape, layers, [head])
    vocabulary = draft_vocabulary(files, head.shape[0])
    embedding = files.embedding(width, "embed_tokens.weight")
    found = files.mask_token_id if mask is None else mask
    if found is None or not 0 <= found < embedding.shape[0]:
        raise files.refuse(f"the mask token is {found}; wanted an id below {embedding.shape[0]}", "set mask_token_id")
    block = files.number({"block_size": _block_size(files)}, "block_size")
    return DFlashHead(hidden_layers, stack, (embedding, head, vocabulary), fusion, norms, found, block)


def _block_size(files: HeadFiles) -> Any:
    """Newer checkpoints keep it among their own keys."""
    return files.config.get("block_size", files.part("dflash_config").get("block_size"))


def _spread(num_layers: int, count: int) -> list[int]:
    """The layers whose output z-lab's own code reads where a config names none."""
    if count <= 1:
        return [num_layers // 2]
    return [round(1 + i * (num_layers - 4) / (count - 1)) for i in range(count)]


def _taps(files: HeadFiles, override: Sequence[int] | None) -> tuple[int, ...]:
    """In layers passed, as the speculators layout counts; z-lab's and the setting name the layer whose output is meant,
    one less.
    """
    own, stated = files.part("dflash_config").get("target_layer_ids"), files.config.get("aux_hidden_state_layer_ids")
    passed = override is None and own is None and stated is not None
    ids = stated if passed else override or own
    if ids is None and "fc.weight" in files.weights:
        width, entering = files.target.embedding.shape[1], files.weights.stored("fc.weight").shape[-1:]
        if not entering:
            raise files.refuse(f"tensor 'fc.weight' is a single number, wanted [hidden size, layers * {width}]")
        ids = _spread(files.target.num_layers, entering[0] // width)
    if not isinstance(ids, (list, tuple)) or not ids or not all(type(each) is int for each in ids):
        name = "aux_hidden_state_layer_ids" if passed else "dflash_config.target_layer_ids"
        raise files.refuse(f"{name} is {ids!r}; wanted a list of whole numbers")
    taps = tuple(ids) if passed else tuple(each + 1 for each in ids)
    check_layers(taps, files.target.num_layers, f"the draft {files.folder}")
    return taps

"""Medusa heads (arXiv 2401.10774): independent stacks of residual blocks on one hidden state, head i scoring the token
i + 1 places behind the next one. Layouts: FasterDecoding's file and merged checkpoints, and vLLM's.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from specctl.errors import SpecctlError
from specctl.runtime.models.heads.files import HeadFiles
from specctl.runtime.models.hidden import FINAL
from specctl.runtime.models.weights import Weights

Block = tuple[Tensor, Tensor | None]


class MedusaHeads:
    """``blocks[i]``: (weight [width, width], bias) of head i's blocks; ``heads[i]`` [draft vocab, width]."""

    hidden_layers = (FINAL,)

    def __init__(self, blocks: list[list[Block]], heads: list[Tensor], vocabulary: Tensor | None) -> None:
        self._blocks = blocks
        self._heads = heads
        self.vocabulary = vocabulary

    @property
    def count(self) -> int:
        """How many places ahead the heads reach."""
        return len(self._heads)

    @torch.inference_mode()
    def forward(self, hidden: Tensor, index: int) -> Tensor:
        """Logits [n, draft vocab] of head ``index`` on the states ``hidden`` [n, width]."""
        for weight, bias in self._blocks[index]:
            hidden = hidden + F.silu(F.linear(hidden, weight, bias))
        return F.linear(hidden, self._heads[index])


def load_medusa(files: HeadFiles) -> MedusaHeads:
    """Heads are counted in the tensors: configs are known to state other numbers.

    Raises SpecctlError for a folder without heads, MissingError or DamagedError for tensors that do not fit.
    """
    weights, names = files.weights, set(files.weights.names())
    width = files.target.embedding.shape[1]
    vllm = next((p for p in ("", "medusa_heads.") if f"{p}blocks.0.layers.0.weight" in names), None)
    if vllm is not None:
        return _vllm(files, weights, vllm, width)
    prefix = next((p for p in ("", "medusa_head.") if f"{p}0.0.linear.weight" in names), None)
    if prefix is None:
        raise SpecctlError(
            f"{files.folder} has no Medusa heads: neither '0.0.linear.weight' nor 'blocks.0.layers.0.weight'",
            help="point at the folder with medusa_lm_head.pt or the converted safetensors file",
        )
    blocks: list[list[Block]] = []
    heads: list[Tensor] = []
    while f"{prefix}{len(heads)}.0.linear.weight" in names:
        head = f"{prefix}{len(heads)}."
        depth = _count(names, head + "{}.linear.weight")
        blocks.append([_block(weights, f"{head}{i}.linear.", width) for i in range(depth)])
        heads.append(weights.finite(f"{head}{depth}.weight", files.target.vocab_size, width))
    later = {name.removeprefix(prefix).partition(".")[0] for name in names if name.startswith(prefix)}
    if any(part.isdigit() and int(part) >= len(heads) for part in later):
        weights.get(f"{prefix}{len(heads)}.0.linear.weight")  # raises: a head is missing between others
    return MedusaHeads(blocks, heads, None)


def _count(names: set[str], pattern: str) -> int:
    count = 0
    while pattern.format(count) in names:
        count += 1
    return count


def _block(weights: Weights, prefix: str, width: int) -> Block:
    return weights.finite(prefix + "weight", width, width), weights.find(prefix + "bias", width)


def _vllm(files: HeadFiles, weights: Weights, prefix: str, width: int) -> MedusaHeads:
    """``token_map`` lists the target ids of a reduced vocabulary; one ``lm_head`` may serve all heads."""
    names = set(weights.names())
    numbered = {name.removeprefix(f"{prefix}blocks.").partition(".")[0] for name in names if "blocks." in name}
    count = 1 + max(int(part) for part in numbered if part.isdigit())
    blocks = [
        [
            _block(weights, f"{prefix}blocks.{h}.layers.{i}.", width)
            for i in range(max(1, _count(names, f"{prefix}blocks.{h}.layers." + "{}.weight")))
        ]
        for h in range(count)
    ]
    shared = weights.find(f"{prefix}lm_head.weight", None, width)
    first = weights.finite(f"{prefix}lm_heads.0.weight", None, width) if shared is None else shared
    size = first.shape[0]
    others = [f"{prefix}lm_heads.{h}.weight" for h in range(1, count)]
    heads = [first, *(weights.finite(name, size, width) if shared is None else shared for name in others)]
    if f"{prefix}token_map" in names:
        vocabulary = weights.integers(f"{prefix}token_map", size)
        if bool(((vocabulary < 0) | (vocabulary >= files.target.vocab_size)).any()):
            raise files.refuse("token_map leads outside the target's vocabulary")
        return MedusaHeads(blocks, heads, vocabulary)
    if size != files.target.vocab_size:
        raise files.refuse(f"the heads score {size} tokens, the target has {files.target.vocab_size}")
    return MedusaHeads(blocks, heads, None)

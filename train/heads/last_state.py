"""Heads that draft from one state of the target: Medusa (arXiv 2401.10774) and MLP speculators (arXiv 2404.19124)."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specctl.runtime.models.hidden import FINAL
from train.heads.batches import Batch
from train.heads.parts import product
from train.heads.recipe import Recipe, Teacher, falling, surprise

AHEAD = 5
HEAD_SHARE = 0.8


class LastState(Recipe):
    """Place i of `AHEAD` guesses the token i + 1 places behind the newest."""

    def states(self, batch: Batch) -> Tensor:
        """The states [rows, A, width] that produced each column's token, the newest."""
        first = batch.begin - 1
        return self.teacher.states(batch, (FINAL,))[:, first : first + batch.anchors]

    def falling_loss(self, batch: Batch, scores: list[Tensor]) -> Tensor:
        """`scores[i]` [rows, A - i, vocab]: an anchor less a place, as answers end."""
        wanted, known = self.teacher.logits(batch), batch.known
        losses = [surprise(each, wanted[:, i:], known[:, i:]) for i, each in enumerate(scores)]
        return falling(losses, HEAD_SHARE)


class MedusaRecipe(LastState):
    """Heads of one block each, started as the target's own vocabulary head."""

    method = "medusa"
    peak = 1e-3

    def __init__(self, teacher: Teacher) -> None:
        super().__init__(teacher)
        width = teacher.sizes.width
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"layers": nn.ModuleList([nn.Linear(width, width)])}) for _ in range(AHEAD)
        )
        self.lm_heads = nn.ModuleList(nn.Linear(width, teacher.vocabulary, bias=False) for _ in range(AHEAD))
        with torch.no_grad():
            for name, weight in self.named_parameters():
                weight.copy_(teacher.head) if name.startswith("lm_heads") else weight.zero_()

    def loss(self, batch: Batch) -> Tensor:
        states, scores = self.states(batch), []
        weights = dict(self.named_parameters())
        for i in range(min(AHEAD, batch.anchors)):
            rows = states[:, : batch.anchors - i]
            block = f"blocks.{i}.layers.0."
            rows = rows + F.silu(product(rows, weights[block + "weight"], weights[block + "bias"]))
            scores.append(product(rows, weights[f"lm_heads.{i}.weight"]))
        return self.falling_loss(batch, scores)

    def config(self) -> dict[str, Any]:
        """vLLM's layout, with the biases that FasterDecoding's blocks have."""
        return {
            "architectures": ["MedusaModel"], "model_type": "medusa", "hidden_size": self.teacher.sizes.width,
            "vocab_size": self.teacher.vocabulary, "truncated_vocab_size": self.teacher.vocabulary, "num_heads": AHEAD,
            "num_hidden_layers": 1, "medusa_num_heads": AHEAD, "medusa_num_layers": 1, "medusa_fc_bias": True,
            "max_paths": 64, "topk": 10, "torch_dtype": "float16",
        }  # fmt: skip


class MlpSpeculatorRecipe(LastState):
    """All steps share embedding, norm and head, and the projections behind the first (`tie_weights`)."""

    method = "mlp_speculator"

    def __init__(self, teacher: Teacher) -> None:
        super().__init__(teacher)
        width = teacher.sizes.width
        self.emb = nn.ParameterList([teacher.embedding.clone()])
        self.proj = nn.ParameterList([torch.randn(width, width) * 0.04 + torch.eye(width) for _ in range(2)])
        self.ln = nn.ParameterDict({"weight": torch.ones(width), "bias": torch.zeros(width)})
        self.head = nn.ParameterList([teacher.head.clone()])
        state_weight = 0.5 ** (0.5 / AHEAD)
        self._token_weight = math.sqrt((1 - state_weight**2) * width / 2) / state_weight

    def loss(self, batch: Batch) -> Tensor:
        eps = 1e-6
        state = F.rms_norm(self.states(batch), (self.teacher.sizes.width,), None, eps) / math.sqrt(2)
        scores = []
        for i in range(min(AHEAD, batch.anchors)):
            count = batch.anchors - i
            tokens = batch.ids[:, batch.begin + i : batch.begin + batch.anchors]
            mixed = product(state[:, :count], self.proj[min(i, 1)])
            mixed = mixed + self._token_weight * F.embedding(tokens, self.emb[0])
            state = F.gelu(F.rms_norm(mixed, mixed.shape[-1:], None, eps) * self.ln["weight"] + self.ln["bias"])
            scores.append(product(state, self.head[0]))
        return self.falling_loss(batch, scores)

    def tensors(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        named = {f"speculator.{name}.weight": w for name, w in weights.items() if not name.startswith("ln")}
        return named | {f"speculator.ln.0.{side}": weights[f"ln.{side}"] for side in ("weight", "bias")}

    def config(self) -> dict[str, Any]:
        """IBM's layout."""
        width = self.teacher.sizes.width
        return {
            "architectures": ["MLPSpeculatorPreTrainedModel"], "model_type": "mlp_speculator", "emb_dim": width,
            "inner_dim": width, "vocab_size": self.teacher.vocabulary, "n_predict": AHEAD,
            "top_k_tokens_per_head": [1] * AHEAD, "n_candidates": 1, "tie_weights": True, "scale_input": True,
            "torch_dtype": "float16",
        }  # fmt: skip

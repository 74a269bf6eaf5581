"""MLP speculators (IBM, arXiv 2404.19124; the layout of `ibm-fms/*-accelerator`): a state starts as the target's hidden
state and takes in one token a step through its own embeddings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from specctl.runtime.models.heads.files import HeadFiles
from specctl.runtime.models.hidden import FINAL

_EPS = 1e-6
Step = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class MlpSpeculatorHead:
    """``steps[i]``: embedding [vocab, inner], projection [inner, in], norm weight and bias [inner], head [vocab,
    inner].
    """

    hidden_layers = (FINAL,)
    vocabulary: Tensor | None = None

    def __init__(self, steps: list[Step], inner: int, scales_input: bool) -> None:
        self._steps = steps
        self._scales_input = scales_input
        # The state's share of the variance halves over all steps; the token's makes up for it.
        state_weight = 0.5 ** (0.5 / len(steps))
        self._token_weight = math.sqrt((1 - state_weight**2) * inner / 2) / state_weight

    @property
    def count(self) -> int:
        """How many tokens a draft can have."""
        return len(self._steps)

    def enter(self, hidden: Tensor) -> Tensor:
        """The first state of the target's hidden states [n, hidden]."""
        return _norm(hidden) / math.sqrt(2) if self._scales_input else hidden

    @torch.inference_mode()
    def forward(self, state: Tensor, tokens: Sequence[int], index: int) -> tuple[Tensor, Tensor]:
        """Logits [n, vocab] of what follows ``tokens`` at step ``index``, and the next state [n, inner]."""
        embedding, projection, weight, bias, head = self._steps[index]
        embedded = F.embedding(torch.tensor(tokens, device=embedding.device), embedding)
        mixed = F.linear(state, projection) + self._token_weight * embedded
        state = F.gelu(_norm(mixed) * weight + bias)
        return F.linear(state, head), state


def _norm(rows: Tensor) -> Tensor:
    return rows * torch.rsqrt(rows.pow(2).mean(-1, keepdim=True) + _EPS)


def load_mlp_speculator(files: HeadFiles) -> MlpSpeculatorHead:
    """Raises MissingError or DamagedError for tensors that are absent or do not fit the config or the target."""
    raw = files.config
    count, vocab = files.number(raw, "n_predict"), files.target.vocab_size
    width = files.number(raw, "emb_dim")
    hidden = files.target.embedding.shape[1]
    if width != hidden:
        raise files.refuse(f"emb_dim is {width}, the target's hidden size is {hidden}", "this is for another target")
    inner = files.number(raw, "inner_dim") if raw.get("inner_dim", 0) != 0 else width
    tied = files.flag("tie_weights", False)
    prefix = "speculator." if any(name.startswith("speculator.") for name in files.weights.names()) else ""
    steps = []
    for i in range(count):
        # Tied checkpoints store what the steps share once; the first projection has another width, so two of those.
        same, projected = (0, min(i, 1)) if tied else (i, i)
        get = files.weights.finite
        steps.append(
            (
                get(f"{prefix}emb.{same}.weight", vocab, inner),
                get(f"{prefix}proj.{projected}.weight", inner, width if i == 0 else inner),
                get(f"{prefix}ln.{same}.weight", inner),
                get(f"{prefix}ln.{same}.bias", inner),
                get(f"{prefix}head.{same}.weight", vocab, inner),
            )
        )
    return MlpSpeculatorHead(steps, inner, files.flag("scale_input", False))

"""Tiny random prediction layers in the layouts of the families that ship them, each with a plain reference."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from specctl.runtime import Target
from specctl.runtime.models.hidden import FINAL
from specctl.spec.methods import Mtp
from tests.runtime.head_parts import (
    DIM,
    SIZES,
    WIDTH,
    Chained,
    MadeHead,
    attention,
    layer,
    mlp,
    noise,
    rms,
    weight_norm,
    write,
)


@dataclass(frozen=True)
class MtpNames:
    """A layout of prediction layers as the facts state it, written down anew."""

    token: str
    state: str
    fusion: str
    layer: str
    final: str | None
    hidden_first: bool = False
    feeds_normed: bool = True
    blanks_first: bool = True


_DEEPSEEK = ("model.layers.3.enorm", "model.layers.3.hnorm", "model.layers.3.eh_proj", "model.layers.3.")
MTP = {
    "deepseek_v3": MtpNames(*_DEEPSEEK, "model.layers.3.shared_head.norm"),
    "glm4_moe": MtpNames(*_DEEPSEEK, "model.layers.3.shared_head.norm", feeds_normed=False),
    "qwen3_next": MtpNames(
        "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.fc", "mtp.layers.0.", "mtp.norm", blanks_first=False
    ),
    "mimo": MtpNames(
        "model.mtp_layers.0.token_layernorm", "model.mtp_layers.0.hidden_layernorm", "model.mtp_layers.0.input_proj",
        "model.mtp_layers.0.", "model.mtp_layers.0.final_layernorm", hidden_first=True,
    ),
    "ernie4_5_moe": MtpNames(
        "model.mtp_emb_norm.0", "model.mtp_hidden_norm.0", "model.mtp_linear_proj.0", "model.mtp_block.0.", None,
        feeds_normed=False,
    ),
}  # fmt: skip


def mtp(target: Target, folder: Path, family: str) -> MadeHead:
    names = MTP[family]
    qwen = family == "qwen3_next"
    offset, turning = (1.0, 4) if qwen else (0.0, DIM)
    t = layer(names.layer, bias=family == "mimo", qk_norm=qwen, gated=qwen)
    t |= {
        f"{names.layer}input_layernorm.weight": weight_norm(),
        f"{names.fusion}.weight": noise(WIDTH, 2 * WIDTH, scale=0.2),
    }
    t |= {f"{name}.weight": weight_norm() for name in (names.token, names.state, names.final) if name}
    if qwen:
        t |= {name: value - 1 for name, value in t.items() if "norm" in name}
    config = SIZES | {"model_type": family, "num_hidden_layers": 3, "num_nextn_predict_layers": 1}
    write(folder, config | ({"partial_rotary_factor": 0.25} if qwen else {}), t)
    embedding, head = target.model.embedding, target.model.head

    def norm(x: Tensor, name: str) -> Tensor:
        return rms(x, t[f"{name}.weight"] + offset)

    def forward(states: Tensor, tokens: list[int]) -> tuple[Tensor, Tensor]:
        embedded = embedding[tokens].clone()
        if names.blanks_first:
            embedded[0] = 0
        pair = [norm(embedded, names.token), norm(states, names.state)]
        x = torch.cat(pair[::-1] if names.hidden_first else pair, -1) @ t[f"{names.fusion}.weight"].T
        entering = norm(x, f"{names.layer}input_layernorm")
        x = x + attention(t, names.layer, entering, gated=qwen, turning=turning, offset=offset)
        x = mlp(t, names.layer, x, offset)[-1]
        scored = x if names.final is None else norm(x, names.final)
        return head @ scored, scored if names.feeds_normed else x

    chain = Chained(forward, lambda hidden: hidden[FINAL])
    return MadeHead(folder, Mtp(), (FINAL,), chain, chain.scores)

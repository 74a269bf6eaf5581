"""Tiny random Medusa heads, MLP speculators and DFlash drafts in their published layouts, each with a plain
reference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from specctl.runtime import Target
from specctl.runtime.models.hidden import FINAL
from specctl.spec.methods import DFlash, Medusa, MlpSpeculator
from tests.runtime.head_parts import (
    DIM,
    HEADS,
    KV,
    SIZES,
    WIDTH,
    MadeHead,
    Tensors,
    layer,
    mlp,
    noise,
    rms,
    rotate,
    weight_norm,
    write,
)


def medusa(target: Target, folder: Path, layout: str, depth: int = 1, count: int = 4) -> MadeHead:
    """``layout``: `file` (medusa_lm_head.pt), `merged`, `vllm`, or `vllm-mapped` (a reduced vocabulary)."""
    size = 90 if layout == "vllm-mapped" else 258
    chosen = torch.randperm(258)[:size]
    blocks = [[(noise(WIDTH, WIDTH), noise(WIDTH)) for _ in range(depth)] for _ in range(count)]
    heads = [noise(size, WIDTH) for _ in range(count)]
    t: Tensors = {}
    for h in range(count):
        for i, (weight, bias) in enumerate(blocks[h]):
            if layout.startswith("vllm"):
                t |= {f"blocks.{h}.layers.{i}.weight": weight, f"blocks.{h}.layers.{i}.bias": bias}
            else:
                t |= {f"{h}.{i}.linear.weight": weight, f"{h}.{i}.linear.bias": bias}
        t[f"lm_heads.{h}.weight" if layout.startswith("vllm") else f"{h}.{depth}.weight"] = heads[h]
    if layout == "vllm-mapped":
        t["token_map"] = chosen
    if layout == "merged":
        t = {f"medusa_head.{name}": value for name, value in t.items()}
    # The config may lie about the number of heads.
    write(
        folder,
        {"medusa_num_heads": 2, "medusa_num_layers": depth},
        t,
        "medusa_lm_head.pt" if layout == "file" else None,
    )

    def scores(tokens: list[int], hidden: Mapping[int, Tensor], path: list[int]) -> Tensor:
        x = hidden[FINAL][-1]
        for weight, bias in blocks[len(path)]:
            x = x + F.silu(weight @ x + bias)
        found = heads[len(path)] @ x
        if layout != "vllm-mapped":
            return found
        return torch.full((258,), float("-inf"), dtype=torch.float64).index_copy_(0, chosen, found)

    def reference(tokens: list[int], hidden: Mapping[int, Tensor], k: int) -> list[int]:
        return [int(scores(tokens, hidden, [0] * h).argmax()) for h in range(k)]

    return MadeHead(folder, Medusa(), (FINAL,), reference, scores)


def mlp_speculator(
    target: Target, folder: Path, tied: bool = False, scaled: bool = False, prefix: str = ""
) -> MadeHead:
    steps, inner = 4, 24
    t: Tensors = {}
    for i in range(steps):
        if not tied or i < 2:
            t[f"proj.{i}.weight"] = noise(inner, WIDTH if i == 0 else inner)
        if not tied or i == 0:
            t |= {f"emb.{i}.weight": noise(258, inner, scale=1.0), f"head.{i}.weight": noise(258, inner)}
            t |= {f"ln.{i}.weight": weight_norm(inner), f"ln.{i}.bias": noise(inner)}
    config = {
        "model_type": "mlp_speculator", "emb_dim": WIDTH, "inner_dim": inner, "n_predict": steps, "vocab_size": 258,
        "tie_weights": tied, "scale_input": scaled,
    }  # fmt: skip
    write(folder, config, {prefix + name: value for name, value in t.items()})

    def scores(tokens: list[int], hidden: Mapping[int, Tensor], path: list[int]) -> Tensor:
        state = hidden[FINAL][-1]
        if scaled:
            state = rms(state, None, 1e-6) / math.sqrt(2)
        state_share = 0.5 ** (0.5 / steps)
        token_share = math.sqrt((1 - state_share**2) * inner / 2)
        for i, token in enumerate([tokens[-1], *path]):
            j, p = (0, min(i, 1)) if tied else (i, i)
            mixed = t[f"proj.{p}.weight"] @ state + token_share / state_share * t[f"emb.{j}.weight"][token]
            normed = rms(mixed, None, 1e-6) * t[f"ln.{j}.weight"] + t[f"ln.{j}.bias"]
            state = normed * 0.5 * (1 + torch.erf(normed / math.sqrt(2)))
        return t[f"head.{j}.weight"] @ state

    def reference(tokens: list[int], hidden: Mapping[int, Tensor], k: int) -> list[int]:
        drafted: list[int] = []
        for _ in range(k):
            drafted.append(int(scores(tokens, hidden, drafted).argmax()))
        return drafted

    return MadeHead(folder, MlpSpeculator(), (FINAL,), reference, scores)


def dflash(
    target: Target, folder: Path, layers: int = 2, draft_vocab: int = 258, taps: tuple[int, ...] = (1, 3)
) -> MadeHead:
    """The context states enter every layer as keys and values; the block sees them and all of itself."""
    mask = 256
    chosen = torch.randperm(258)[:draft_vocab].sort().values
    t = {
        "fc.weight": noise(WIDTH, 2 * WIDTH, scale=0.2),
        "hidden_norm.weight": weight_norm(),
        "norm.weight": weight_norm(),
    }
    for i in range(layers):
        t |= layer(f"layers.{i}.", qk_norm=True) | {f"layers.{i}.input_layernorm.weight": weight_norm()}
    if draft_vocab < 258:
        t |= {"lm_head.weight": noise(draft_vocab, WIDTH), "d2t": chosen - torch.arange(draft_vocab)}
    config = SIZES | {"num_hidden_layers": layers, "block_size": 5, "num_target_layers": 3}
    write(folder, config | {"dflash_config": {"mask_token_id": mask, "target_layer_ids": [tap - 1 for tap in taps]}}, t)
    head = t.get("lm_head.weight", target.model.head)

    def attend(prefix: str, context: Tensor, block: Tensor) -> Tensor:
        both = torch.cat([context, block])

        def heads(name: str, count: int) -> Tensor:
            rows = (both @ t[f"{prefix}self_attn.{name}_proj.weight"].T).view(len(both), count, DIM)
            return rows if name == "v" else rotate(rms(rows, t[f"{prefix}self_attn.{name}_norm.weight"]), DIM)

        q, k, v = heads("q", HEADS)[len(context) :], heads("k", KV), heads("v", KV)
        mixed = [(q[:, h] @ k[:, 0].T / math.sqrt(DIM)).softmax(-1) @ v[:, 0] for h in range(HEADS)]
        return torch.cat(mixed, -1) @ t[f"{prefix}self_attn.o_proj.weight"].T

    def reference(tokens: list[int], hidden: Mapping[int, Tensor], k: int) -> list[int]:
        context = rms(torch.cat([hidden[tap] for tap in taps], -1) @ t["fc.weight"].T, t["hidden_norm.weight"])
        x = target.model.embedding[[tokens[-1], *[mask] * k]]
        for i in range(layers):
            x = x + attend(f"layers.{i}.", context, rms(x, t[f"layers.{i}.input_layernorm.weight"]))
            x = mlp(t, f"layers.{i}.", x)
        best = (rms(x[1:], t["norm.weight"]) @ head.T).argmax(-1)
        return [int(chosen[each]) if draft_vocab < 258 else int(each) for each in best]

    return MadeHead(folder, DFlash(), taps, reference)

"""Tiny random EAGLE-1, EAGLE-3 and P-EAGLE heads in their published layouts, each with a plain reference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from specctl.runtime import Target
from specctl.runtime.models.hidden import FINAL
from specctl.spec.methods import Eagle, Eagle3
from tests.runtime.head_parts import (
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


def eagle(target: Target, folder: Path, layers: int = 1, bias: bool = True, pickled: bool = False) -> MadeHead:
    t = {"fc.weight": noise(WIDTH, 2 * WIDTH, scale=0.2)} | ({"fc.bias": noise(WIDTH)} if bias else {})
    for i in range(layers):
        t |= layer(f"layers.{i}.", bias=i == 1)
        if i:
            t[f"layers.{i}.input_layernorm.weight"] = weight_norm()
    write(folder, SIZES | {"num_hidden_layers": layers}, t, "pytorch_model.bin" if pickled else None)
    embedding, head = target.model.embedding, target.model.head

    def forward(states: Tensor, tokens: list[int]) -> tuple[Tensor, Tensor]:
        x = F.linear(torch.cat([embedding[tokens], states], -1), t["fc.weight"], t.get("fc.bias"))
        for i in range(layers):
            entering = x if i == 0 else rms(x, t[f"layers.{i}.input_layernorm.weight"])
            x = mlp(t, f"layers.{i}.", x + attention(t, f"layers.{i}.", entering))
        return head @ x[-1], x[-1]

    chain = Chained(forward, lambda hidden: hidden[FINAL])
    return MadeHead(folder, Eagle(), (FINAL,), chain, chain.scores)


def eagle3(
    target: Target,
    folder: Path,
    *,
    speculators: bool = False,
    stated: list[int] | None = None,
    taps: tuple[int, ...] = (0, 1, 3),
    layers: int = 1,
    keys: Mapping[str, Any] | None = None,
    fc_norm: bool = False,
    input_norm: bool = False,
    own_embedding: bool = False,
    draft_vocab: int = 100,
) -> MadeHead:
    """``stated``: the ids as the config states them, where not ``taps``; ``keys``: the layout's switches."""
    first = "layers.0." if speculators else "midlayer."
    wide = len(taps) * WIDTH
    chosen = torch.randperm(target.vocab_size)[:draft_vocab].sort().values
    t = {
        "fc.weight": noise(WIDTH, wide, scale=0.2),
        "norm.weight": weight_norm(),
        "lm_head.weight": noise(draft_vocab, WIDTH),
    }
    t |= layer(first, 2 * WIDTH, qk_norm=speculators)
    t |= {f"{first}input_layernorm.weight": weight_norm(), f"{first}hidden_norm.weight": weight_norm()}
    for i in range(1, layers):
        t |= layer(f"layers.{i}.") | {
            f"layers.{i}.{'input_layernorm' if speculators else 'hidden_norm'}.weight": weight_norm()
        }
    t |= {f"fc_norm.{i}.weight": weight_norm() for i in range(len(taps))} if fc_norm else {}
    t |= {"input_norm.weight": weight_norm(wide)} if input_norm else {}
    t |= {"embed_tokens.weight": noise(target.vocab_size, WIDTH, scale=1.0)} if own_embedding else {}
    if draft_vocab < target.vocab_size:
        t |= {
            "d2t": chosen - torch.arange(draft_vocab),
            "t2d": torch.zeros(target.vocab_size).index_fill(0, chosen, 1).bool(),
        }
    keys = dict(keys or {})
    ids = {"eagle_aux_hidden_state_layer_ids": stated or list(taps)}
    sizes = SIZES | {"num_hidden_layers": layers}
    if speculators:
        config = {
            "speculators_model_type": "eagle3",
            "transformer_layer_config": sizes | {"model_type": "qwen3"},
            **ids,
            **keys,
        }
        config["speculators_config"] = {"proposal_methods": [{"speculative_tokens": 4}]}
    else:
        config = sizes | {"draft_vocab_size": draft_vocab, "eagle_config": ids, **keys}
    write(folder, config, t)
    embedding = t.get("embed_tokens.weight", target.model.embedding)
    feeds_normed = keys.get("norm_output", False) and (speculators or fc_norm)

    def enter(hidden: Mapping[int, Tensor]) -> Tensor:
        pieces = [hidden[tap] for tap in taps]
        if fc_norm:
            pieces = [rms(piece, t[f"fc_norm.{i}.weight"]) for i, piece in enumerate(pieces)]
        joined = torch.cat(pieces, -1)
        return (rms(joined, t["input_norm.weight"]) if input_norm else joined) @ t["fc.weight"].T

    def forward(states: Tensor, tokens: list[int]) -> tuple[Tensor, Tensor]:
        normed = rms(states, t[f"{first}hidden_norm.weight"])
        pair = torch.cat([rms(embedding[tokens], t[f"{first}input_layernorm.weight"]), normed], -1)
        x = (normed if keys.get("norm_before_residual", speculators) else states) + attention(t, first, pair)
        x = mlp(t, first, x)
        for i in range(1, layers):
            name = "input_layernorm" if speculators else "hidden_norm"
            x = mlp(t, f"layers.{i}.", x + attention(t, f"layers.{i}.", rms(x, t[f"layers.{i}.{name}.weight"])))
        out = rms(x[-1], t["norm.weight"])
        scores = torch.full((target.vocab_size,), float("-inf"), dtype=torch.float64)
        scores[chosen if draft_vocab < target.vocab_size else slice(None)] = t["lm_head.weight"] @ out
        return scores, out if feeds_normed else x[-1]

    chain = Chained(forward, enter)
    return MadeHead(folder, Eagle3(), taps, chain, chain.scores)


def peagle(target: Target, folder: Path, taps: tuple[int, ...] = (0, 1, 3)) -> MadeHead:
    """A two-layer head with stand-ins: one forward over the true rows and k - 1 rows of masks."""
    mask = 255
    made = eagle3(target, folder, speculators=True, taps=taps, layers=2, keys={"norm_before_residual": False})
    config = json.loads((folder / "config.json").read_text())
    config |= {"speculators_model_type": "peagle", "mask_token_id": mask}
    del config["norm_before_residual"]
    stand_in = noise(len(taps) * WIDTH, scale=1.0)
    write(folder, config, load_file(folder / "model.safetensors") | {"mask_hidden": stand_in.view(1, 1, -1)})

    def reference(tokens: list[int], hidden: Mapping[int, Tensor], k: int) -> list[int]:
        drafted: list[int] = []
        for i in range(k):
            pieces = stand_in.view(len(taps), 1, WIDTH).expand(-1, i, -1)
            masked = {tap: torch.cat([hidden[tap], piece]) for tap, piece in zip(taps, pieces, strict=True)}
            drafted += made.reference([*tokens, *[mask] * i], masked, 1)
        return drafted

    return MadeHead(folder, Eagle3(parallel_drafting=True), taps, reference)


def eagle3_without_taps(target: Target, folder: Path) -> MadeHead:
    """Reads the last state alone and fuses nothing."""
    made = eagle3(target, folder, taps=(FINAL,), stated=[1])
    config = json.loads((folder / "config.json").read_text())
    config["eagle_config"] = {"use_aux_hidden_state": False}
    (folder / "config.json").write_text(json.dumps(config))
    return made

"""Tiny random draft heads in every layout that is published, each with a plain reference: straight-line code over all
rows from the beginning, no cache, nothing shared with the runtime.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor

from specctl.runtime import Target
from specctl.runtime.models.hidden import FINAL
from specctl.spec.methods import DFlash, Eagle, Eagle3, Medusa, Method, MlpSpeculator, Mtp

WIDTH, INNER, HEADS, KV, DIM, THETA, EPS = 32, 40, 2, 1, 16, 5000.0, 1e-5
SIZES: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV,
    "head_dim": DIM,
    "num_hidden_layers": 1,
    "rms_norm_eps": EPS,
    "rope_theta": THETA,
    "max_position_embeddings": 32,
    "vocab_size": 258,
}

Tensors = dict[str, Tensor]
# Tokens so far and the target's states by layer, [n, width] each for all tokens but the newest; the next k tokens.
Reference = Callable[[list[int], Mapping[int, Tensor], int], list[int]]


@dataclass(frozen=True)
class MadeHead:
    """A checkpoint's folder, the setting's method, the layers it taps and its reference."""

    folder: Path
    method: Method
    taps: tuple[int, ...]
    reference: Reference


def noise(*shape: int, scale: float = 0.4) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64) * scale


def weight_norm(size: int = WIDTH) -> Tensor:
    return torch.rand(size, dtype=torch.float64) * 0.8 + 0.6


def layer(
    prefix: str, entering: int = WIDTH, *, bias: bool = False, qk_norm: bool = False, gated: bool = False
) -> Tensors:
    q = HEADS * DIM
    made = {
        "self_attn.q_proj.weight": noise(2 * q if gated else q, entering),
        "self_attn.k_proj.weight": noise(KV * DIM, entering),
        "self_attn.v_proj.weight": noise(KV * DIM, entering),
        "self_attn.o_proj.weight": noise(WIDTH, q),
        "mlp.gate_proj.weight": noise(INNER, WIDTH),
        "mlp.up_proj.weight": noise(INNER, WIDTH),
        "mlp.down_proj.weight": noise(WIDTH, INNER),
        "post_attention_layernorm.weight": weight_norm(),
    }
    if bias:
        made |= {f"self_attn.{n}_proj.bias": noise(s * DIM) for n, s in (("q", HEADS), ("k", KV), ("v", KV))}
    if qk_norm:
        made |= {f"self_attn.{n}_norm.weight": weight_norm(DIM) for n in "qk"}
    return {prefix + name: value for name, value in made.items()}


def rms(x: Tensor, weight: Tensor | None, eps: float = EPS) -> Tensor:
    x = x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    return x if weight is None else x * weight


def rotate(x: Tensor, turning: int) -> Tensor:
    """``x`` [T, heads, dim] by its row number, the first ``turning`` dims; angles in float32, as models are trained."""
    steps = torch.arange(0, turning, 2, dtype=torch.float32) / turning
    angles = torch.outer(torch.arange(len(x), dtype=torch.float32), 1.0 / THETA**steps)
    cos, sin = angles.cos().double()[:, None], angles.sin().double()[:, None]
    a, b = x[..., : turning // 2], x[..., turning // 2 : turning]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., turning:]], dim=-1)


def attention(
    t: Tensors, prefix: str, x: Tensor, *, gated: bool = False, turning: int = DIM, offset: float = 0
) -> Tensor:
    """Plain causal attention over all rows of ``x``, output projection included."""

    def project(name: str) -> Tensor:
        bias = t.get(f"{prefix}self_attn.{name}_proj.bias")
        return F.linear(x, t[f"{prefix}self_attn.{name}_proj.weight"], bias)

    q, gate = project("q").view(len(x), HEADS, -1), None
    if gated:
        q, gate = q[..., :DIM], q[..., DIM:]
    k, v = project("k").view(len(x), KV, DIM), project("v").view(len(x), KV, DIM)
    if f"{prefix}self_attn.q_norm.weight" in t:
        q = rms(q, t[f"{prefix}self_attn.q_norm.weight"] + offset)
        k = rms(k, t[f"{prefix}self_attn.k_norm.weight"] + offset)
    q, k = rotate(q, turning), rotate(k, turning)
    mixed = []
    for head in range(HEADS):
        scores = q[:, head] @ k[:, head * KV // HEADS].T / math.sqrt(DIM)
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))
        mixed.append(scores.softmax(-1) @ v[:, head * KV // HEADS])
    out = torch.stack(mixed, dim=1)
    if gate is not None:
        out = out * gate.sigmoid()
    return F.linear(out.reshape(len(x), -1), t[f"{prefix}self_attn.o_proj.weight"])


def mlp(t: Tensors, prefix: str, x: Tensor, offset: float = 0) -> Tensor:
    entering = rms(x, t[f"{prefix}post_attention_layernorm.weight"] + offset)
    gate = F.silu(entering @ t[f"{prefix}mlp.gate_proj.weight"].T)
    return x + (gate * (entering @ t[f"{prefix}mlp.up_proj.weight"].T)) @ t[f"{prefix}mlp.down_proj.weight"].T


def chained(forward: Callable[[Tensor, list[int]], tuple[Tensor, Tensor]], enter: Callable[..., Tensor]) -> Reference:
    """The chain of a recurrent head: ``forward(states, tokens)`` answers scores and next state of the last row."""

    def reference(tokens: list[int], hidden: Mapping[int, Tensor], k: int) -> list[int]:
        states, following = enter(hidden), list(tokens[1:])
        for _ in range(k):
            scores, fed = forward(states, following)
            following.append(int(scores.argmax()))
            states = torch.cat([states, fed[None]])
        return following[len(tokens) - 1 :]

    return reference


def write(folder: Path, config: dict[str, Any], tensors: Tensors, pickled: str | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    stored = {name: value.contiguous() for name, value in tensors.items()}
    if pickled:
        torch.save(stored, folder / pickled)
    else:
        save_file(stored, folder / "model.safetensors")


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

    return MadeHead(folder, Eagle(), (FINAL,), chained(forward, lambda hidden: hidden[FINAL]))


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

    return MadeHead(folder, Eagle3(), taps, chained(forward, enter))


def peagle(target: Target, folder: Path) -> MadeHead:
    """A two-layer head with stand-ins: one forward over the true rows and k - 1 rows of masks."""
    taps, mask = (0, 1, 3), 255
    made = eagle3(target, folder, speculators=True, layers=2, keys={"norm_before_residual": False})
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

    return MadeHead(folder, Mtp(), (FINAL,), chained(forward, lambda hidden: hidden[FINAL]))


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

    def reference(tokens: list[int], hidden: Mapping[int, Tensor], k: int) -> list[int]:
        drafted = []
        for h in range(k):
            x = hidden[FINAL][-1]
            for weight, bias in blocks[h]:
                x = x + F.silu(weight @ x + bias)
            best = int((heads[h] @ x).argmax())
            drafted.append(int(chosen[best]) if layout == "vllm-mapped" else best)
        return drafted

    return MadeHead(folder, Medusa(), (FINAL,), reference)


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

    def reference(tokens: list[int], hidden: Mapping[int, Tensor], k: int) -> list[int]:
        state, drafted = hidden[FINAL][-1], [tokens[-1]]
        if scaled:
            state = rms(state, None, 1e-6) / math.sqrt(2)
        state_share = 0.5 ** (0.5 / steps)
        token_share = math.sqrt((1 - state_share**2) * inner / 2)
        for i in range(k):
            j, p = (0, min(i, 1)) if tied else (i, i)
            mixed = t[f"proj.{p}.weight"] @ state + token_share / state_share * t[f"emb.{j}.weight"][drafted[-1]]
            normed = rms(mixed, None, 1e-6) * t[f"ln.{j}.weight"] + t[f"ln.{j}.bias"]
            state = normed * 0.5 * (1 + torch.erf(normed / math.sqrt(2)))
            drafted.append(int((t[f"head.{j}.weight"] @ state).argmax()))
        return drafted[1:]

    return MadeHead(folder, MlpSpeculator(), (FINAL,), reference)


def dflash(target: Target, folder: Path, layers: int = 2, draft_vocab: int = 258) -> MadeHead:
    """The context states enter every layer as keys and values; the block sees them and all of itself."""
    taps, mask = (1, 3), 256
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


MADE: dict[str, Callable[[Target, Path], MadeHead]] = {
    "eagle": eagle,
    "eagle-two-layers-no-bias": lambda target, folder: eagle(target, folder, layers=2, bias=False),
    "eagle-pickled": lambda target, folder: eagle(target, folder, pickled=True),
    "eagle3": eagle3,
    "eagle3-output-ids": lambda t, f: eagle3(t, f, taps=(2, 2, 3), stated=[1, 1, 2]),
    "eagle3-full-vocabulary": lambda t, f: eagle3(t, f, draft_vocab=258, own_embedding=True),
    "eagle3-two-layers": lambda t, f: eagle3(t, f, layers=2),
    "eagle3-normed-residual": lambda t, f: eagle3(t, f, keys={"norm_before_residual": True}),
    "eagle3-norm-output-of-old": lambda t, f: eagle3(t, f, keys={"norm_output": True}),
    "eagle3-norm-before-fc": lambda t, f: eagle3(t, f, input_norm=True),
    "eagle3.1": lambda t, f: eagle3(t, f, fc_norm=True, keys={"norm_output": True}),
    "eagle3-without-taps": eagle3_without_taps,
    "eagle3-speculators": lambda t, f: eagle3(t, f, speculators=True, taps=(1, 2, 0)),
    "eagle3-speculators-3.1": lambda t, f: eagle3(
        t, f, speculators=True, layers=2, fc_norm=True, keys={"norm_output": True, "norm_before_residual": False}
    ),
    "peagle": peagle,
    **{f"mtp-{family}": lambda t, f, family=family: mtp(t, f, family) for family in MTP},  # type: ignore[misc]
    "medusa-file": lambda t, f: medusa(t, f, "file"),
    "medusa-merged": lambda t, f: medusa(t, f, "merged", depth=2),
    "medusa-vllm": lambda t, f: medusa(t, f, "vllm"),
    "medusa-vllm-mapped": lambda t, f: medusa(t, f, "vllm-mapped"),
    "mlp-speculator": mlp_speculator,
    "dflash": dflash,
    "dflash-own-vocabulary": lambda t, f: dflash(t, f, layers=1, draft_vocab=77),
    "mlp-speculator-tied": lambda t, f: mlp_speculator(t, f, tied=True, prefix="speculator."),
    "mlp-speculator-scaled": lambda t, f: mlp_speculator(t, f, scaled=True),
}


def make_head(kind: str, target: Target, folder: Path) -> MadeHead:
    """The same checkpoint for the same kind every time."""
    torch.manual_seed(sum(map(ord, kind)))
    return MADE[kind](target, folder)

"""What a family's prediction layers should draft: transformers' own layers over all rows from the beginning, with its
own attention, no cache.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers.cache_utils import MtpCache
from transformers.modeling_layers import MtpModel

from specctl.runtime.models.pretrained import load_network
from tests.runtime.head_parts import rms

# The next k tokens from the tokens so far and the target's last states [n, width] of all of them but the newest.
Drafter = Callable[[list[int], Tensor, int], list[int]]


def oracle(folder: Path, attention: str = "sdpa") -> Any:
    """The network in float64, as transformers runs it."""
    network = load_network(folder, torch.float64, torch.device("cpu"), attention)
    network.set_experts_implementation("eager")
    return network


def last_states(network: Any, tokens: list[int]) -> Tensor:
    """The states [n, width] behind the final norm."""
    with torch.inference_mode():
        return network(torch.tensor([tokens]), output_hidden_states=True, use_cache=False).hidden_states[-1][0]  # type: ignore[no-any-return]


def of_transformers(folder: Path) -> Drafter:
    """One token a prediction layer, as ``generate(use_mtp=True)`` drafts them."""
    network = oracle(folder)
    first = network.config.get_text_config().num_hidden_layers
    # It finds the layers by what the network does not load; the known patterns are those of the published sizes.
    count = network.config.get_text_config().num_mtp_layers
    network._keys_to_ignore_on_load_unexpected = [rf"layers\.{first + i}\." for i in range(count)]
    layers = MtpModel.from_pretrained(network).eval()

    @torch.inference_mode()
    def draft(tokens: list[int], states: Tensor, k: int) -> list[int]:
        positions = torch.arange(1, len(tokens)).unsqueeze(0)
        cache = MtpCache(config=network.config.get_mtp_config())
        drafted, _, _ = layers(
            input_ids=torch.tensor([tokens[1:]]), last_hidden_states=states.unsqueeze(0), attention_mask=None,
            position_ids=positions, mtp_cache=cache,
        )  # fmt: skip
        return drafted[0, :k].tolist()  # type: ignore[no-any-return]

    return draft


# Prefix of the fusion's parts in the checkpoint, in the order norm of the token, norm of the state, fusion, final norm.
_QWEN = ("mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.fc", "mtp.norm")
_DEEPSEEK = tuple(f"model.layers.4.{name}" for name in ("enorm", "hnorm", "eh_proj", "shared_head.norm"))


def by_hand(folder: Path, whole: Path, offset: float, feeds_normed: bool) -> Drafter:
    """One layer that chains. ``whole``: the same network with the prediction layer as its fifth; ``offset``: what its
    norms add to their weights.
    """
    network = oracle(whole, "eager")
    decoder = network.get_decoder()
    block, rotate = decoder.layers[4], decoder.rotary_emb
    embedding, head = network.get_input_embeddings().weight, network.get_output_embeddings().weight
    stored = {name: value.double() for name, value in load_file(folder / "model.safetensors").items()}
    names = _QWEN if "mtp.fc.weight" in stored else _DEEPSEEK
    token_norm, state_norm, fusion, final = (stored[f"{name}.weight"] for name in names)
    eps = network.config.get_text_config().rms_norm_eps

    @torch.inference_mode()
    def step(tokens: list[int], states: Tensor) -> tuple[Tensor, Tensor]:
        pair = [rms(embedding[tokens], token_norm + offset, eps), rms(states, state_norm + offset, eps)]
        x = (torch.cat(pair, -1) @ fusion.T).unsqueeze(0)
        places = torch.arange(len(tokens)).unsqueeze(0)
        mask = torch.full((len(tokens), len(tokens)), float("-inf"), dtype=torch.float64).triu(1)[None, None]
        out = block(x, position_embeddings=rotate(x, places), attention_mask=mask, position_ids=places)[0, -1]
        normed = rms(out, final + offset, eps)
        return head @ normed, normed if feeds_normed else out

    def draft(tokens: list[int], states: Tensor, k: int) -> list[int]:
        following = list(tokens[1:])
        for _ in range(k):
            scores, fed = step(following, states)
            following.append(int(scores.argmax()))
            states = torch.cat([states, fed[None]])
        return following[len(tokens) - 1 :]

    return draft

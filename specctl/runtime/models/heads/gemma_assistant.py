"""Gemma 4's assistants: a few layers without keys and values of their own, which read those of the target.

The input of a row is the target's embedding of the newest token and a state of the target's width. All rows of a draft
stand at one position, that of the newest token that stands: what the layers attend to does not grow while they draft.
Source: transformers' Gemma4Assistant and the candidate generator that drives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specctl.errors import DamagedError, SpecctlError
from specctl.modelinfo.recognise import GEMMA_ASSISTANTS
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.attention import make_plan
from specctl.runtime.models.exact import make_exact
from specctl.runtime.models.families import model_type
from specctl.runtime.models.flat import FlatModel, kv_keepers
from specctl.runtime.models.flat_step import ATTENTION, LayeredCache, Step, host
from specctl.runtime.models.pretrained import load_network, read_raw


class GemmaAssistant:
    """``forward`` drafts one token for each of many sequences."""

    def __init__(self, network: Any, target: FlatModel) -> None:
        self._network = network.eval()
        self._target = target
        self._step = Step()
        decoder = network.get_decoder()
        keepers = kv_keepers(target.config)
        for layer in decoder.layers:
            attention = layer.self_attn
            host(attention, self._step, keepers[attention.layer_type], writes=False)
            if attention.sliding_window is not None:
                # transformers counts the window of an assistant from the last key, and that key besides.
                attention.sliding_window += 1
        if target.dtype == torch.float64:
            for module in (*decoder.layers, decoder.norm):
                make_exact(module)
        nothing = torch.zeros(1, 1, 0, 1, dtype=target.dtype, device=target.device)
        self._absent = dict.fromkeys(keepers, (nothing, nothing))

    @torch.inference_mode()
    def forward(
        self, tokens: Sequence[int], states: Tensor, slots: Sequence[int], counts: Sequence[int], cache: LayeredCache
    ) -> tuple[Tensor, Tensor]:
        """Logits [n, vocab] and the states [n, width of the target] of the next row.

        ``tokens`` and ``states`` [n, width of the target]: the newest token of each sequence and the state before it;
        ``counts``: entries of each slot of the target's ``cache`` that stand.
        """
        device = self._target.device
        embedded = self._target.network.get_input_embeddings()(torch.tensor([tokens], device=device))
        rows = self._network.pre_projection(torch.cat([embedded, states.unsqueeze(0)], dim=-1))
        spans = [Span(slot, count - 1, 1) for slot, count in zip(slots, counts, strict=True)]
        self._step.cache, self._step.plan, self._step.spans = cache, make_plan(spans, cache, device), spans
        out = self._network.get_decoder()(
            inputs_embeds=rows,
            attention_mask=dict.fromkeys(self._absent),
            position_ids=torch.tensor([counts], device=device),
            shared_kv_states=self._absent,
            logits_to_keep=torch.arange(len(slots)),  # all rows; a number would have the layers leave some out
            use_cache=False,
        ).last_hidden_state
        return self._score(out), self._network.post_projection(out)[0]

    def _score(self, out: Tensor) -> Tensor:
        head: Tensor = self._network.lm_head.weight
        embedder = self._network.masked_embedding
        if embedder is None:
            return (out @ head.T)[0]
        # Row by row: what it gives to tokens outside the chosen clusters hangs on all rows of a call.
        return torch.cat([embedder(row.view(1, 1, -1), head)[0] for row in out[0]])


def is_assistant(folder: Path) -> bool:
    """Whether the folder holds an assistant of Gemma 4."""
    try:
        return model_type(read_raw(folder)) in GEMMA_ASSISTANTS
    except DamagedError:  # no language model; who opens it as a head says what it is
        return False


def load_assistant(folder: Path, target: Any, name: str) -> GemmaAssistant:
    """The assistant in ``folder`` for ``target``, which the user calls ``name``; raises SpecctlError and its kin where
    it is for another.
    """
    if not isinstance(target, FlatModel) or not hasattr(target.config, "kv_sharing_modes"):
        raise SpecctlError(
            f"{folder} is an assistant of Gemma 4 and reads its target's keys and values; {name} is of another family",
            help="use it with the Gemma 4 model of the same name, without '-assistant'",
        )
    network = load_network(folder, target.dtype, target.device, ATTENTION)
    _check(folder, network.config, target, name)
    return GemmaAssistant(network, target)


def _check(folder: Path, config: Any, target: FlatModel, name: str) -> None:
    text, theirs = config.get_text_config(), target.config
    keepers = kv_keepers(theirs)
    pairs = [
        ("backbone_hidden_size", config.backbone_hidden_size, "hidden_size", theirs.hidden_size),
        ("vocab_size", text.vocab_size, "vocab_size", target.vocab_size),
    ]
    for layer, kind in enumerate(text.layer_types):
        if kind not in keepers:
            raise SpecctlError(f"{folder}: its layer {layer} is of kind {kind}, {name} has {', '.join(keepers)}")
        own, read = text.per_layer_config[layer], theirs.per_layer_config[keepers[kind]]
        pairs.append((f"head_dim of layer {layer}", own.head_dim, f"that of layer {keepers[kind]}", read.head_dim))
    for ours, found, wanted_name, wanted in pairs:
        if found != wanted:
            raise SpecctlError(
                f"{folder}: {ours} is {found}, {wanted_name} of {name} is {wanted}",
                help="this is the assistant of another target",
            )

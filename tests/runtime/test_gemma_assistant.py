"""Assistants of Gemma 4: what transformers' assistant drafts from the same target, whatever was accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

import specctl
from specctl.errors import SpecctlError
from specctl.runtime import EngineOptions, Target, load_target, make_engine
from specctl.spec.config import SpecDecodeConfig, Tree
from specctl.spec.methods import Mtp
from tests.runtime.family_kit import TINY, WIDTH, randomised, write_family
from tests.runtime.family_reference import Drafter, last_states, oracle
from tests.runtime.kit import ask, run, save
from tests.runtime.schooling import PROMPTS, check, silence, spoil

SMALL: dict[str, Any] = TINY | {
    "num_hidden_layers": 3, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    "sliding_window": 5, "head_dim": 8, "global_head_dim": 16, "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": 0, "num_kv_shared_layers": 3,
}  # fmt: skip


def write_assistant(folder: Path, kind: str = "Gemma4", **keys: Any) -> Path:
    torch.manual_seed(4)
    text = getattr(hf, f"{kind}TextConfig")(**SMALL | keys.pop("text", {}))
    config = getattr(hf, f"{kind}AssistantConfig")(text_config=text, backbone_hidden_size=WIDTH, **keys)
    network = getattr(hf, f"{kind}AssistantForCausalLM")(config)
    if network.masked_embedding is not None:
        network.masked_embedding.token_ordering.copy_(torch.randperm(258))
    save(network, folder)
    tensors = randomised(load_file(folder / "model.safetensors"))
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


def of_transformers(folder: Path, assistant: Path) -> Drafter:
    """The loop of transformers' candidate generator over keys and values that the target computes afresh."""
    network, drafter = oracle(folder), oracle(assistant)

    @torch.inference_mode()
    def draft(tokens: list[int], states: torch.Tensor, k: int) -> list[int]:
        out = network(
            torch.tensor([tokens[:-1]]), return_shared_kv_states=True, use_cache=False, output_hidden_states=True
        )
        state, newest, drafted = states[-1:].unsqueeze(0), torch.tensor([tokens[-1:]]), []
        for _ in range(k):
            embedded = torch.cat([network.get_input_embeddings()(newest), state], dim=-1)
            answer = drafter(
                inputs_embeds=embedded, position_ids=torch.tensor([[len(tokens) - 1]]),
                shared_kv_states=dict(out.shared_kv_states), use_cache=False,
            )  # fmt: skip
            newest, state = answer.logits.argmax(-1), answer.last_hidden_state
            drafted.append(int(newest))
        return drafted

    return draft


ORDERED = {"use_ordered_embeddings": True, "num_centroids": 43, "centroid_intermediate_top_k": 3}


@pytest.mark.parametrize(
    ("family", "kind", "keys"),
    [
        ("gemma4_text", "Gemma4", {}),
        ("gemma4_text-experts", "Gemma4", ORDERED),
        ("gemma4_unified", "Gemma4Unified", {}),
    ],
)
def test_every_draft_is_that_of_transformers_assistant(
    family: str, kind: str, keys: dict[str, Any], tmp_path: Path
) -> None:
    folder = write_family(family, tmp_path / "target")
    assistant = write_assistant(tmp_path / "assistant", kind, **keys)
    network = oracle(folder)
    setting = SpecDecodeConfig(Mtp(), 3, model=str(assistant))
    check(folder, setting, of_transformers(folder, assistant), lambda tokens: last_states(network, tokens))


def test_an_assistant_that_knows_the_target_is_always_right(tmp_path: Path) -> None:
    folder, assistant = write_family("gemma4", tmp_path / "target"), write_assistant(tmp_path / "assistant")
    silence(folder)
    silence(assistant)
    tensors = load_file(assistant / "model.safetensors")
    theirs = load_file(folder / "model.safetensors")
    tensors["model.embed_tokens.weight"] = next(v for n, v in theirs.items() if n.endswith("embed_tokens.weight"))
    tensors["pre_projection.weight"] = torch.cat([torch.eye(WIDTH), torch.zeros(WIDTH, WIDTH)], -1)
    save_file(tensors, assistant / "model.safetensors", {"format": "pt"})
    target = load_target(str(folder), device="cpu", dtype="float64")
    for k, slots in ((1, 3), (4, 1), (6, 3)):
        engine = make_engine(target, SpecDecodeConfig(Mtp(), k, model=str(assistant)), EngineOptions(slots))
        spoilt = spoil(engine)
        run(engine, [ask(name, prompt, ignore_eos=True, max_tokens=30) for name, prompt in PROMPTS.items()])
        assert spoilt[0] > 0
        assert 1 + (engine.stats.num_accepted_tokens + spoilt[0]) / engine.stats.num_drafts >= k + 0.95


def start(target: Target, assistant: Path, **keys: Any) -> None:
    make_engine(target, SpecDecodeConfig(Mtp(), 3, model=str(assistant), **keys), EngineOptions(1))


def test_the_assistant_of_another_target_is_refused(tmp_path: Path, checkpoint: Any) -> None:
    target = load_target(str(write_family("gemma4_text", tmp_path / "target")), device="cpu", dtype="float64")
    other = load_target(str(checkpoint("qwen3")), device="cpu", dtype="float64")
    fitting = write_assistant(tmp_path / "fitting")
    with pytest.raises(SpecctlError, match=r"reads its target's keys and values; .* another family"):
        start(other, fitting)
    with pytest.raises(SpecctlError, match="asks for a tree"):
        start(target, fitting, tree=Tree(topk=2))
    with pytest.raises(SpecctlError, match=r"head_dim of layer 2 is 24, that of layer 1 .* is 16"):
        start(target, write_assistant(tmp_path / "wide", text={"global_head_dim": 24}))
    path = fitting / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"backbone_hidden_size": 64}))
    with pytest.raises(SpecctlError, match=r"'p..._?projection.weight' is .*config.json wants"):
        start(target, fitting)


def test_a_setting_that_names_an_assistant_has_no_error(tmp_path: Path) -> None:
    """No prediction layer is missed in it: it is layers of prediction as a whole."""
    folder, assistant = write_family("gemma4", tmp_path / "target"), write_assistant(tmp_path / "assistant")
    setting = {"specctl": 1, "method": "mtp", "model": str(assistant), "num_speculative_tokens": 2}
    report = specctl.check(setting, target=str(folder))
    assert report.valid, [found.message for found in report.diagnostics]
    other = {"method": "mtp", "model": str(assistant), "num_speculative_tokens": 4}
    assert "SPC214" not in {found.code for found in specctl.check(other, engine="vllm", target=str(folder)).diagnostics}

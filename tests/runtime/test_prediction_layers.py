"""Prediction layers inside a target's checkpoint: what they draft, whatever was accepted, and what is said where config
and tensors disagree.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from specctl.errors import SpecctlError
from specctl.runtime import Engine, EngineOptions, Target, load_target, make_engine
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import Mtp
from tests.runtime.family_kit import TINIES, write_family
from tests.runtime.family_reference import Drafter, by_hand, last_states, of_transformers, oracle
from tests.runtime.kit import ask, run
from tests.runtime.schooling import PROMPTS, check, silence, spoil

SHIPPED = [name for name, tiny in TINIES.items() if tiny.mtp]
HABITS = {"deepseek_v3": (0.0, True), "glm4_moe": (0.0, False)} | dict.fromkeys(
    ("qwen3_next", "qwen3_5_text", "qwen3_5_moe"), (1.0, True)
)


def target_of(folder: Path) -> Target:
    return load_target(str(folder), device="cpu", dtype="float64")


def compare(folder: Path, reference: Drafter, k: int) -> None:
    network = oracle(folder)
    check(folder, SpecDecodeConfig(Mtp(), k), reference, lambda tokens: last_states(network, tokens))


@pytest.mark.parametrize("name", HABITS)
def test_one_layer_chains_as_transformers_layer_does_by_hand(name: str, tmp_path: Path) -> None:
    folder = write_family(name, tmp_path / "target", whole=tmp_path / "whole")
    compare(folder, by_hand(folder, tmp_path / "whole", *HABITS[name]), 3)


@pytest.mark.parametrize(("name", "k"), [("deepseek_v3", 1), ("glm4_moe", 1), ("step3p7-even", 2), ("step3p7-even", 3)])
def test_each_layer_drafts_what_transformers_drafts(name: str, k: int, tmp_path: Path) -> None:
    """transformers counts the heads of step3p7's sliding prediction layers as those of full attention."""
    folder = write_family(name, tmp_path / "target")
    compare(folder, of_transformers(folder), k)


@pytest.mark.parametrize("name", SHIPPED)
def test_layers_that_know_the_target_are_always_right(name: str, tmp_path: Path) -> None:
    """Also in the steps after a draft that was spoilt on purpose."""
    silence(write_family(name, tmp_path / "target"))
    target = target_of(tmp_path / "target")
    for k, slots in ((1, 1), (5, 3)):
        engine = make_engine(target, SpecDecodeConfig(Mtp(), k), EngineOptions(slots))
        spoilt = spoil(engine)
        # MiMo's and Ernie's layers are blind to the first row, all there is after a prompt of one token.
        prompts = {
            each: prompt for each, prompt in PROMPTS.items() if len(prompt) > 1 or name[:4] not in ("mimo", "erni")
        }
        run(engine, [ask(each, prompt, ignore_eos=True, max_tokens=30) for each, prompt in prompts.items()])
        stats = engine.stats
        assert spoilt[0] > 0
        assert 1 + (stats.num_accepted_tokens + spoilt[0]) / stats.num_drafts >= k + 0.95


def restate(folder: Path, **keys: Any) -> None:
    path = folder / "config.json"
    raw = json.loads(path.read_text())
    raw.get("text_config", raw).update(keys)
    path.write_text(json.dumps(raw))


def start(folder: Path, k: int = 2) -> Engine:
    return make_engine(target_of(folder), SpecDecodeConfig(Mtp(), k), EngineOptions(1))


def test_where_config_and_tensors_disagree_the_message_says_which(tmp_path: Path) -> None:
    folder = write_family("glm4_moe", tmp_path / "target")
    restate(folder, num_nextn_predict_layers=0)
    assert "num_nextn_predict_layers 0, the weights hold 1 prediction layers; 1 of them run" in start(folder).notes[0]
    restate(folder, num_nextn_predict_layers=2)
    assert "num_nextn_predict_layers 2, the weights hold 1" in start(folder).notes[0]
    tensors = load_file(folder / "model.safetensors")
    without = {name: value for name, value in tensors.items() if ".layers.4." not in name}
    save_file(without, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(SpecctlError, match=r"num_nextn_predict_layers 2, but the weights hold no .*layers\.4\.eh_proj"):
        start(folder)
    restate(folder, num_nextn_predict_layers=0)
    with pytest.raises(SpecctlError, match=r"config\.json counts none and the weights hold none"):
        start(folder)


def test_fewer_layers_than_stored_are_used_where_the_config_says_so(tmp_path: Path) -> None:
    folder = write_family("step3p7", tmp_path / "target")
    restate(folder, num_nextn_predict_layers=1, layer_types=["full_attention", "sliding_attention"] * 2)
    engine = start(folder, 3)
    assert "num_nextn_predict_layers 1, the weights hold 3 prediction layers; 1 of them run" in engine.notes[0]
    assert run(engine, [ask("few", PROMPTS["few"])])["few"]["tokens"]


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("glm4_moe", "model.layers.4.mlp.experts.3.up_proj.weight"),
        ("deepseek_v3", "model.layers.4.self_attn.kv_b_proj.weight"),
        ("step3p7", "model.layers.5.moe.up_proj.weight"),
        ("qwen3_next", "mtp.layers.0.mlp.shared_expert_gate.weight"),
        ("qwen3_5", "mtp.norm.weight"),
    ],
)
def test_a_tensor_that_is_absent_or_of_another_shape_is_named(name: str, tensor: str, tmp_path: Path) -> None:
    folder = write_family(name, tmp_path / "target")
    tensors = load_file(folder / "model.safetensors")
    for change in (None, tensors[tensor].repeat_interleave(2, 0)):
        changed = {key: value for key, value in tensors.items() if key != tensor}
        changed |= {} if change is None else {tensor: change}
        save_file(changed, folder / "model.safetensors", {"format": "pt"})
        with pytest.raises(SpecctlError, match=tensor.replace(".", r"\.")):
            start(folder)


def test_weights_of_eight_bits_are_read_with_their_scales(tmp_path: Path) -> None:
    """The layer as DeepSeek-V3 ships it; what is drafted is what the same weights in full width draft."""
    folder = write_family("deepseek_v3", tmp_path / "target")
    tensors = load_file(folder / "model.safetensors")
    packed = [name for name, value in tensors.items() if ".layers.4." in name and "mlp.experts" in name]
    eight, wide = dict(tensors), dict(tensors)
    for name in packed:
        scale = tensors[name].abs().max() / 448
        eight[name] = (tensors[name] / scale).to(torch.float8_e4m3fn)
        eight[f"{name}_scale_inv"] = scale.view(1, 1)
        wide[name] = eight[name].float() * scale
    drafted = []
    for stored in (wide, eight):
        save_file(stored, folder / "model.safetensors", {"format": "pt"})
        engine = start(folder)
        layer = engine._drafting.proposer._head.stack._layers[0]  # type: ignore[union-attr]
        drafted.append(layer.state_dict()["mlp.experts.down_proj"])
    assert torch.equal(*drafted)
    save_file({n: v for n, v in eight.items() if "_scale_inv" not in n}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(SpecctlError, match=r"experts\.0\.\w+\.weight' is torch\.float8_e4m3fn and has no"):
        start(folder)


def test_layers_of_experts_for_a_target_without_are_refused(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder = write_family("glm4_moe", tmp_path / "other")
    target = target_of(shutil.copytree(checkpoint("llama"), tmp_path / "target"))
    with pytest.raises(SpecctlError, match="has experts, the target's layers have none"):
        make_engine(target, SpecDecodeConfig(Mtp(), 2, model=str(folder)), EngineOptions(1))


@pytest.mark.parametrize(("name", "shared"), [("deepseek_v3", True), ("step3p7", True), ("qwen3_next", False)])
def test_a_prefix_that_another_request_left_changes_nothing(name: str, shared: bool, tmp_path: Path) -> None:
    """A recurrent state is that of one place of one sequence; its prefixes are computed again."""
    target = target_of(write_family(name, tmp_path / "target"))
    first, second = PROMPTS["long"], [*PROMPTS["long"][:40], 7, 8, 9]
    engine = make_engine(target, SpecDecodeConfig(Mtp(), 3), EngineOptions(2, None, 16, prefix_caching=True))
    for place, prompt in enumerate((first, second, first)):
        wanted = run(Engine(target, None, EngineOptions(1)), [ask("alone", prompt, ignore_eos=True)])["alone"]
        got = run(engine, [ask(f"{place}", prompt, ignore_eos=True)])[f"{place}"]
        assert got["tokens"] == wanted["tokens"]
    assert (engine.counters.prefix_hits > 0) == shared

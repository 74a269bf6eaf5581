"""What drafts add, against the sizes of their cards."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specctl.errors import MissingError, SpecctlError
from specctl.modelinfo import ModelFacts
from specctl.planning.drafts import draft_shape, mtp_shape
from specctl.planning.known_drafts import DRAFTS
from specctl.planning.known_targets import TARGETS
from specctl.planning.models import Known, draft_named, other_target, target_named

LLAMA = target_named("meta-llama/Llama-3.1-8B-Instruct")


def billions(draft: str) -> float:
    target = target_named(DRAFTS[draft].target)
    return draft_named(draft, target).shape.stored.total / 1e9


@pytest.mark.parametrize(
    ("draft", "size"),
    [
        ("RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3", 0.950),
        ("yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", 0.425),
        ("yuhuili/EAGLE3-LLaMA3.3-Instruct-70B", 1.403),
        ("RedHatAI/Llama-3.3-70B-Instruct-speculator.eagle3", 2.454),
        ("nvidia/Llama-3.3-70B-Instruct-Eagle3", 3.242),
        ("lmsys/EAGLE3-gpt-oss-120b-bf16", 0.308),
        ("nvidia/gpt-oss-120b-Eagle3-short-context", 0.795),
        ("RedHatAI/Qwen3-8B-speculator.eagle3", 0.400),
        ("RedHatAI/Qwen3-32B-speculator.eagle3", 0.783),
        ("google/gemma-4-31B-it-assistant", 0.470),  # 0.94 GB in 16 bits
    ],
)
def test_size_of_a_head(draft: str, size: float) -> None:
    assert billions(draft) == pytest.approx(size, abs=0.0011)


def test_cache_of_a_one_layer_head() -> None:
    shape = draft_named("yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", LLAMA).shape
    assert [piece.elements for piece in shape.cache] == [2048]


@pytest.mark.parametrize(
    ("target", "size", "elements"),
    [
        ("deepseek-ai/DeepSeek-V3", 13.46, 576),
        ("XiaomiMiMo/MiMo-7B-Base", 0.21, 2048),
        ("stepfun-ai/Step-3.5-Flash", 3.9, 3 * 2048),
        ("zai-org/GLM-4.5", 5.5, 2048),
        ("Qwen/Qwen3.5-397B-A17B", 6.6, 1024),
    ],
)
def test_prediction_layers(target: str, size: float, elements: int) -> None:
    shape = mtp_shape(target_named(target).facts)
    assert shape.stored.total / 1e9 == pytest.approx(size, abs=0.06)
    assert [piece.elements for piece in shape.cache] == [elements]


def test_a_target_without_prediction_layers() -> None:
    with pytest.raises(SpecctlError, match="no prediction layers"):
        draft_named("mtp", LLAMA)


def test_an_assistant_has_no_cache_of_its_own() -> None:
    shape = draft_named("google/gemma-4-31B-it-assistant", target_named("google/gemma-4-31B-it")).shape
    assert shape.cache == ()


def test_a_smaller_model_as_draft() -> None:
    found = draft_named("Qwen/Qwen3-0.6B", target_named("Qwen/Qwen3-8B"))
    assert found.shape.stored.total == 596_049_920
    assert (found.shape.method, found.shape.parallel, found.acceptance.known) == ("draft_model", False, False)


def test_search_has_no_weights() -> None:
    shape = draft_named("ngram", LLAMA).shape
    assert (shape.stored.total, shape.read.total, shape.cache) == (0, 0, ())


CONFIGS: dict[str, dict[str, Any]] = {
    "medusa": {"architectures": ["MedusaModel"], "medusa_num_heads": 3, "medusa_num_layers": 1},
    "mlp_speculator": {"model_type": "mlp_speculator", "emb_dim": 4096, "inner_dim": 3072, "n_predict": 4},
    "dflash": {
        "architectures": ["DFlashDraftModel"],
        "dflash_config": {"target_layer_ids": [1, 9, 17]},
        "block_size": 8,
        "hidden_size": 4096,
        "num_hidden_layers": 2,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
    },
    "eagle": {
        "architectures": ["EagleLlamaForCausalLM"],
        "hidden_size": 4096,
        "num_hidden_layers": 1,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
    },
}


def shape_of_config(name: str, **more: Any) -> Any:
    return draft_shape(ModelFacts("head", Path("/"), CONFIGS[name] | more), LLAMA.facts)


def test_the_layouts_of_heads() -> None:
    medusa = shape_of_config("medusa")
    assert (medusa.method, medusa.max_k, medusa.parallel) == ("medusa", 3, True)
    assert medusa.stored.total == 3 * (4096**2 + 128256 * 4096)
    speculator = shape_of_config("mlp_speculator")
    assert (speculator.max_k, speculator.cache) == (4, ())
    assert speculator.stored.embedding == 4 * 128256 * 3072
    assert shape_of_config("mlp_speculator", tie_weights=True).stored.embedding == 128256 * 3072
    block = shape_of_config("dflash")
    assert (block.method, block.max_k, block.parallel) == ("dflash", 7, True)
    assert (block.stored.head, block.read.head) == (0, 128256 * 4096)  # the target's output matrix is read, not stored
    eagle = shape_of_config("eagle")
    assert eagle.stored.total / 1e9 == pytest.approx(0.25, abs=0.005)  # EAGLE's card for Llama-3.1-8B
    assert eagle.read.total - eagle.stored.total == 128256 * 4096


def test_a_plain_model_is_no_head() -> None:
    plain = target_named("Qwen/Qwen3-0.6B").facts
    with pytest.raises(SpecctlError, match="plain language model"):
        draft_shape(plain, LLAMA.facts, method="eagle3")


def test_a_folder_counts_what_it_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("head").mkdir()
    Path("head/config.json").write_text(json.dumps(DRAFTS["yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"].config))
    entries = {
        "embed_tokens.weight": {"dtype": "BF16", "shape": [1000, 4096], "data_offsets": [0, 8_192_000]},
        "d2t": {"dtype": "I64", "shape": [4], "data_offsets": [8_192_000, 8_192_032]},
    }
    header = json.dumps(entries).encode()
    Path("head/model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    found = draft_named("./head", LLAMA)
    assert found.stored_bytes == 8_192_032
    assert found.shape.stored.embedding == 128256 * 4096


def test_published_lengths_are_averaged_over_their_data_sets() -> None:
    found = draft_named("RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3", LLAMA).acceptance
    assert found.lengths[3] == pytest.approx((3.02 + 2.83 + 2.50) / 3)
    assert found.lengths[7] == pytest.approx((3.89 + 3.83 + 2.99) / 3)
    assert "HumanEval, GSM8K, CNN/DailyMail (the model card)" in found.source


@pytest.mark.parametrize("name", DRAFTS)
def test_every_known_draft_can_be_planned_beside_its_target(name: str) -> None:
    target = target_named(DRAFTS[name].target)
    found = draft_named(name.upper(), target)  # case does not count
    assert found.name == name
    assert found.shape.stored.total > 0
    assert found.shape.method == DRAFTS[name].method
    assert all(1 <= length <= k + 1 for k, length in found.acceptance.lengths.items())
    if found.k is not None and found.shape.max_k is not None:
        assert found.k <= found.shape.max_k


def test_a_draft_of_another_target_is_named() -> None:
    llama = draft_named("yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", LLAMA)
    assert other_target(llama, LLAMA) is None
    assert other_target(llama, target_named("meta-llama/Llama-3.3-70B-Instruct")) == LLAMA.name
    folder = Known(replace(LLAMA.facts, name="./copy", path=Path("/models/copy")), "")
    assert other_target(llama, folder) is None
    assert other_target(llama, Known(replace(folder.facts, config=TARGETS["Qwen/Qwen3-8B"]), "")) == LLAMA.name
    kimi = draft_named("nvidia/Kimi-K2.6-Eagle3", target_named("nvidia/Kimi-K2.6-NVFP4"))
    assert other_target(kimi, target_named("nvidia/Kimi-K2.6-NVFP4")) is None


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(MissingError, match=r"did you mean meta-llama/Llama-3.1-8B-Instruct"):
        target_named("meta-llama/Llama-3.1-8B-Instrukt")
    with pytest.raises(MissingError, match=r"did you mean RedHatAI/Qwen3-8B-speculator.eagle3"):
        draft_named("RedHat/Qwen3-8B-speculator.eagle3", LLAMA)
    with pytest.raises(MissingError, match="cannot be planned"):
        target_named("moonshotai/Kimi-K3")
    assert target_named("qwen3-8b").name == "Qwen/Qwen3-8B"

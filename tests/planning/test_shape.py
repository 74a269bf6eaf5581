"""Sizes that follow from a config.json, against published parameter counts and caches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specctl.errors import MissingError
from specctl.modelinfo import ModelFacts
from specctl.planning.known_targets import TARGETS
from specctl.planning.memory import conversation, recurrent_bytes
from specctl.planning.models import target_named
from specctl.planning.precision import kv_bits, precision_of
from specctl.planning.shape import Shape, shape_of


def shape(name: str) -> Shape:
    return shape_of(target_named(name).facts)


def facts(config: dict[str, Any]) -> ModelFacts:
    return ModelFacts("a model", Path("/"), config)


EXACT = {
    "meta-llama/Llama-3.1-8B-Instruct": 8_030_261_248,
    "meta-llama/Llama-3.3-70B-Instruct": 70_553_706_496,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen3-1.7B": 1_720_574_976,
    "Qwen/Qwen3-4B": 4_022_468_096,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "Qwen/Qwen3-14B": 14_768_307_200,
    "Qwen/Qwen3-32B": 32_762_123_264,
    "HuggingFaceTB/SmolLM2-135M": 134_515_008,
    "HuggingFaceTB/SmolLM2-360M-Instruct": 361_821_120,
    "HuggingFaceTB/SmolLM2-1.7B": 1_711_376_384,
    "mistralai/Mistral-Small-24B-Instruct-2501": 23_572_403_200,
    "google/gemma-3-1b-it": 999_885_952,
    "google/gemma-3-4b-it": 3_880_099_328,
    "google/gemma-3-12b-it": 11_765_788_416,
    "google/gemma-3-27b-it": 27_009_002_240,
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,
    "Qwen/Qwen3-235B-A22B": 235_093_634_560,
    "openai/gpt-oss-20b": 20_914_757_184,
    "openai/gpt-oss-120b": 116_829_156_672,
    "deepseek-ai/DeepSeek-V3": 671_026_419_200,
    "moonshotai/Kimi-K2-Instruct": 1_026_408_232_448,
}


@pytest.mark.parametrize("name", EXACT)
def test_parameters_to_the_last_one(name: str) -> None:
    assert shape(name).parts.total == EXACT[name]


@pytest.mark.parametrize(
    ("name", "billions", "within"),
    [
        ("XiaomiMiMo/MiMo-7B-Base", 7.62, 0.01),
        ("google/gemma-4-E2B-it", 5, 0.5),  # the card counts the encoders too
        ("google/gemma-4-E4B-it", 8, 0.6),
        ("google/gemma-4-12B-it", 12, 0.2),
        ("google/gemma-4-26B-A4B-it", 26, 1),
        ("google/gemma-4-31B-it", 31, 0.5),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 80, 0.5),
        ("Qwen/Qwen3.5-27B", 27, 0.2),
        ("Qwen/Qwen3.5-122B-A10B", 122, 0.5),
        ("Qwen/Qwen3.5-397B-A17B", 397, 1),
        ("Qwen/Qwen3.8-2.4T-A95B", 2400, 20),
        ("stepfun-ai/Step-3.5-Flash", 196, 0.5),
        ("zai-org/GLM-4.5", 358, 6),  # the card counts the prediction layer too
    ],
)
def test_parameters_of_the_card(name: str, billions: float, within: float) -> None:
    assert shape(name).parts.total / 1e9 == pytest.approx(billions, abs=within)


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("Qwen/Qwen3-30B-A3B", 3.35),
        ("Qwen/Qwen3-235B-A22B", 22.19),
        ("deepseek-ai/DeepSeek-V3", 37.6),
        ("moonshotai/Kimi-K2-Instruct", 32.9),
        ("Qwen/Qwen3.5-397B-A17B", 17.35),
    ],
)
def test_parameters_that_one_token_uses(name: str, billions: float) -> None:
    assert shape(name).active() / 1e9 == pytest.approx(billions, abs=0.06)


@pytest.mark.parametrize(
    ("name", "growing"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 65_536),
        ("meta-llama/Llama-3.3-70B-Instruct", 163_840),
        ("Qwen/Qwen3-0.6B", 57_344),
        ("Qwen/Qwen3-8B", 73_728),
        ("Qwen/Qwen3-32B", 131_072),
        ("HuggingFaceTB/SmolLM2-1.7B", 98_304),
        ("XiaomiMiMo/MiMo-7B-RL", 73_728),
        ("google/gemma-3-27b-it", 40_960),
        ("google/gemma-4-E2B-it", 3_072),
        ("google/gemma-4-E4B-it", 8_192),
        ("google/gemma-4-12B-it", 8_192),
        ("google/gemma-4-31B-it", 40_960),
        ("google/gemma-4-26B-A4B-it", 10_240),
        ("Qwen/Qwen3-235B-A22B", 96_256),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 12_288),
        ("Qwen/Qwen3.5-27B", 32_768),
        ("Qwen/Qwen3.8-2.4T-A95B", 47_104),
        ("openai/gpt-oss-20b", 12_288),
        ("openai/gpt-oss-120b", 18_432),
        ("deepseek-ai/DeepSeek-V3", 35_136),
        ("moonshotai/Kimi-K2.6", 35_136),
        ("stepfun-ai/Step-3.7-Flash", 24_576),
        ("zai-org/GLM-4.5", 188_416),
        ("zai-org/GLM-4.5-Air", 94_208),
    ],
)
def test_cached_elements_a_token(name: str, growing: int) -> None:
    assert shape(name).growing == growing


@pytest.mark.parametrize(
    ("name", "fixed"),
    [
        ("google/gemma-3-1b-it", 5_767_168),
        ("google/gemma-3-4b-it", 60_817_408),
        ("google/gemma-3-12b-it", 167_772_160),
        ("google/gemma-3-27b-it", 218_103_808),
        ("google/gemma-4-E2B-it", 3_145_728),
        ("google/gemma-4-E4B-it", 10_485_760),
        ("google/gemma-4-12B-it", 167_772_160),
        ("google/gemma-4-31B-it", 419_430_400),
        ("openai/gpt-oss-20b", 1_572_864),
        ("openai/gpt-oss-120b", 2_359_296),
        ("stepfun-ai/Step-3.5-Flash", 34_603_008),
    ],
)
def test_windows_stop_growing(name: str, fixed: int) -> None:
    found = shape(name)
    assert found.cached(100_000) - 100_000 * found.growing == fixed
    assert found.cached(100) == 100 * sum(piece.elements for piece in found.cache)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 36 * 524_288),
        ("Qwen/Qwen3.5-27B", 48 * 786_432),
        ("Qwen/Qwen3.5-35B-A3B", 30 * 524_288),
        ("Qwen/Qwen3.5-397B-A17B", 45 * 1_048_576),
        ("Qwen/Qwen3.8-2.4T-A95B", 69 * 2_097_152),
        ("Qwen/Qwen3-8B", 0),
    ],
)
def test_recurrent_state_of_a_sequence(name: str, state: int) -> None:
    assert shape(name).state == state


def test_recurrent_state_has_its_own_dtype() -> None:
    found = shape("Qwen/Qwen3.5-27B")
    assert recurrent_bytes(found) == found.state * 4 + found.conv * 2
    plain = shape("Qwen/Qwen3-Next-80B-A3B-Instruct")
    assert recurrent_bytes(plain) == (plain.state + plain.conv) * 2


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 16.06),
        ("meta-llama/Llama-3.3-70B-Instruct", 141.11),
        ("nvidia/Llama-3.3-70B-Instruct-FP8", 72.65),
        ("openai/gpt-oss-120b", 65.25),
        ("openai/gpt-oss-20b", 13.76),
        ("moonshotai/Kimi-K2.6", 594.2),  # 595 GB on disk
        ("Qwen/Qwen3.5-397B-A17B", 792.7),
        ("Qwen/Qwen3-32B", 65.52),
    ],
)
def test_size_in_the_checkpoints_own_precision(name: str, gigabytes: float) -> None:
    known = target_named(name).facts
    assert precision_of(known).size(shape_of(known).parts) / 1e9 == pytest.approx(gigabytes, abs=0.06)


def test_size_in_an_asked_precision() -> None:
    known = target_named("meta-llama/Llama-3.3-70B-Instruct").facts
    parts = shape_of(known).parts
    assert precision_of(known, quantization="fp8").size(parts) == parts.total
    assert precision_of(known, dtype="float32").size(parts) == parts.total * 4
    table = 2 * 1_050_673_152
    four = precision_of(known, quantization="nvfp4").size(parts)
    assert four == pytest.approx((parts.total - table) * 4.5 / 8 + table * 2, rel=1e-4)


def test_gpt_oss_experts_and_the_rest() -> None:
    parts = shape("openai/gpt-oss-120b").parts
    assert parts.experts == 114_661_785_600
    assert parts.total - parts.experts == 2_167_371_072


def test_mixed_groups_of_a_checkpoint() -> None:
    groups = {
        "group_0": {"targets": ["model.layers.0.self_attn.q_proj"], "weights": {"num_bits": 8, "type": "float"}},
        "group_1": {
            "targets": ["lm_head", "model.layers.0.mlp.up_proj"],
            "weights": {"num_bits": 4, "group_size": 16, "type": "float"},
        },
    }
    config = TARGETS["Qwen/Qwen3-8B"] | {"quantization_config": {"config_groups": groups, "ignore": ["mtp*"]}}
    found = precision_of(facts(config))
    assert (found.attention, found.mlp, found.head, found.embedding) == (8, 4.5, 4.5, 16)


def test_cache_of_the_checkpoints_own_scheme() -> None:
    assert kv_bits(target_named("nvidia/Kimi-K2.6-NVFP4").facts, None)[0] == 8
    assert kv_bits(target_named("nvidia/Kimi-K2.6-NVFP4").facts, "bfloat16")[0] == 16
    assert kv_bits(target_named("moonshotai/Kimi-K2.6").facts, None)[0] == 16


def test_llama_70b_8k_conversation_is_a_gibibyte_and_a_quarter() -> None:
    cache = shape("meta-llama/Llama-3.3-70B-Instruct").cache
    assert conversation(cache, 8192, 8).total == 1_342_177_280 == 1.25 * 2**30
    assert conversation(cache, 8192, 16).total == 2.5 * 2**30
    assert conversation(cache, 8000, 8).total / 2**30 == pytest.approx(1.2207, abs=1e-4)


def test_heads_are_dealt_out_and_latents_are_not() -> None:
    heads = shape("meta-llama/Llama-3.3-70B-Instruct").cache
    assert conversation(heads, 100, 16, tp=4).per_gpu == conversation(heads, 100, 16).total / 4
    assert conversation(heads, 100, 16, tp=16).per_gpu == conversation(heads, 100, 16).total / 8
    latent = shape("deepseek-ai/DeepSeek-V3").cache
    assert conversation(latent, 100, 16, tp=8).per_gpu == conversation(latent, 100, 16).total


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({}, "hidden_size"),
        ({"hidden_size": 8}, "num_hidden_layers"),
        ({"hidden_size": 8, "num_hidden_layers": 2, "vocab_size": 0}, "vocab_size"),
        (TARGETS["Qwen/Qwen3-8B"] | {"layer_types": ["mamba"] * 36}, "mamba"),
        (TARGETS["Qwen/Qwen3-8B"] | {"num_key_value_heads": [8, 4]}, r"num_key_value_heads is \[8, 4\]"),
        (TARGETS["Qwen/Qwen3-8B"] | {"head_dim": -1}, "head_dim is -1"),
        (TARGETS["Qwen/Qwen3-8B"] | {"num_hidden_layers": 10**6}, "1000000 layers"),
        (TARGETS["Qwen/Qwen3-8B"] | {"hidden_size": 2**70}, "hidden_size is"),
        (TARGETS["Qwen/Qwen3-8B"] | {"linear_attn_config": {"head_dim": 1}}, "recurrent"),
    ],
)
def test_a_config_that_says_too_little(config: dict[str, Any], word: str) -> None:
    with pytest.raises(MissingError, match=word):
        shape_of(facts(config))


def test_windows_of_older_configs() -> None:
    plain = TARGETS["mistralai/Mistral-Small-24B-Instruct-2501"]
    assert shape_of(facts(plain | {"sliding_window": 4096})).growing == 0
    assert shape_of(facts(plain | {"sliding_window": 4096, "use_sliding_window": False})).growing == 81_920

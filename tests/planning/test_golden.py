"""Worked figures that people know: a 70B model on two cards, heads, ceilings, and published speed-ups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.errors import UsageError
from specctl.planning.acceptance import from_length
from specctl.planning.drafts import given_shape
from specctl.planning.hardware import GPUS, find_gpu, gpu_named
from specctl.planning.models import KnownDrafting
from specctl.planning.plan import Plan
from specctl.planning.roofline import plain_step
from tests.planning.kit import plan

LLAMA_70B = "meta-llama/Llama-3.3-70B-Instruct"
LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
HEAD_8B = "lmsys/SGLang-EAGLE3-Llama-3.1-8B-Instruct-SpecForge"
EIGHT_BIT = {"quantization": "fp8", "kv_dtype": "fp8"}


def one_billion(method: str = "eagle3") -> KnownDrafting:
    from specctl.planning.acceptance import UNKNOWN
    from specctl.planning.models import target_named

    facts = target_named("Qwen/Qwen3-0.6B").facts
    return KnownDrafting("head", given_shape(method, 10**9, 2048, 8, 1, None), facts, "", 3, UNKNOWN)


@pytest.mark.parametrize(
    ("gpu", "conversations", "ceiling"),
    [("rtx-pro-6000", 12, 23), ("h200-nvl", 44, 68)],
)
def test_llama_70b_in_eight_bits(gpu: str, conversations: int, ceiling: int) -> None:
    found = plan(LLAMA_70B, gpu, **EIGHT_BIT)
    assert found.memory.conversations == conversations
    assert round(found.single_stream) == ceiling
    assert found.memory.conversation.total == 1.25 * 2**30
    assert found.memory.weights == 70_553_706_496


def test_a_head_of_a_billion_costs_two_conversations() -> None:
    bare = plan(LLAMA_70B, "rtx-pro-6000", **EIGHT_BIT)
    found = Plan(replace(bare.request, draft=one_billion()))
    assert found.memory.draft_weights / 2**30 == pytest.approx(1.863, abs=1e-3)
    assert (found.memory.conversations, found.memory.conversations_with_draft) == (12, 10)
    assert found.memory.draft_here / found.memory.conversation.per_gpu == pytest.approx(1.49, abs=0.005)
    assert (4 * found.memory.conversations, 4 * found.memory.conversations_with_draft) == (48, 40)


def test_a_real_head_of_the_70b_model_costs_more() -> None:
    found = plan(LLAMA_70B, "h200-nvl", "nvidia/Llama-3.3-70B-Instruct-Eagle3", **EIGHT_BIT).memory
    assert found.draft_weights / 1e9 == pytest.approx(6.48, abs=0.01)
    assert found.draft_here / found.conversation.per_gpu == pytest.approx(4.83, abs=0.01)


@pytest.mark.parametrize(("share", "conversations"), [(0.92, 17.8), (0.863, 13.4), (0.842, 11.8)])
def test_shares_of_engines_before_their_own_reserve(share: float, conversations: float) -> None:
    """vLLM's default, SGLang's automatic share, and the latter of older releases with a head."""
    found = plan(LLAMA_70B, "rtx-pro-6000", utilization=share, reserve_gib=0.0, **EIGHT_BIT).memory
    assert found.room / found.conversation.per_gpu == pytest.approx(conversations, abs=0.06)
    assert found.conversations == int(conversations)


def test_ceilings_of_other_cards() -> None:
    assert plan(LLAMA_70B, "rtx-pro-6000-workstation", **EIGHT_BIT).single_stream == pytest.approx(25.40, abs=0.01)
    assert plan(LLAMA_8B, "h100").single_stream == pytest.approx(208.6, abs=0.1)
    assert plan(LLAMA_8B, "h200").single_stream == pytest.approx(298.9, abs=0.1)


def test_a_mixture_reads_its_active_experts() -> None:
    found = plan("openai/gpt-oss-120b", "h100")
    read = found.request.gpu.bandwidth / found.single_stream
    assert read < 0.12 * found.memory.weights
    assert plan("google/gemma-4-E2B-it", "l4").single_stream > 300 / (2 * 4.63)  # per-layer embeddings are not read


def test_head_cache_beside_the_targets() -> None:
    found = plan(LLAMA_8B, "h100", HEAD_8B)
    assert found.memory.draft_conversation.total == 32 * 2**20
    assert found.memory.conversation.total == 2**30


def test_recurrent_targets_keep_a_state_for_each_drafted_token() -> None:
    name = "Qwen/Qwen3-Next-80B-A3B-Instruct"
    three, one = (plan(name, "b200", "mtp", k=k, tp=2).memory.draft_conversation.total for k in (3, 1))
    state = (36 * 524_288 + 36 * 8192 * 4) * 2
    assert three - one == 2 * state


def test_a_draft_that_is_not_split_lies_on_one_gpu() -> None:
    four = plan(LLAMA_70B, "h100", LLAMA_8B, tp=4, draft_tp=1).memory
    split = plan(LLAMA_70B, "h100", LLAMA_8B, tp=4).memory
    assert four.draft_here / 1e9 == pytest.approx(16.06, abs=0.01)
    assert split.draft_here == four.draft_here / 4
    assert four.conversations_with_draft < split.conversations_with_draft


@pytest.mark.parametrize(
    ("gpu", "measured"),
    [("h100", 158.34), ("h200", 190.0)],
)
def test_plain_decoding_of_one_stream(gpu: str, measured: float) -> None:
    found = plan(LLAMA_8B, gpu, context=1024)
    step = plain_step(found.request.gpu, found.work, 1, 1024)
    assert 1 / step == pytest.approx(measured, rel=0.10)
    assert 1 / step < found.single_stream


# SpecForge's SpecBundle on one H200: k, mean acceptance length, tokens/s.
BUNDLE = [(3, 2.90, 404.2), (5, 3.52, 446.6), (7, 3.86, 450.0), (3, 3.34, 465.2), (5, 4.32, 548.9), (7, 4.91, 571.5)]


@pytest.mark.parametrize(("k", "length", "measured"), BUNDLE)
def test_one_stream_with_a_head(k: int, length: float, measured: float) -> None:
    found = plan(LLAMA_8B, "h200", HEAD_8B, context=1024, k=k, acceptance=from_length(length, k, "measured"))
    assert found.curve[0].output_throughput == pytest.approx(measured, rel=0.08)


def test_gain_falls_with_the_load_as_published() -> None:
    """EAGLE-3's paper, table 3: SGLang on one H100, chain of three; ratios at 2 and 64 conversations."""
    levels = (2, 4, 8, 16, 24, 32, 48, 56, 64)
    found = plan(LLAMA_8B, "h100", HEAD_8B, context=768, concurrency=levels, k=3)
    gains = [1 / point.break_even for point in found.curve if point.break_even]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] / gains[0] == pytest.approx(1.38 / 1.81, abs=0.06)


def test_a_draft_stops_paying_when_arithmetic_is_full() -> None:
    levels = (1, 64, 512, 4096)
    found = plan(LLAMA_8B, "b200", HEAD_8B, context=64, concurrency=levels, acceptance=from_length(1.9, 3, "measured"))
    assert found.pays_up_to in (64, 512)
    assert found.best_k[4096] == 0
    ks = [found.best_k[level] for level in levels]
    assert ks == sorted(ks, reverse=True)


def test_a_full_memory_makes_the_rest_wait() -> None:
    found = plan(LLAMA_8B, "h100", HEAD_8B, concurrency=(500, 1000))
    assert [point.running for point in found.curve] == [found.memory.conversations_with_draft] * 2
    assert found.curve[0].output_throughput == found.curve[1].output_throughput


@pytest.mark.parametrize("level", [1, 8, 40, 200])
def test_at_the_break_even_the_draft_just_pays(level: int) -> None:
    pair = ("Qwen/Qwen3-8B", "h100", "Qwen/Qwen3-0.6B")  # 45 conversations fit without the draft, 25 with it
    at = plan(*pair, concurrency=(level,), k=7).curve[0].break_even or 0
    less, more = (
        plan(*pair, concurrency=(level,), k=7, acceptance=from_length(at * share, 7, "")).curve[0]
        for share in (0.99, 1.01)
    )
    assert (less.pays, more.pays) == (False, True)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("H100", "h100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"),
        ("mi300", "mi300x"),
        ("rtx4090", "rtx-4090"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
    ],
)
def test_names_of_gpus(written: str, name: str) -> None:
    assert gpu_named(written).name == name


def test_figures_of_gpus() -> None:
    assert find_gpu("cpu") is None
    with pytest.raises(UsageError, match="did you mean h100"):
        gpu_named("h1000")
    for gpu in GPUS.values():
        assert gpu.reported_gib <= gpu.advertised_gb
        assert gpu.eight is None or gpu.half is None or 1.9 < gpu.eight / gpu.half < 2.1
    assert GPUS["h200-nvl"].memory / 2**20 == pytest.approx(143_771, abs=2)
    assert GPUS["rtx-pro-6000"].memory / 2**20 == pytest.approx(97_887, abs=4)

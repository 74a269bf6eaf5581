"""Counters of servers: what two readings of /metrics say, and when they say nothing."""

from __future__ import annotations

from typing import Any

import pytest

from specctl.bench.metrics import acceptance
from specctl.bench.scrape import Difference, difference
from specctl.bench.stream import request_counters
from specctl.dialects.counters import read_page
from tests.bench.scripted_server import Script
from tests.bench.test_endpoint import job, run


def vllm(
    drafts: int, drafted: int, accepted: int, places: tuple[int, ...] = (), engine: str = "0", model: str = "m"
) -> str:
    labels = f'engine="{engine}",model_name="{model}"'
    lines = [
        f"vllm:spec_decode_num_drafts_total{{{labels}}} {drafts}",
        f"vllm:spec_decode_num_draft_tokens_total{{{labels}}} {drafted}",
        f"vllm:spec_decode_num_accepted_tokens_total{{{labels}}} {accepted}",
    ]
    for place, count in enumerate(places):
        lines.append(f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{{labels},position="{place}"}} {count}')
    return "\n".join(lines) + "\n"


def between(before: str, after: str, requests: int = 1) -> Difference:
    return difference(read_page(before, "m"), read_page(after, "m"), requests)


def test_the_published_example_of_vllm() -> None:
    """MT-bench, k = 7: 4816 drafts, 33712 drafted, 12208 accepted are a length of 3.535 and a rate of 0.3621."""
    found = acceptance(between(vllm(10, 70, 20), vllm(4826, 33782, 12228)).stats)
    assert (found["num_drafts"], found["num_draft_tokens"], found["num_accepted_tokens"]) == (4816, 33712, 12208)
    assert round(found["mean_acceptance_length"], 3) == 3.535
    assert round(found["acceptance_rate"], 4) == 0.3621
    assert found["num_verify_steps"] is None  # vLLM does not count steps without a draft
    assert found["mean_acceptance_length_all_steps"] is None


def test_places_are_rates_of_the_drafts() -> None:
    found = acceptance(between(vllm(0, 0, 0, (0, 0, 0)), vllm(100, 300, 150, (80, 45, 25))).stats)
    assert found["acceptance_per_position"] == [0.8, 0.45, 0.25]
    assert found["conditional_acceptance_per_position"] == [0.8, 0.5625, pytest.approx(25 / 45)]
    assert found["mean_acceptance_length"] == pytest.approx(1 + 0.8 + 0.45 + 0.25)
    assert found["acceptance_length_histogram"] is None


def test_names_without_the_suffix_are_read_too() -> None:
    assert between(vllm(1, 4, 2).replace("_total", ""), vllm(3, 12, 6).replace("_total", "")).stats.num_drafts == 2  # type: ignore[union-attr]


def test_two_engines_behind_a_port_are_added_and_said() -> None:
    before, after = vllm(1, 4, 2) + vllm(5, 20, 5, engine="1"), vllm(3, 12, 6) + vllm(6, 24, 7, engine="1")
    found = between(before, after)
    assert found.stats is not None
    assert (found.stats.num_drafts, found.stats.num_accepted_tokens) == (3, 6)
    assert found.notes == ("the counters of 2 engines behind this port are added up",)


def test_another_models_counters_are_not_ours() -> None:
    found = between(vllm(1, 4, 2) + vllm(0, 0, 0, model="other"), vllm(3, 12, 6) + vllm(90, 90, 90, model="other"))
    assert found.stats is not None
    assert found.stats.num_drafts == 2
    assert found.notes == ()


SGLANG = "sglang:spec_verify_calls_total{{}} {calls}\nsglang:generation_tokens_total{{}} {tokens}\n"


def test_sglangs_calls_and_tokens() -> None:
    """3 requests, 100 verify calls, 253 tokens: 3 came from prefill, 100 from the target, so 150 were accepted."""
    found = between(SGLANG.format(calls=7, tokens=40), SGLANG.format(calls=107, tokens=293), requests=3)
    told = acceptance(found.stats)
    assert (told["num_verify_steps"], told["num_accepted_tokens"]) == (100, 150)
    assert told["mean_acceptance_length"] == told["mean_acceptance_length_all_steps"] == 2.5
    assert told["acceptance_rate"] is None
    assert "follow from tokens and verify calls" in found.notes[0]


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("", "", "no counters about drafting"),
        ("vllm:num_requests_running 0\n", "vllm:num_requests_running 0\n", "no counters about drafting"),
        (vllm(5, 20, 9), vllm(1, 4, 2), "the server was restarted"),
        (vllm(1, 4, 2) + vllm(1, 4, 2, engine="1"), vllm(9, 40, 20), "the server was restarted"),
        (vllm(1, 1, 1), vllm(2, 2, 2) + SGLANG.format(calls=1, tokens=1), "two kinds of engine"),
        ("vllm:spec_decode_num_drafts_total 1\n", "vllm:spec_decode_num_drafts_total 2\n", "lacks accepted_tokens"),
        ("no { metrics", "no { metrics", "could not be read"),
    ],
)
def test_unknown_is_said_and_never_zero(before: str, after: str, why: str) -> None:
    found = between(before, after)
    assert found.stats is None
    assert why in found.notes[0]


def test_a_run_takes_the_difference_around_its_block() -> None:
    pages = [vllm(7, 28, 9, model="scripted"), vllm(7, 28, 9, model="scripted"), vllm(17, 68, 39, model="scripted")]
    block = run(Script(pages=pages, sends_ids=True), job())
    assert block.stats is not None
    assert (block.stats.num_drafts, block.stats.num_draft_tokens, block.stats.num_accepted_tokens) == (10, 40, 30)


def test_tokens_made_for_others_are_noticed() -> None:
    tokens = 'vllm:generation_tokens_total{{model_name="scripted",engine="0"}} {}\n'
    pages = [vllm(0, 0, 0, model="scripted") + tokens.format(count) for count in (0, 0, 500)]
    assert any("for others" in note for note in run(Script(pages=pages), job()).notes)


VLLM_REQUEST = {"acceptance_histogram": [39, 1, 0, 3], "num_draft_tokens": 129, "num_spec_steps": 43}


@pytest.mark.parametrize(
    "event",
    [
        {"metrics": {"speculative_decoding": VLLM_REQUEST}},
        {"choices": [{"speculative_decoding": VLLM_REQUEST | {"acceptance_histogram": {"0": 39, "1": 1, "3": 3}}}]},
        {
            "sglext": {
                "spec_tokens_details": {
                    "spec_correct_drafts_histogram": [39, 1, 0, 3],
                    "spec_verify_ct": 43,
                    "spec_num_proposed_drafts": 129,
                }
            }
        },
    ],
)
def test_a_requests_own_counters(event: dict[str, Any]) -> None:
    """vLLM's example: 10 of 129 accepted in 43 steps are a length of 1.2326 and a rate of 0.0775."""
    stats = request_counters(event)
    assert stats is not None
    assert round(stats.mean_acceptance_length or 0, 4) == 1.2326
    assert round(stats.acceptance_rate or 0, 4) == 0.0775
    assert stats.accepted_per_position == [4, 3, 3]


@pytest.mark.parametrize("event", [{}, {"metrics": None}, {"metrics": {"speculative_decoding": {}}}, {"choices": []}])
def test_no_counters_of_a_request(event: dict[str, Any]) -> None:
    assert request_counters(event) is None

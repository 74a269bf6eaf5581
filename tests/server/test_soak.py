"""The soak of `benchmarks.serve_soak` for half a minute: no answer lost or mixed up, nothing left behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.serve_soak import Growth, growth, verdict
from benchmarks.soak_load import Tally, soak
from specctl.runtime import EngineOptions, load_target, make_engine, set_threads
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import Ngram
from tests.runtime.kit import build
from tests.server.live import live

# The clients wait between their calls: half a minute on the wall, less of the processor.
CLIENTS, SECONDS, PAUSE_S = 40, 30.0, 1.5
PROMPTS = ["abcabcabc", "hello", "x", "one two one two", "naïve", "010101", "qqqqqqqq", "the end of it"]
MIB = 2**20


def test_clients_of_all_kinds(tmp_path_factory: pytest.TempPathFactory) -> None:
    set_threads(1)
    folder: Path = build("llama", tmp_path_factory.mktemp("target"))
    # float64: what shares a batch never changes an answer
    target = load_target(str(folder), device="cpu", dtype="float64")
    options = EngineOptions(8, max_num_batched_tokens=64, prefix_caching=True, kv_cache_tokens=400)
    engine = make_engine(target, SpecDecodeConfig(Ngram(prompt_lookup_min=1, prompt_lookup_max=3), 3), options)
    with live(engine, target, max_model_len=96, max_num_seqs=8, max_queue=16) as server:
        tally = asyncio.run(soak(server.url, PROMPTS, CLIENTS, SECONDS, pause_s=PAUSE_S))
        assert tally.wrong == []
        assert min(tally.counts[kind] for kind in ("answered", "hung up", "bad bodies")) > 0
        for _ in range(100):
            if not server.bridge.inside and not engine.has_work():
                break
            asyncio.run(asyncio.sleep(0.05))
        assert (server.bridge.inside, engine.num_running, engine.num_waiting, engine.kv_usage) == (0, 0, 0, 0)
        assert all(not key.startswith("specctl:requests_refused_total[status=5") for key in server.counters())


def run_of(early_mib: float, late_mib: float, seconds: float) -> Growth | None:
    """What is said of a server that has `early_mib` in minute 4, more before, and `late_mib` in the last minute."""
    sizes = [900.0 if at < 180 else early_mib if at < 240 else late_mib for at in range(0, int(seconds), 2)]
    return growth([(2.0 * place, size * MIB) for place, size in enumerate(sizes)], seconds)


@pytest.mark.parametrize(
    ("early", "late", "too_much"),
    [
        (400, 432, False),  # 32 MiB are always allowed
        (400, 433, True),
        (2000, 2060, False),  # 3 % where that is more
        (2000, 2061, True),
        (900, 400, False),
    ],
)
def test_growth_of_memory(early: float, late: float, too_much: bool) -> None:
    found = run_of(early, late, 600)
    assert found is not None
    lines, well = verdict(Tally(), [], found)
    assert (found.is_too_much, well) == (too_much, not too_much)
    assert lines[-1].endswith("FAIL" if too_much else "pass")
    assert f"median {early} MiB in minute 4, {late} MiB in the last" in lines[-2]
    assert run_of(early, late, 240) is None


def test_what_goes_wrong_fails_the_soak() -> None:
    tally = Tally()
    tally.note("lost", "ReadTimeout")
    tally.note("mixed up", "'a': 'b', expected 'c'")
    lines, well = verdict(tally, [], None)
    assert well is False
    assert lines[-4] == "answers      1 lost, 1 mixed up, 0 of status 5xx, 0 of another status than due"
    lines, well = verdict(Tally(), ["vllm:kv_cache_usage_perc is 0.1"], None)
    assert well is False
    assert lines[-3] == "left behind  vllm:kv_cache_usage_perc is 0.1"

"""The soak of `benchmarks.serve_soak` in short: no answer lost or mixed up, nothing left behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.soak_load import soak
from specctl.runtime import EngineOptions, load_target, make_engine, set_threads
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import Ngram
from tests.runtime.kit import build
from tests.server.live import live

CLIENTS, SECONDS = 40, 6.0
PROMPTS = ["abcabcabc", "hello", "x", "one two one two", "naïve", "010101", "qqqqqqqq", "the end of it"]


def test_clients_of_all_kinds(tmp_path_factory: pytest.TempPathFactory) -> None:
    set_threads(1)
    folder: Path = build("llama", tmp_path_factory.mktemp("target"))
    # float64: what shares a batch never changes an answer
    target = load_target(str(folder), device="cpu", dtype="float64")
    options = EngineOptions(8, max_num_batched_tokens=64, prefix_caching=True, kv_cache_tokens=400)
    engine = make_engine(target, SpecDecodeConfig(Ngram(prompt_lookup_min=1, prompt_lookup_max=3), 3), options)
    with live(engine, target, max_model_len=96, max_num_seqs=8, max_queue=16) as server:
        tally = asyncio.run(soak(server.url, PROMPTS, CLIENTS, SECONDS))
        assert tally.wrong == []
        assert min(tally.counts[kind] for kind in ("answered", "hung up", "bad bodies")) > 0
        for _ in range(100):
            if not server.bridge.inside and not engine.has_work():
                break
            asyncio.run(asyncio.sleep(0.05))
        assert (server.bridge.inside, engine.num_running, engine.num_waiting, engine.kv_usage) == (0, 0, 0, 0)
        assert all(not key.startswith("specctl:requests_refused_total[status=5") for key in server.counters())

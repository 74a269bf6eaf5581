"""The engines' own verdicts against ours.

Each row of `<engine>.jsonl` is a setting that vLLM 0.31.0, SGLang 0.5.22 or TensorRT-LLM took or refused, with what
it ended up with. Verdicts must agree in 99 % per engine, effective values in 98 %; what still differs is listed here
with its reason."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from specctl.rules.checker import check

HERE = Path(__file__).parent
ENGINES = ("vllm", "sglang", "trtllm")

# Rows whose verdict differs on purpose.
DIFFERS = {
    "sglang:no-model": "bare flags are a setting to us; only a whole command line must name its model",
}
# Rows that the engine's validation takes and a worker then refuses, which the recording did not go as far as to see.
LATER = {
    "vllm:ngram-logitsproc": "n-gram runs on the first runner, whose worker refuses custom logits processors",
}
# Our name of each recorded value. The first group must agree; what is recorded beside it is not compared.
VALUES: dict[str, dict[str, str | None]] = {
    "vllm": {
        "method": "method",
        "num_speculative_tokens": "num_speculative_tokens",
        "prompt_lookup_min": "prompt_lookup_min",
        "prompt_lookup_max": "prompt_lookup_max",
        "draft_tensor_parallel_size": "draft_tensor_parallel_size",
        "num_speculative_tokens_per_batch_size": "num_speculative_tokens_per_batch_size",
        "k_from_batch_size": "k_from_batch_size",
        "parallel_drafting": "parallel_drafting",
        "extra_slots_per_request": "extra_slots_per_request",
        "lookahead_tokens": "lookahead_tokens",
        "model": "model",
        "synthetic_acceptance_rates": "synthetic_acceptance_rates",
    },
    "sglang": {
        "speculative_algorithm": "speculative_algorithm",
        "num_steps": "speculative_num_steps",
        "eagle_topk": "speculative_eagle_topk",
        "num_draft_tokens": "speculative_num_draft_tokens",
        "max_running_requests": "max_running_requests",
        "draft_model_path": "speculative_draft_model_path",
        "draft_model_revision": "speculative_draft_model_revision",
        "attention_backend": "attention_backend",
        "page_size": "page_size",
        "disable_overlap_schedule": "disable_overlap_schedule",
        "adaptive": "speculative_adaptive",
        "enable_multi_layer_eagle": "enable_multi_layer_eagle",
    },
    "trtllm": dict.fromkeys(("decoding_type", "max_draft_len", "max_total_draft_tokens", "max_matching_ngram_size"))
    | dict.fromkeys(("draft_len_schedule", "max_concurrency", "num_nextn_predict_layers", "max_batch_size", "becomes"))
    | dict.fromkeys(("disable_overlap_scheduler", "speculative_model")),
}


def rows(engine: str) -> list[dict[str, Any]]:
    """The rows about settings; a few recorded ones are about a request's sampling options instead."""
    text = (HERE / f"{engine}.jsonl").read_text(encoding="utf-8")
    return [row for row in map(json.loads, text.splitlines()) if "request" not in row]


def lay(folder: Path, row: dict[str, Any], configs: dict[str, Any]) -> None:
    """Write the model folders and files that a row refers to."""
    for name in row.get("models", ()):
        model = folder / "models" / name
        model.mkdir(parents=True, exist_ok=True)
        (model / "config.json").write_text(json.dumps(configs[name]))
    for name, text in (row.get("files") or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def judge(engine: str, row: dict[str, Any]) -> Any:
    source = json.dumps(row["input"]) if row["form"] == "json" else row["input"]
    target = row.get("target")
    return check(
        source,
        engine=engine,
        release=row["release"],
        form=row["form"],
        target=f"models/{target}" if target else None,
        platform=row.get("platform"),
        engine_args=row.get("engine_args"),
        env=row.get("env"),
        host=(row.get("host") or {})
        | {k: v for k, v in (row.get("engine_args") or {}).items() if k == "gpu_runner_available"},
    )


def plain(value: Any) -> Any:
    return {str(key): plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("engine", ENGINES)
def test_agreement(engine: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = json.loads((HERE / f"{engine}_models.json").read_text())["models"]
    wrong: list[str] = []
    stages: list[str] = []
    same, other = Counter[str](), Counter[str]()
    for number, row in enumerate(rows(engine)):
        folder = tmp_path_factory.mktemp(f"{engine}{number}")
        lay(folder, row, configs)
        monkeypatch.chdir(folder)
        report = judge(engine, row)
        if (report.verdict != "refuses") != row["accepted"]:
            said = [(each.code, each.message) for each in report.diagnostics]
            wrong.append(
                f"{row['id']}: {report.verdict}, wanted accepted={row['accepted']} ({row.get('reason')}); {said}"
            )
            continue
        late = bool(row.get("fails_at_start")) or f"{engine}:{row['id']}" in LATER
        if row["accepted"] and (report.verdict == "fails-at-start") != late:
            stages.append(f"{row['id']}: {report.verdict}")
        for recorded, ours in VALUES[engine].items():
            if recorded in (row.get("resolved") or {}):
                got, want = report.effective.get(ours or recorded), row["resolved"][recorded]
                got = bool(got) if isinstance(want, bool) else got
                (same if plain(got) == plain(want) else other)[recorded] += 1
    unexpected = [line for line in wrong if f"{engine}:{line.split(':', 1)[0]}" not in DIFFERS]
    assert not unexpected, "\n".join(unexpected)
    assert not stages, "\n".join(stages)
    assert sum(same.values()) >= 0.98 * (sum(same.values()) + sum(other.values())), dict(other)
    assert not other, dict(other)

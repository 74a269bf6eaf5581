"""Settings that nobody recorded: what the engines' own rules say of them, one line of `beyond.jsonl` each.

Written by hand from the rules of vLLM 0.31.0, SGLang 0.5.22 and TensorRT-LLM 1.2.1 and 1.4.0rc0, sentence by
sentence: types and coercions, ranges, what stands beside what, models, surroundings, carriers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specctl.rules.checker import check

HERE = Path(__file__).parent
ROWS: list[dict[str, Any]] = [json.loads(line) for line in (HERE / "beyond.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, config in json.loads((HERE / "beyond_models.json").read_text("utf-8")).items():
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_verdicts_and_effective_values(engine: str, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(models)
    wrong = []
    for row in (each for each in ROWS if each["engine"] == engine):
        for name, text in row.get("files", {}).items():
            Path(name).write_text(text)
        options = {key: row[key] for key in row.keys() - {"input", "verdict", "effective", "files"}}
        report = check(row["input"], **options)
        found = {key: report.effective.get(key) for key in row.get("effective", {})}
        if report.verdict != row["verdict"] or found != row.get("effective", {}):
            said = [(each.code, each.message) for each in report.diagnostics]
            wrong.append(f"{row}: {report.verdict} {found} {said}")
    assert not wrong, "\n".join(wrong)


def test_there_are_many() -> None:
    assert len(ROWS) > 400
    assert {row["verdict"] for row in ROWS} == {"accepts", "refuses", "fails-at-start"}

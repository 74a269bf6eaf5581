"""Writes the conversations of the demo in `specctl/bundled/calibration.jsonl` anew; those in plain English stay.

    python -m train.calibration

The questions are the shortest of the bundled prompts of each category, the answers what the demo says to them: the
check of a draft at load reads both (`specctl.runtime.probing.lesson`).
"""

from __future__ import annotations

import json

from specctl.bench.workloads import choose, read_workload, tokens_of
from specctl.resources import bundled_dir
from specctl.runtime import EngineOptions, Request, SamplingParams, load_target, make_engine
from specctl.runtime.probing.lesson import ANSWER

FILE = bundled_dir() / "calibration.jsonl"
CONVERSATIONS = 12
MAX_PROMPT = 32


def demo_rows() -> list[dict[str, object]]:
    """Short questions, every category in turn, and the demo's own answers."""
    target = load_target("demo", device="cpu", dtype="float32")
    work = choose(read_workload(), None, len(read_workload().prompts))
    short = [prompt for prompt in work.prompts if len(tokens_of(prompt, target)) <= MAX_PROMPT]
    by_category: dict[str, list[object]] = {}
    for prompt in short:
        by_category.setdefault(prompt.category, []).append(prompt)
    turns = [group[turn] for turn in range(len(short)) for group in by_category.values() if turn < len(group)]
    chosen = turns[:CONVERSATIONS]
    engine = make_engine(target, None, EngineOptions())
    for number, prompt in enumerate(chosen):
        sampling = SamplingParams(temperature=0, max_tokens=ANSWER, ignore_eos=True)
        engine.add(Request(str(number), tokens_of(prompt, target), sampling))
    said: dict[str, list[int]] = {}
    while engine.has_work():
        for emission in engine.step():
            said.setdefault(emission.request_id, []).extend(emission.token_ids)
    rows: list[dict[str, object]] = []
    for number, prompt in enumerate(chosen):
        answer = target.decode(said[str(number)])
        rows.append({"set": "demo", "messages": [*prompt.messages, {"role": "assistant", "content": answer}]})
    return rows


def main() -> None:
    """Keep the other rows, replace the demo's."""
    old = FILE.read_text("utf-8").splitlines() if FILE.is_file() else []
    others = [line for line in old if json.loads(line)["set"] != "demo"]
    lines = [*(json.dumps(row, ensure_ascii=False) for row in demo_rows()), *others]
    FILE.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()

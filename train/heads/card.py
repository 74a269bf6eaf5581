"""The card of a head; every figure in it is read from training.json, evaluation.json and the files themselves."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from specctl.bench.workloads import DEMO_SET, SETS

Figures = dict[str, Any]

WHAT = {
    "eagle": "An EAGLE-1 head (SafeAILab's layout; EAGLE-2 drafts trees from the same files)",
    "eagle3": "An EAGLE-3 head (SafeAILab's layout, reduced draft vocabulary)",
    "mtp": "A multi-token-prediction layer (MiMo's layout) in a folder of its own",
    "medusa": "Five Medusa heads (vLLM's layout, with biases)",
    "mlp_speculator": "An MLP speculator (IBM's layout, tied)",
    "pard": "A PARD draft: two layers begun as `demo-draft`, which fill masks",
    "dflash": "A DFlash draft (z-lab's layout), which fills blocks of masks",
}

HEAD = """---
license: apache-2.0
language: en
---
# {name}

{what}, for `{target}`.
It is of use with that target alone, whose embedding it borrows unless it has its own.

    specctl bench {target} --methods {method} --draft {method}={name}

## Training

`{target}` answered {answers} prompts {source}, greedily: {recording} tokens with their prompts, {answer_tokens} of them
answers.{shared}

Loss: cross-entropy with the target's own distribution on answer tokens{loss}.

{parameters} parameters, {steps} steps, {seen} tokens seen, {seconds:.0f} s on {threads} thread of {machine}, shared
with other work; seed {seed}. AdamW, bfloat16 products over float32 weights, averaged weights; published in float16.

    {command}
"""

CORPUS = "that `train/corpus` generates (seed 43001), none of which shares a run of 12 tokens with a bench prompt"
SHARED = "All heads of `{target}` learn from these same tokens, in the same order and as often."
LOSSES = dict.fromkeys(("eagle", "eagle3", "mtp"), ", and the distance to its next final state")


def write_card(folder: Path, recording: Figures, command: str, *, shared: bool = False) -> None:
    """README.md of one head. `shared`: other heads of its target are trained from the same recording."""
    facts = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    found = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    method = facts["method"]
    head = HEAD.format(
        name=folder.name,
        what=WHAT[method],
        target=facts["target"],
        method=method,
        answers=recording["answers"],
        recording=recording["tokens"],
        answer_tokens=recording["answer_tokens"],
        loss=LOSSES.get(method, ""),
        parameters=facts["parameters"],
        steps=facts["steps"],
        seen=facts["tokens_seen"],
        source=recording.get("prompts", CORPUS),
        shared="\n\n" + SHARED.format(target=facts["target"]) if shared else "",
        seconds=facts["seconds"],
        threads=facts["threads"],
        machine=facts["machine"],
        seed=facts["seed"],
        command=command,
    )
    parts = [head, _acceptance(found), _files(folder)]
    (folder / "README.md").write_text("\n\n".join(part.strip() for part in parts) + "\n", encoding="utf-8")


def _acceptance(found: Figures) -> str:
    rows = [["category", "mean acceptance length", "drafts"]]
    for name, row in found["by_category"].items():
        rows.append([name, _number(row["mean_acceptance_length"]), str(row["num_drafts"])])
    rows.append(["all", _number(found["mean_acceptance_length"]), str(found["num_drafts"])])
    places = ", ".join(_number(value) for value in found["conditional_acceptance_per_position"])
    same = f"{found['outputs_identical_to_plain']} of {found['prompts']} outputs are plain decoding's token for token"
    return (
        "## Acceptance on the bench prompts\n\n"
        f"{_set(found)}Greedy, {found['dtype']}, k = {found['k']}, {found['prompts']} prompts, at most "
        f"{found['max_tokens']} new tokens; {same}.\n\n{_table(rows)}\n\n"
        f"Accepted at each place, of the drafts that got there: {places}."
    )


def _set(found: Figures) -> str:
    of = found.get("prompt_set", DEMO_SET)
    return "" if of == DEMO_SET else f"Of `{SETS[of]}`. "


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _files(folder: Path) -> str:
    rows = [["file", "bytes", "sha256"]]
    for name in ("model.safetensors", "config.json"):
        content = (folder / name).read_bytes()
        rows.append([name, str(len(content)), f"`{hashlib.sha256(content).hexdigest()}`"])
    return "## Files\n\n" + _table(rows)


def _table(rows: list[list[str]]) -> str:
    head, *body = [" | ".join(row) for row in rows]
    rule = " | ".join("---" for _ in rows[0])
    return "\n".join(f"| {line} |" for line in [head, rule, *body])

"""The shape of a saved report: what each has, what an older or shorter one may lack, and of which kind each part is.

A report that came back from a file is what somebody's editor or another release left of it. It is filled up with "not
measured" and then checked, so that whatever reads it further on can rely on it.
"""

from __future__ import annotations

from typing import Any

Report = dict[str, Any]
Schema = dict[str, Any]

TIMES = ("ttft_ms", "tpot_ms", "e2e_ms", "chunk_gap_ms")
COUNTS = ("requests", "failed")
FIGURES = (
    *("k", "concurrency", "request_rate", "num_verify_steps", "num_drafts", "num_draft_tokens", "num_accepted_tokens"),
    *("acceptance_rate", "mean_acceptance_length", "mean_acceptance_length_all_steps", "input_tokens"),
    *("cached_input_tokens", "output_tokens", "output_throughput", "total_throughput", "duration_s"),
    *("draft_time_share", "verify_time_share", "request_goodput", "goodput_share", "kv_cache_bytes"),
    *("draft_weight_bytes", "draft_kv_cache_bytes"),
)
LISTS = ("acceptance_per_position", "conditional_acceptance_per_position", "acceptance_length_histogram")
GROUPS = ("by_category", "by_context", "by_turn")
ASKED = (
    *("requests", "repeats", "repeats_measured", "temperature", "uses_of_a_prompt", "request_rate", "burstiness"),
    *("ended_by_eos_share", "precision"),
)
COMPARED = (
    *("k", "concurrency", "pairs", "tpot_speedup", "throughput_ratio", "confidence", "break_even_acceptance_length"),
    *("cost_per_accepted_token_ms", "baseline_tpot_ms", "outputs_checked", "bound", "share_of_bound", "draft_cost"),
    "verify_cost",
)

INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": ["number", "null"]}
WORD: Schema = {"type": ["string", "null"]}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": ["boolean", "null"]}
WORDS: Schema = {"type": "array", "items": TEXT}
INTERVAL: Schema = {"type": ["array", "null"], "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
NUMBERS: Schema = {"type": ["array", "null"], "items": NUMBER}


def _object(parts: dict[str, Schema], required: tuple[str, ...] | None = None) -> Schema:
    return {"type": "object", "properties": parts, "required": list(parts if required is None else required)}


def _each(kind: Schema) -> Schema:
    return {"type": "object", "additionalProperties": kind}


SUMMARY = _object(dict.fromkeys(("mean", "median", "p99"), NUMBER))
GROUP = _object({"mean_acceptance_length": NUMBER, "tpot_ms": SUMMARY, "ttft_ms": SUMMARY}, ("mean_acceptance_length",))
RUN = _object(
    {"name": TEXT, "spec": {"type": ["object", "null"]}, "lossless": FLAG}
    | dict.fromkeys(COUNTS, INTEGER)
    | dict.fromkeys(FIGURES, NUMBER)
    | dict.fromkeys(LISTS, NUMBERS)
    | dict.fromkeys(TIMES, SUMMARY)
    | dict.fromkeys(GROUPS, _each(GROUP))
    | dict.fromkeys(("tpot_ms_ci", "output_throughput_ci"), INTERVAL)
    | {
        "std_ms": _object(dict.fromkeys(("ttft", "tpot", "e2e", "chunk_gap"), NUMBER)),
        "alarm": {"type": ["object", "null"], "properties": {"text": TEXT}, "required": ["text"]},
    }
)
WHERE = _object({"request": INTEGER, "token": INTEGER, "margin": NUMBER})
ROW = _object(
    {"baseline": TEXT, "candidate": TEXT, "outputs": TEXT, "decision": WORD, "keep": FLAG, "tpot_speedup_ci": INTERVAL}
    | dict.fromkeys(COMPARED, NUMBER)
    | dict.fromkeys(GROUPS, _each(_object({"tpot_speedup": NUMBER})))
    | {"differences": _each(INTEGER), "first_divergence": WHERE | {"type": ["object", "null"]}}
)
LEVEL = _object(
    {"candidate": TEXT, "decision": WORD, "tpot_speedup_ci": INTERVAL}
    | dict.fromkeys(("k", "concurrency", "tpot_speedup"), NUMBER)
)
SETTING = _object({"text": WORD, "release": WORD, "notes": WORDS})
SERVER = _object({"run": TEXT, "url": TEXT, "model": WORD})
SCHEMA = _object(
    {
        "environment": {"type": "object", "properties": {"servers": {"type": "array", "items": SERVER}}},
        "workload": _object(
            {"target": WORD, "prompts": _each(INTEGER), "request_ids": WORDS, "output_len": NUMBER}
            | dict.fromkeys(ASKED, NUMBER)
        ),
        "runs": {"type": "array", "items": RUN},
        "comparison": {"type": "array", "items": ROW},
        "verdict": _object(
            {"text": TEXT, "keep_up_to_concurrency": NUMBER, "by_concurrency": {"type": "array", "items": LEVEL}}
            | {"settings": {"type": ["object", "null"], "additionalProperties": SETTING}}
        ),
        "failures": {"type": "array", "items": _object({"request": TEXT, "error": WORD})},
        "notes": WORDS,
    }
)


def filled(report: Report) -> Report:
    """The report with what it may lack as not measured. Parts of another kind than a report's stay as they are."""
    runs, rows = report["runs"], report["comparison"]
    whole: Report = {"failures": [], "notes": []} | report
    whole["runs"] = [_RUN | each if isinstance(each, dict) else each for each in runs]
    whole["comparison"] = [_ROW | each if isinstance(each, dict) else each for each in rows]
    whole["workload"] = _WORK | _requests(report["workload"]) | report["workload"]
    whole["verdict"] = {"by_concurrency": [], "settings": None} | report["verdict"]
    return whole


def _requests(work: dict[str, Any]) -> dict[str, Any]:
    """Before conversations were asked whole, a prompt was a request."""
    counts = work.get("prompts")
    known = isinstance(counts, dict) and all(isinstance(count, int) for count in counts.values())
    return {"requests": sum(counts.values())} if known and isinstance(counts, dict) else {}


_NO_TIMES = {"mean": None, "median": None, "p99": None}
_RUN: dict[str, Any] = (
    dict.fromkeys((*FIGURES, *LISTS, "spec", "lossless", "tpot_ms_ci", "output_throughput_ci", "alarm"))
    | dict.fromkeys(TIMES, _NO_TIMES)
    | {name: {} for name in GROUPS}
    | dict.fromkeys(COUNTS, 0)
    | {"std_ms": dict.fromkeys(("ttft", "tpot", "e2e", "chunk_gap"))}
)
_ROW: dict[str, Any] = (
    dict.fromkeys((*COMPARED, "decision", "keep", "tpot_speedup_ci", "first_divergence"))
    | {name: {} for name in GROUPS}
    | {"baseline": "baseline", "outputs": "not-checked", "differences": {}}
)
_WORK: dict[str, Any] = dict.fromkeys(("target", "output_len", *ASKED)) | {"prompts": {}, "request_ids": []}


def problem(report: Report) -> str | None:
    """What of a filled report is of another kind than it must be; None where all is well."""
    from jsonschema import Draft202012Validator

    errors = sorted(Draft202012Validator(SCHEMA).iter_errors(report), key=lambda error: list(map(str, error.path)))
    if errors:
        route = ".".join(map(str, errors[0].absolute_path))
        return f"{route}: {errors[0].message[:120]}" if route else errors[0].message[:120]
    known = {(run["name"], run["k"]) for run in report["runs"]}
    for row in report["comparison"]:
        if (row["candidate"], row["k"]) not in known:
            return f"{row['candidate']} is compared, and no run is called so"
        where = row["first_divergence"]
        if where is not None and not 0 <= where["request"] < len(report["workload"]["request_ids"]):
            return f"comparison of {row['candidate']}: first_divergence names no request of the workload"
    return None

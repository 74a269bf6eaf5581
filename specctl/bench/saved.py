"""Reports that were saved: read again, checked for their shape, and asked whether two may be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specctl.bench.results import FORMAT_VERSION, Report
from specctl.errors import DamagedError, MissingError, SpecctlError

# What makes figures of two runs comparable at all: the prompts and how tokens were picked.
SAME_WORK = (
    "prompts",
    "requests",
    "output_len",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "request_rate",
    "random_tokens",
)
SAME_PLACE = ("engine", "release", "device", "dtype", "threads")
RUN_KEYS = {"name", "k", "concurrency", "tpot_ms", "output_throughput", "mean_acceptance_length"}


def load_report(file: str) -> Report:
    """A report of `--output-json`. Raises `MissingError`, `DamagedError`, `SpecctlError` for another kind of file."""
    try:
        found = json.loads(Path(file).read_text("utf-8"))
    except UnicodeDecodeError:
        raise DamagedError(f"{file} is not UTF-8 text") from None
    except OSError as error:
        raise MissingError(f"cannot read {file}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{file} is no JSON: {error}") from None
    problem = _problem(found)
    if problem is not None:
        raise SpecctlError(f"{file} is no report of specctl bench: {problem}", help="give a file of --output-json")
    return _filled(found)


def _problem(found: Any) -> str | None:
    if not isinstance(found, dict):
        return "it holds no object"
    if found.get("format_version") != FORMAT_VERSION:
        return f"format_version is {found.get('format_version')!r}; {FORMAT_VERSION} is wanted"
    kinds = {"environment": dict, "workload": dict, "runs": list, "comparison": list, "verdict": dict}
    for name, kind in kinds.items():
        if not isinstance(found.get(name), kind):
            return f"{name} is missing or of another kind"
    for run in found["runs"]:
        if not isinstance(run, dict) or not run.keys() >= RUN_KEYS:
            return f"a run lacks {', '.join(sorted(RUN_KEYS - set(run if isinstance(run, dict) else ())))}"
    return None


def _filled(report: Report) -> Report:
    """With what an older release did not write, as not measured."""
    runs = [_RUN_EXTRAS | run for run in report["runs"]]
    rows = [_ROW_EXTRAS | row for row in report["comparison"]]
    work = report["workload"]
    # Before conversations were asked whole, a prompt was a request.
    counts = work.get("prompts")
    known = {"requests": sum(counts.values())} if isinstance(counts, dict) else {}
    return {"failures": [], "notes": []} | report | {"runs": runs, "comparison": rows, "workload": known | work}


_RUN_EXTRAS: dict[str, Any] = {
    "by_context": {},
    "by_category": {},
    "by_turn": {},
    "cached_input_tokens": None,
    "chunk_gap_ms": {"mean": None, "median": None, "p99": None},
    "std_ms": {"ttft": None, "tpot": None, "e2e": None, "chunk_gap": None},
    "input_tokens": None,
    "tpot_ms_ci": None,
    "output_throughput_ci": None,
    "request_rate": None,
    "request_goodput": None,
    "goodput_share": None,
    "draft_time_share": None,
    "verify_time_share": None,
    "kv_cache_bytes": None,
    "draft_weight_bytes": None,
    "draft_kv_cache_bytes": None,
}
_ROW_EXTRAS: dict[str, Any] = {
    "decision": None,
    "by_context": {},
    "by_turn": {},
    "differences": {},
    "cost_per_accepted_token_ms": None,
    "baseline_tpot_ms": None,
}


def unlike(one: Report, other: Report, names: tuple[str, ...] = SAME_WORK) -> list[str]:
    """What differs between the workloads of two reports; figures of such runs are not compared."""
    return [name for name in names if one["workload"].get(name) != other["workload"].get(name)]


def other_place(one: Report, other: Report) -> list[str]:
    """What differs between the places where two reports were measured: `threads 1 and 2`."""
    left, right = one["environment"], other["environment"]
    return [
        f"{name} {left.get(name)} and {right.get(name)}" for name in SAME_PLACE if left.get(name) != right.get(name)
    ]

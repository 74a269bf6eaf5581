"""Reports that were saved: read again, checked for their shape, and asked whether two may be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specctl.bench.results import FORMAT_VERSION, Report
from specctl.bench.shape import filled, problem
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
        found = json.loads(Path(file).read_text("utf-8"), parse_constant=_no_number)
    except UnicodeDecodeError:
        raise DamagedError(f"{file} is not UTF-8 text") from None
    except OSError as error:
        raise MissingError(f"cannot read {file}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{file} is no JSON: {error}") from None
    wrong = _other_kind(found)
    if wrong is None:
        found = filled(found)
        wrong = problem(found)
    if wrong is not None:
        raise SpecctlError(f"{file} is no report of specctl bench: {wrong}", help="give a file of --output-json")
    report: Report = found
    return report


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _other_kind(found: Any) -> str | None:
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


def unlike(one: Report, other: Report, names: tuple[str, ...] = SAME_WORK) -> list[str]:
    """What differs between the workloads of two reports; figures of such runs are not compared."""
    return [name for name in names if one["workload"].get(name) != other["workload"].get(name)]


def other_place(one: Report, other: Report) -> list[str]:
    """What differs between the places where two reports were measured: `threads 1 and 2`."""
    left, right = one["environment"], other["environment"]
    return [
        f"{name} {left.get(name)} and {right.get(name)}" for name in SAME_PLACE if left.get(name) != right.get(name)
    ]

"""A report as text for machines and pull requests: JSON, `vllm bench serve`'s keys, CSV, Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from specctl.bench.results import Report, without_details
from specctl.bench.verdict import label
from specctl.errors import UsageError

FORMATS = ("text", "json", "markdown", "csv", "vllm")


def check_format(name: str) -> None:
    """Raise `UsageError` for a format that there is not."""
    if name not in FORMATS:
        raise UsageError(f"--format is {name!r}; it must be one of {', '.join(FORMATS)}")


def as_text(report: Report, format: str, detailed: bool = False) -> str:
    """The report in one of the formats; `detailed`: JSON with the lists of each request."""
    from specctl.bench.report import plain

    makers: dict[str, Callable[[], str]] = {
        "text": lambda: plain(report),
        "json": lambda: as_json(report if detailed else without_details(report)),
        "markdown": lambda: as_markdown(report),
        "csv": lambda: as_csv(report),
        "vllm": lambda: as_vllm(report),
    }
    return makers[format]()


def as_json(report: Report) -> str:
    """The law's shape."""
    return json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


_TIMES = ("ttft", "tpot", "chunk_gap", "e2e")
_CSV = (
    *("name", "k", "concurrency", "request_rate", "requests", "failed", "num_verify_steps", "num_drafts"),
    *("num_draft_tokens", "num_accepted_tokens", "acceptance_rate", "mean_acceptance_length"),
    *("mean_acceptance_length_all_steps", "output_tokens", "output_throughput", "total_throughput"),
    *("request_goodput", "duration_s"),
)
_CSV_AGAINST = (
    *("tpot_speedup", "throughput_ratio", "break_even_acceptance_length", "cost_per_accepted_token_ms"),
    *("outputs", "decision"),
)


def as_csv(report: Report) -> str:
    """One row a run: its figures, the means, medians and p99 of its times, and how it compares. Empty: not measured."""
    out = io.StringIO()
    times = [f"{part}_{name}_ms" for name in _TIMES for part in ("mean", "median", "p99")]
    ends = ["tpot_speedup_low", "tpot_speedup_high"]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_CSV, *times, *_CSV_AGAINST, *ends])
    for run in report["runs"]:
        against = against_baseline(report, run) or {}
        values = [run.get(name) for name in _CSV]
        values += [run[f"{name}_ms"].get(part) for name in _TIMES for part in ("mean", "median", "p99")]
        values += [against.get(name) for name in _CSV_AGAINST]
        values += against.get("tpot_speedup_ci") or [None, None]
        writer.writerow(values)
    return out.getvalue()


def against_baseline(report: Report, run: dict[str, Any]) -> dict[str, Any] | None:
    """The comparison of a run with the baseline; None for the baseline itself."""
    key = (run["name"], run["k"])
    for row in report["comparison"]:
        if (row["candidate"], row["k"]) == key and row["concurrency"] in (run["concurrency"], None):
            found: dict[str, Any] = row
            return found
    return None


_VLLM_TIMES = {"ttft": "ttft", "tpot": "tpot", "itl": "chunk_gap", "e2el": "e2e"}


def as_vllm(report: Report) -> str:
    """One JSON object a line for each run, with the keys of `vllm bench serve` results (vllm/benchmarks/serve.py)."""
    return "".join(json.dumps(_vllm(report, run), allow_nan=False) + "\n" for run in report["runs"])


def _vllm(report: Report, run: dict[str, Any]) -> dict[str, Any]:
    env, work, duration = report["environment"], report["workload"], run["duration_s"]
    per_second = None if not duration else run["requests"] / duration
    details = run.get("per_request") or {}
    found: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y%m%d-%H%M%S"),
        "endpoint_type": "openai-chat" if env.get("servers") else "specctl",
        "backend": env.get("engine") or "openai-chat",
        "label": label(run["name"], run["k"]),
        "model_id": work["target"],
        "tokenizer_id": work["target"],
        "num_prompts": run["requests"] + run["failed"],
        "request_rate": "inf" if run["request_rate"] is None else run["request_rate"],
        "burstiness": work.get("burstiness") or 1.0,
        "max_concurrency": run["concurrency"],
        "duration": duration,
        "completed": run["requests"],
        "failed": run["failed"],
        "total_input_tokens": run["input_tokens"],
        "total_output_tokens": run["output_tokens"],
        "request_throughput": per_second,
        "request_goodput": run["request_goodput"],
        "output_throughput": run["output_throughput"],
        "total_token_throughput": run["total_throughput"],
        "max_output_tokens_per_s": None,
        "max_concurrent_requests": run["concurrency"],
        "rtfx": None,
        "latencies": details.get("latencies", []),
        "queue_times": [],
    }
    for name, key in _VLLM_TIMES.items():
        times = run[f"{key}_ms"] | {"std": run["std_ms"][key]}
        found |= {f"{part}_{name}_ms": times[part] for part in ("mean", "median", "std", "p99")}
    return found | _vllm_drafting(run)


def _vllm_drafting(run: dict[str, Any]) -> dict[str, Any]:
    """vLLM's section about drafting, which stands only where something was drafted. Its rate is in percent."""
    if not run["num_draft_tokens"]:
        return {}
    rate = run["acceptance_rate"]
    return {
        "spec_decode_acceptance_rate": None if rate is None else 100 * rate,
        "spec_decode_acceptance_length": run["mean_acceptance_length"],
        "spec_decode_num_drafts": run["num_drafts"],
        "spec_decode_draft_tokens": run["num_draft_tokens"],
        "spec_decode_accepted_tokens": run["num_accepted_tokens"],
        "spec_decode_per_position_acceptance_rates": run["acceptance_per_position"],
    }


def as_markdown(report: Report) -> str:
    """A summary for a pull request: the verdict, the main table, the setting to paste."""
    from specctl.bench.remarks import notes
    from specctl.bench.report import heading, main_table, told

    table = main_table(report)
    lines = [f"**{_escaped(report['verdict']['text'])}**", ""]
    lines += ["| " + " | ".join(table.header) + " |"]
    lines += ["|" + "|".join([" --- "] * table.left + [" ---: "] * (len(table.header) - table.left)) + "|"]
    lines += ["| " + " | ".join(map(_escaped, row)) + " |" for row in table.rows]
    lines += ["", *(f"- {_escaped(line)}" for line in [*heading(report), *notes(report)])]
    settings = report["verdict"].get("settings") or {}
    for engine, setting in settings.items():
        if setting["text"] is not None:
            release = f" {setting['release']}" if engine != "specctl" else ""
            lines += ["", f"{engine}{release}:", "", "```", setting["text"], "```"]
            lines += ["", *(f"- {_escaped(note)}" for note in told(setting))] if told(setting) else []
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")

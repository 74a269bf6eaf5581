"""The pages that `specctl explain` prints, and the table of rules in the documentation."""

from __future__ import annotations

import textwrap

from specctl.dialects.foreign import title
from specctl.planning.alarm import BOUND, RISK
from specctl.rules.catalog import Rule, rules
from specctl.rules.examples import examples_of, prose_of

# One home for the definitions; bench and server compute what stands here.
_TERMS: tuple[tuple[str, str], ...] = (
    ("acceptance rate", "accepted drafted tokens / drafted tokens"),
    (
        "mean acceptance length",
        "1 + accepted / drafts: tokens emitted per verify step that had a draft, the bonus token included; between 1 "
        "and k + 1. This is vLLM's definition",
    ),
    (
        "mean acceptance length, all steps",
        "the same over all verify steps, those without a draft counted too (n-gram often has none)",
    ),
    (
        "acceptance per position",
        "steps that accepted position i / drafts; it never rises from one position to the next",
    ),
    (
        "conditional acceptance per position",
        "steps that accepted position i / steps that accepted the position before it",
    ),
    (
        "TPOT",
        "of a request: (time of its last token - time of its first) / (output tokens - 1); requests with one token are "
        "left out; the mean is over requests",
    ),
    ("TTFT", "from sending a request to its first token"),
    ("tpot_speedup", "baseline mean TPOT / candidate mean TPOT"),
    (
        "break_even_acceptance_length",
        "mean acceptance length over all steps / tpot_speedup: the length at which it would save what it costs; where "
        "a server does not count steps without a draft, over those with one",
    ),
    (
        "cost_per_accepted_token_ms",
        "(candidate TPOT x mean acceptance length over all steps - baseline TPOT) / (that length - 1): what a verify "
        "step costs more than a plain one, for each token accepted in it; the draft pays while it is below plain TPOT",
    ),
    (
        "decision",
        "keep: the speed-up's interval lies above 1, the effect is 2 % or more, throughput does not fall; drop: the "
        "interval lies below 1 by 2 % or more, or TPOT improves and throughput falls by 2 % or more; else within noise",
    ),
    (
        "tpot_speedup_ci",
        "interval of the speed-up, 95 % over all levels of concurrency together (Bonferroni); it counts the spread "
        "among prompts (bootstrap) and the noise that hits whole blocks of requests",
    ),
    ("request_goodput", "requests a second that keep every promise of --goodput; those that failed keep none"),
    ("draft_time_share", "time spent drafting / time of drafting and verifying, in steps without prefill"),
    (
        "bound",
        "of one stream: E / (k c + v(k + 1)), E the mean acceptance length over all steps, v(M) the time of the "
        "target's forward over M rows / that over one, c the time of the draft's networks for a token / that over one "
        "row; medians over repeats of what the run itself measured. A search (n-gram, suffix) has c = 0 and enters "
        "with the draft lengths that it had. JSON keys bound, draft_cost (c), verify_cost (v)",
    ),
    ("share_of_bound", "tpot_speedup / bound, each of the same repeat; the median: what is lost outside of networks"),
    (
        "alarm: broken draft",
        f"the upper end of the one-sided {100 * (1 - RISK):.1f} % Clopper-Pearson interval of the acceptance at "
        f"position 0 lies below {100 * BOUND:.0f} %; without any acceptance that takes 55 drafts. Only drafts out of "
        "a checkpoint are judged, not n-gram or suffix. bench says it in its table (!), its notes and the report's key "
        "alarm; serve in its log and as the gauge specctl:spec_decode_draft_broken",
    ),
)
_COUNTING = """\
Accepted is what verification accepted, before a stop or max_tokens cuts the block. The prefill step is no
verify step. A step without drafted tokens counts as a verify step only. Drafts are cut by the context limit,
not by max_tokens. Gaps between tokens are never compared between runs with and without a draft, since one chunk
can carry several tokens.

SGLang's accept length equals the mean acceptance length for a chain that drafts in every step; its rate divides
by the configured width. TensorRT-LLM's acceptanceLength is the same per iteration, but 0.0 where nothing was
drafted.
"""


def metrics() -> str:
    """The definitions of everything that bench prints."""
    lines: list[str] = []
    for name, meaning in _TERMS:
        lines += [name, *textwrap.wrap(meaning + ".", 96, initial_indent="    ", subsequent_indent="    ")]
    counting = [textwrap.fill(part, 100) for part in _COUNTING.split("\n\n")]
    return "\n".join([*lines, "", *"\n\n".join(counting).split("\n")]) + "\n"


def page(rule: Rule) -> str:
    """The page of one rule as text."""
    engines = ", ".join(title(engine) for engine in rule.engines) or "all engines"
    lines = [f"{rule.code} {rule.name} ({rule.severity}; {engines})", "", prose_of(rule.page)]
    models = [need for need in rule.needs if need != "platform"]
    if models:
        lines += [
            "",
            f"Needs the config.json of the {' and the '.join(models)}; without it the rule is reported as skipped.",
        ]
    if "platform" in rule.needs:
        lines += ["", "Looks only where the GPU is named (--platform) and the sizes of target and draft are known."]
    for example in examples_of(rule):
        lines += ["", "Wrong:" if example.bad else "Right:", *_shown(example.label, example.text)]
    return "\n".join(lines) + "\n"


def _shown(label: str, text: str) -> list[str]:
    return [
        f"    {line}"
        for line in textwrap.wrap(
            f"{label}: {text}", 112, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    ]


def table() -> str:
    """docs/rules.md, made from the rules."""
    lines = [
        "# Rules",
        "",
        "Made from the rules by `python -m specctl.rules.index_writer`; `specctl explain CODE` prints a page.",
        "",
        "| code | name | severity | engines | needs | what |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for rule in rules().values():
        engines = ", ".join(title(engine) for engine in rule.engines) or "all"
        what = rule.title.replace("|", "\\|")
        lines.append(
            f"| {rule.code} | {rule.name} | {rule.severity} | {engines} | {', '.join(rule.needs) or '-'} | {what} |"
        )
    return "\n".join(lines) + "\n"

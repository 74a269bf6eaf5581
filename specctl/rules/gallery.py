"""Ten settings that look right and are not, each with what validate-config says about it.

python -m specctl.rules.gallery        writes docs/gallery.md
"""

from __future__ import annotations

import shlex
from pathlib import Path

from specctl.diagnostics import as_text
from specctl.rules.checker import check_argv, check_loaded
from specctl.rules.report import Report
from specctl.source.document import from_bytes

HEAD = """# Ten settings that look right

Each passes a quick review. What stands under it is the output of `specctl validate-config`, written by
`python -m specctl.rules.gallery`.
"""

# Title, release (None: the newest known), and either a file (name, text) or a command line.
Case = tuple[str, str | None, str | None, str]
CASES: tuple[Case, ...] = (
    (
        "One bound of the lookup moves the other",
        None,
        "assistant.json",
        '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 8}\n',
    ),
    (
        "A launcher splits the JSON at its blanks",
        None,
        None,
        'vllm serve Qwen/Qwen3-8B --speculative-config {\\"method\\": \\"ngram\\", \\"num_speculative_tokens\\": 4}',
    ),
    (
        "Quotes that a word processor made pretty",
        None,
        None,
        "vllm serve Qwen/Qwen3-8B --speculative-config '{“method”: “ngram”, “num_speculative_tokens”: 4}'",
    ),
    (
        "A flag of an old vLLM",
        None,
        None,
        "vllm serve Qwen/Qwen3-32B --speculative-model Qwen/Qwen3-0.6B --num-speculative-tokens 4",
    ),
    (
        "SGLang's count in vLLM's setting",
        None,
        "head.yaml",
        "model: meta-llama/Llama-3.1-8B-Instruct\nspeculative-config:\n  method: eagle3\n  model: org/llama-eagle3\n"
        "  num_draft_tokens: 4\n",
    ),
    (
        "Two of SGLang's three numbers",
        None,
        None,
        "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path org/llama-eagle3 --speculative-num-steps 3 --speculative-num-draft-tokens 4",
    ),
    (
        "A chain that drafts fewer tokens than were asked for",
        None,
        None,
        "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path org/llama-eagle3 --speculative-num-steps 3 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 16",
    ),
    (
        "The documented name, one release too early",
        "1.2.1",
        "trtllm.yaml",
        "speculative_config:\n  decoding_type: Eagle3\n  max_draft_len: 3\n  speculative_model: org/llama-eagle3\n",
    ),
    (
        "A key that went away with the last release",
        "1.4.0rc0",
        "mtp.yaml",
        "speculative_config:\n  decoding_type: MTP\n  num_nextn_predict_layers: 3\n  mtp_eagle_one_model: true\n",
    ),
    (
        "More tokens than the sampler takes",
        None,
        "long.yaml",
        "model: Qwen/Qwen3-8B\nspeculative-config:\n  method: draft_model\n  model: Qwen/Qwen3-0.6B\n"
        "  num_speculative_tokens: 200\n",
    ),
)


def report_of(case: Case) -> Report:
    """What is said about a case."""
    _, release, name, text = case
    if name is None:
        return check_argv(shlex.split(text), release=release)
    return check_loaded(from_bytes(name, text.encode()), release=release)


def _section(number: int, case: Case) -> str:
    title, release, name, text = case
    command = "specctl validate-config" + (f" --release {release}" if release else "")
    shown = f"$ {command} {name}" if name else f"$ {command} -- {text}"
    said = as_text.render([report_of(case).result]).rstrip("\n")
    file = f"`{name}`:\n\n```{'json' if name.endswith('json') else 'yaml'}\n{text}```\n\n" if name else ""
    return f"\n## {number}. {title}\n\n{file}```\n{shown}\n{said}\n```\n"


def page() -> str:
    """The text of docs/gallery.md."""
    return HEAD + "".join(_section(number, case) for number, case in enumerate(CASES, 1))


if __name__ == "__main__":
    (Path(__file__).parents[2] / "docs" / "gallery.md").write_text(page(), encoding="utf-8")

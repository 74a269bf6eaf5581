"""A setting in specctl's own format is incomplete.

Bad:

    specctl: {specctl: 1, method: draft_model, num_speculative_tokens: 4}

Good:

    specctl: {specctl: 1, method: draft_model, model: demo-draft, num_speculative_tokens: 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.spec import METHODS, SpecDecodeConfig

ENGINES = ("specctl",)
LIMIT = 128


def check(reading: Reading) -> Iterator[Finding]:
    """Version, count, draft."""
    spec = reading.spec
    if spec is None:
        return
    version = reading.values.get("specctl")
    if version is None:
        yield Finding("SPC160", "the line specctl: 1 is missing", help="begin the file with specctl: 1")
    count = reading.values.get("num_speculative_tokens")
    if count is None and spec.method.name != "extract_hidden_states":
        yield Finding("SPC160", "num_speculative_tokens is missing", ("method",), help="add num_speculative_tokens: 4")
    elif spec.num_speculative_tokens is not None and spec.num_speculative_tokens > LIMIT:
        yield Finding(
            "SPC160",
            f"num_speculative_tokens is {spec.num_speculative_tokens}; at most {LIMIT} was wanted",
            ("num_speculative_tokens",),
            help="use 2 to 8",
        )
    if spec.method.needs_model and spec.model is None:
        yield Finding(
            "SPC160",
            f"method {spec.method.name} needs a draft, and none is named",
            ("method",),
            help="add model: demo-draft",
        )
    if spec.tree is not None:
        yield from _tree(spec)


def _tree(spec: SpecDecodeConfig) -> Iterator[Finding]:
    tree, k = spec.tree, spec.num_speculative_tokens
    if not spec.method.drafts_trees:
        able = ", ".join(name for name, method in METHODS.items() if method.drafts_trees)
        text = f"specctl's own runtime drafts no trees with method {spec.method.name}"
        yield Finding("SPC160", text, ("tree",), help=f"leave the tree out; {able} draft trees")
    elif tree is not None and tree.depth is not None and k is not None and tree.depth != k:
        text = f"num_speculative_tokens is {k}, and the longest path of the tree has {tree.depth} tokens"
        yield Finding("SPC160", text, ("num_speculative_tokens",), help=f"write num_speculative_tokens: {tree.depth}")
    elif tree is not None and spec.acceptance.method == "block":
        text = "block verification judges chains, and the setting drafts a tree"
        yield Finding("SPC160", text, ("acceptance", "method"), help="leave out acceptance.method: block, or the tree")

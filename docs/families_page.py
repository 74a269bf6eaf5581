"""Writes docs/families.md, and the README's table of targets: which families run, in which way, with which drafts.

    python docs/families_page.py            # writes the page, and the table between its marks in README.md
    python docs/families_page.py --check    # exit 1 where one of them is stale

The rows come from the table that the loader decides by; what they say of each family is held by
tests/runtime/test_families.py, which decodes with every row.
"""

from __future__ import annotations

import sys
from pathlib import Path

from specctl.runtime.models.families import FAMILIES, REFUSED

PAGE = Path(__file__).with_name("families.md")
README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- targets: made by docs/families_page.py -->", "<!-- end of targets -->"
HEADS = ("family", "model types", "runs", "drafts of its own", "what is special")
TEXT = """# Targets

Written by `python docs/families_page.py`. A target is told by the `model_type` in its config.json. All of these
give, with greedy decoding, exactly the tokens of transformers' own `generate` (in float64; in other dtypes up
to printed near-ties), plain and with n-gram, suffix, a draft model, PARD, EAGLE, EAGLE-3, Medusa, MLP
speculators and DFlash, at any concurrency. The last column but one names the drafts that the family's own
checkpoints bring along.

{table}

*Native*: specctl's own decoder. *Adapter, one flat batch*: the layers of transformers with specctl's attention
and cache in them; prompts, new tokens and drafts of all sequences go through one forward, as in the native
decoder. Other causal language models that transformers runs go through a second adapter, sequence by sequence;
those with a recurrent state are refused there.

Refused by name:

{refused}

## Prediction layers

`method: mtp` without `model` takes the layers inside the target's checkpoint, found by their tensors' names:
those of DeepSeek-V3 and GLM-4.5 behind the last layer, the three of Step-3.5 and 3.7 there too, Qwen3-Next's
and Qwen3.5's under `mtp.`, MiMo's and Ernie's under names of their own. Where config.json counts another number
than the weights hold, the run or the error says which. One layer chains its guesses; of several, each drafts
the token one place further, and the last goes on where more are asked for. Gemma 4's assistants lie in a
repository of their own: give it as `model`.

## Recurrent state

Qwen3-Next and Qwen3.5 keep a state that cannot be cut back after a rejected draft. Each sequence keeps the
state at the beginning of the last verify step and the inputs since then, and runs the accepted ones again in
the recurrent layers alone. Chains only: a tree is refused for these targets. Their prefixes cannot be shared
between requests.

## The tests

The ordinary tests decode with every model type of the table, and with n-gram, a draft model, EAGLE-3 and its
own prediction layers for every family. The full cross product of families, methods, draft lengths and batches:

```
python -m tests.runtime.family_methods
```
"""


def table() -> str:
    """The families as a Markdown table."""
    rows = ["| " + " | ".join(HEADS) + " |", "|" + " --- |" * len(HEADS)]
    for family in FAMILIES:
        types = ", ".join(f"`{kind}`" for kind in family.types)
        rows.append(f"| {family.models} | {types} | {family.way} | {family.drafts or '–'} | {family.notes or '–'} |")
    return "\n".join(rows)


def page() -> str:
    """The whole page."""
    refused = "\n".join(f"- `{kind}`: {reason}." for kind, reason in REFUSED.items())
    return TEXT.format(table=table(), refused=refused)


def short_table() -> str:
    """Each family in the README: native, adapter or refused, and the drafts that its checkpoints bring along."""
    rows = ["| target | runs | drafts of its own |", "| --- | --- | --- |"]
    rows += [f"| {each.models} | {each.way.partition(',')[0]} | {each.drafts or '–'} |" for each in FAMILIES]
    rows += [f"| `{kind}` | refused: {reason} | – |" for kind, reason in REFUSED.items()]
    return "\n".join(rows)


def readme() -> str:
    """The README with the table as it should be."""
    before, rest = README.read_text("utf-8").split(BEGIN, 1)
    return f"{before}{BEGIN}\n{short_table()}\n{END}{rest.split(END, 1)[1]}"


def main(arguments: list[str]) -> int:
    """Write or check both."""
    wanted = {PAGE: page(), README: readme()}
    if "--check" in arguments:
        stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text("utf-8") != text]
        for path in stale:
            print(f"{path} is stale: python docs/families_page.py", file=sys.stderr)
        return int(bool(stale))
    for path, text in wanted.items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The algorithm is none that this release of SGLang knows.

Any upper or lower case will do, but the letters must be right: `EAGLE3`, not `EAGLE-3`.

Bad:

    sglang: --speculative-algorithm MTP

Good:

    sglang: --speculative-algorithm EAGLE
"""

from collections.abc import Iterator

from specctl.diagnostics import Fix
from specctl.dialects.reading import Finding, Reading, nearest
from specctl.dialects.sglang import ALGORITHMS

ENGINES = ("sglang",)
MEANT = {
    "MTP": "EAGLE",
    "DRAFT_MODEL": "STANDALONE",
    "DRAFT": "STANDALONE",
    "LOOKAHEAD": "NGRAM",
    "SUFFIX": "NGRAM",
    "PROMPT_LOOKUP": "NGRAM",
    "EAGLE2": "EAGLE",
    "EAGLE-2": "EAGLE",
    "DRAFTTARGET": "STANDALONE",
    "DRAFT_TARGET": "STANDALONE",
}


def check(reading: Reading) -> Iterator[Finding]:
    """After turning into upper case; blanks are not cut off."""
    typed = reading.get("speculative_algorithm")
    if typed is None or str(typed).upper() in ALGORITHMS:
        return
    name = str(typed).upper().strip()
    near = MEANT.get(name) or ("EAGLE" if name.endswith("_MTP") else None) or nearest(name.replace("-", ""), ALGORITHMS)
    route = reading.route("speculative_algorithm")
    yield Finding(
        "SPC140",
        f"{typed!r} is no algorithm of SGLang {reading.release}",
        route,
        help=f"write {near}" if near else f"algorithms are {', '.join(ALGORITHMS[:-2])}",
        fix=Fix(route, near) if near else None,
    )

"""specctl's own runtime does not run this method.

The setting itself may be right: another engine runs it. Name that engine with `--engine`, or write the setting for it
with `specctl convert`.

Bad:

    specctl: {specctl: 1, method: suffix_automaton, num_speculative_tokens: 4}

Good:

    specctl: {specctl: 1, method: suffix, num_speculative_tokens: 4}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("specctl",)


def check(reading: Reading) -> Iterator[Finding]:
    """The method against what the runtime has."""
    spec = reading.spec
    if spec is not None and not spec.method.runs_in_specctl:
        named = ", ".join(name for name in spec.limits if name != "specctl")
        yield Finding(
            "SPC161",
            f"specctl's own runtime does not run method {spec.method.name}",
            ("method",),
            help=f"name an engine that does with --engine: {named or 'docs/methods.md lists them'}",
        )

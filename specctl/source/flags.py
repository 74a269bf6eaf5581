"""Takes the engines' setting flags out of a command line before Typer sees it, and reads option lists as argparse does.

For the rooms above:

* `extract(argv)` returns `Flags`. `Flags.rest` is the command line without the setting flags (TARGET may have stood
before or
  after them); the rest of `Flags` holds what was taken, in the words the user typed:
  - `vllm`: tokens of vLLM's flags (`--speculative-config`, `-sc`, dotted keys, `--spec-method` ..., removed ones)
  - `sglang`: tokens of SGLang's `--speculative-*` flags and their kin
  - `configs`: files named by `--config`; `specs`: files or preset names given by `--spec`
  - `engine_command`: everything behind `--` (an engine's own command line)
  Flags of two engines in one command raise `UsageError` that names both.
* `Flags.candidates()` splits them into settings: each `--speculative-config`, `--config` and `--spec` is one of its
own.

The command line turns `Flags` into specs and reports through `specctl.cli.settings.Settings` (on the Typer context as
`ctx.obj`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specctl.errors import UsageError

# Flags without a value; every other setting flag takes one. A test compares this with the rows of dialects.
SGLANG_SWITCHES = frozenset(
    {
        "--speculative-use-rejection-sampling",
        "--speculative-use-block-verification",
        "--speculative-adaptive",
        "--speculative-skip-dp-mlp-sync",
        "--speculative-enable-w4a4-mxfp4-megamoe",
        "--no-speculative-enable-w4a4-mxfp4-megamoe",
        "--speculative-dspark-align-verify-tokens-to-graph-tier",
        "--enable-multi-layer-eagle",
        "--speculative-lookahead-one-branch",
    }
)
_SGLANG_EXTRA = (
    "--uno-lora-path",
    "--enable-multi-layer-eagle",
    "--decoupled-spec-",
    "--spec-trace-dir",
    "--no-speculative-",
    "--enable-nextn",
)

# Removed vLLM flags: recognised so that they can be answered with the line that replaces them.
VLLM_REMOVED = frozenset(
    {
        "--speculative-model",
        "--num-speculative-tokens",
        "--speculative-draft-tensor-parallel-size",
        "-spec-draft-tp",
        "--speculative-model-quantization",
        "--speculative-max-model-len",
        "--speculative-disable-by-batch-size",
        "--speculative-disable-mqa-scorer",
        "--ngram-prompt-lookup-max",
        "--ngram-prompt-lookup-min",
        "--spec-decoding-acceptance-method",
        "--typical-acceptance-sampler-posterior-threshold",
        "--typical-acceptance-sampler-posterior-alpha",
        "--disable-logprobs-during-spec-decoding",
    }
)
_VLLM_REMOVED_SWITCHES = frozenset({"--speculative-disable-mqa-scorer", "--disable-logprobs-during-spec-decoding"})
_NEGATIVE = r"^-\d+$|^-\d*\.\d+$"


@dataclass(frozen=True)
class Taken:
    """One flag with its values, as typed: `tokens[0]` is the flag (with `=value` where it was written so)."""

    engine: str
    name: str
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Flags:
    """What `extract` found; see the module's docstring."""

    rest: tuple[str, ...]
    taken: tuple[Taken, ...] = ()
    configs: tuple[str, ...] = ()
    specs: tuple[str, ...] = ()
    engine_command: tuple[str, ...] = ()

    @property
    def vllm(self) -> tuple[str, ...]:
        """The tokens of vLLM's setting flags."""
        return tuple(token for each in self.taken if each.engine == "vllm" for token in each.tokens)

    @property
    def sglang(self) -> tuple[str, ...]:
        """The tokens of SGLang's setting flags."""
        return tuple(token for each in self.taken if each.engine == "sglang" for token in each.tokens)

    def __bool__(self) -> bool:
        return bool(self.taken or self.configs or self.specs or self.engine_command)

    def candidates(self) -> list[Candidate]:
        """The settings, one for each repeat of a whole setting; smaller flags belong to all of vLLM's or SGLang's."""
        found = [Candidate("file", (path,)) for path in self.configs]
        found += [Candidate("spec", (name,)) for name in self.specs]
        wholes = [each for each in self.taken if each.name == "--speculative-config"]
        others = [token for each in self.taken if each.engine == "vllm" and each not in wholes for token in each.tokens]
        if wholes:
            found += [Candidate("vllm", (*whole.tokens, *others)) for whole in wholes]
        elif others:
            found.append(Candidate("vllm", tuple(others)))
        if self.sglang:
            found.append(Candidate("sglang", self.sglang))
        if self.engine_command:
            found.append(Candidate("command", self.engine_command))
        return found


@dataclass(frozen=True)
class Candidate:
    """One setting: `kind` is `file`, `spec`, `vllm`, `sglang` (tokens) or `command` (an engine's command line)."""

    kind: str
    tokens: tuple[str, ...]


def is_option(token: str) -> bool:
    """Whether argparse would take the token for an option rather than for a value."""
    name = token.split("=", 1)[0]  # a value behind = may hold blanks
    return token.startswith("-") and len(token) > 1 and not re.match(_NEGATIVE, token) and " " not in name


def owner(token: str) -> tuple[str, str] | None:
    """Which engine's setting flag a token is, and its full name where that is plain; None for any other token."""
    base = token.split("=", 1)[0]
    if base.startswith("---"):  # a dash too many; the reader says so
        found = owner("--" + base.lstrip("-"))
        return (found[0], base) if found else None
    if base == "-sc" or base.startswith("-sc."):
        return ("vllm", "--speculative-config" if base == "-sc" else base)
    if not base.startswith("-"):
        return None
    if base in VLLM_REMOVED:
        return ("vllm", base)
    stem = base.split(".", 1)[0].replace("_", "-")
    if stem.startswith("--speculative") and "--speculative-config".startswith(stem):
        return ("vllm", "--speculative-config" if "." not in base else base)
    if any(base.startswith(head) for head in _SGLANG_EXTRA) or base.replace("_", "-").startswith("--speculative"):
        return ("sglang", base)
    if base.replace("_", "-") in ("--spec-method", "--spec-model", "--spec-tokens"):
        return ("vllm", base.replace("_", "-"))
    return None


@dataclass
class _Extraction:
    argv: list[str]
    rest: list[str] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    configs: list[str] = field(default_factory=list)
    specs: list[str] = field(default_factory=list)
    at: int = 0

    def run(self) -> Flags:
        command: tuple[str, ...] = ()
        while self.at < len(self.argv):
            token = self.argv[self.at]
            if token == "--":
                command = tuple(self.argv[self.at + 1 :])
                break
            name = token.split("=", 1)[0]
            if name in ("--config", "--spec"):
                self.own(token, self.configs if name == "--config" else self.specs)
            elif owner(token):
                self.engine(token)
            else:
                self.rest.append(token)
                self.at += 1
        return Flags(tuple(self.rest), tuple(self.taken), tuple(self.configs), tuple(self.specs), command)

    def own(self, token: str, into: list[str]) -> None:
        name, equals, value = token.partition("=")
        self.at += 1
        if not equals:
            if self.at >= len(self.argv) or is_option(self.argv[self.at]):
                raise UsageError(f"{name} needs a file" + (" or a preset's name" if name == "--spec" else ""))
            value = self.argv[self.at]
            self.at += 1
        into.append(value)

    def engine(self, token: str) -> None:
        found = owner(token)
        assert found is not None
        engine, name = found
        tokens = [token]
        self.at += 1
        if "=" not in token and name not in SGLANG_SWITCHES and name not in _VLLM_REMOVED_SWITCHES:
            tokens += self.values()
        self.taken.append(Taken(engine, name, tuple(tokens)))

    def values(self) -> list[str]:
        """The next token, and those that follow it where a JSON text was split at its blanks."""
        if self.at >= len(self.argv) or is_option(self.argv[self.at]):
            return []
        found = [self.argv[self.at]]
        self.at += 1
        while is_cut(" ".join(found)) and self.at < len(self.argv) and not is_option(self.argv[self.at]):
            found.append(self.argv[self.at])
            self.at += 1
        return found


def is_cut(text: str) -> bool:
    """Whether a text begins as a JSON object and has not come to its closing brace."""
    body = text.lstrip("'\"\\ ")
    return body.startswith("{") and body.count("{") > body.count("}")


def extract(argv: Sequence[str]) -> Flags:
    """Take the setting flags out of `argv`. Raises `UsageError` where flags of two engines meet."""
    flags = _Extraction(list(argv)).run()
    names = {each.engine: each.tokens[0].split("=", 1)[0] for each in reversed(flags.taken)}
    if len(names) == 2 and any(each.engine == "vllm" and each.name not in VLLM_REMOVED for each in flags.taken):
        raise UsageError(
            f"{names['vllm']} is a flag of vLLM and {names['sglang']} one of SGLang; "
            "one command takes the settings of one engine",
            help=f"leave out {names['vllm']} or {names['sglang']}",
        )
    if len(names) == 2:
        taken = tuple(Taken("sglang", each.name, each.tokens) for each in flags.taken)
        return Flags(flags.rest, taken, flags.configs, flags.specs, flags.engine_command)
    return flags


@dataclass(frozen=True)
class Given:
    """One option of a parsed list: canonical flag, the index of its token, its value (None: a switch) and the value's
    index.
    """

    flag: str
    typed: str
    at: int
    value: str | None
    value_at: int


@dataclass(frozen=True)
class Misuse:
    """What argparse would end at: `kind` is `unknown`, `ambiguous`, `value-missing`, `value-unwanted` or `stray`."""

    kind: str
    at: int
    token: str
    names: tuple[str, ...] = ()


def parse_options(
    tokens: Sequence[str], table: Mapping[str, str], positionals: int = 0
) -> tuple[list[Given], list[Misuse], list[int]]:
    """Read an option list as argparse does.

    `table` maps a flag to `value`, `switch`, `optional` (a value that may be left out) or `many`. Prefixes are
    completed where one flag fits. `positionals`: how many words without a flag are allowed. Returns options, misuses
    and the indexes of positional words."""
    found: list[Given] = []
    wrong: list[Misuse] = []
    words: list[int] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if not is_option(token):
            if len(words) < positionals:
                words.append(at)
            else:
                wrong.append(Misuse("stray", at, token))
            at += 1
            continue
        at = _option(tokens, at, table, found, wrong)
    return found, wrong, words


def _option(tokens: Sequence[str], at: int, table: Mapping[str, str], found: list[Given], wrong: list[Misuse]) -> int:
    typed, equals, value = tokens[at].partition("=")
    flag = complete(typed, table)
    if isinstance(flag, tuple):
        wrong.append(Misuse("ambiguous" if flag else "unknown", at, typed, flag))
        return at + 1 + (not equals and at + 1 < len(tokens) and not is_option(tokens[at + 1]))
    kind = table[flag]
    if kind == "switch":
        if equals:
            wrong.append(Misuse("value-unwanted", at, typed, (flag,)))
        else:
            found.append(Given(flag, typed, at, None, at))
        return at + 1
    if equals:
        found.append(Given(flag, typed, at, value, at))
        return at + 1
    if at + 1 >= len(tokens) or is_option(tokens[at + 1]):
        if kind == "optional":
            found.append(Given(flag, typed, at, None, at))
        else:
            wrong.append(Misuse("value-missing", at, typed, (flag,)))
        return at + 1
    found.append(Given(flag, typed, at, tokens[at + 1], at + 1))
    end = at + 2
    while kind == "many" and end < len(tokens) and not is_option(tokens[end]):
        end += 1
    return end


def complete(typed: str, table: Mapping[str, str]) -> str | tuple[str, ...]:
    """The flag that `typed` names or abbreviates; the tuple of all that fit where it is not exactly one."""
    if typed in table:
        return typed
    if not typed.startswith("--"):
        return ()
    fitting = tuple(sorted(flag for flag in table if flag.startswith(typed)))
    return fitting[0] if len(fitting) == 1 else fitting

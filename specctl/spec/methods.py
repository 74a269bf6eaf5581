"""One frozen dataclass for each method of drafting; its fields are the keys that only this method has.

`METHODS` maps the canonical name to the class. A method says of itself what it needs (`needs_model`: a draft
checkpoint; `optional_model`: may take one), whether a target must bring hidden states (`uses_hidden_states`) and
whether the bundled runtime drafts trees with it (`drafts_trees`), so that nobody else has to ask for it by name."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True, eq=False, repr=False)
class Method:
    """What all methods have in common. Never used by itself."""

    name: ClassVar[str] = ""
    needs_model: ClassVar[bool] = False
    optional_model: ClassVar[bool] = False
    uses_hidden_states: ClassVar[bool] = False
    runs_in_specctl: ClassVar[bool] = True
    drafts_trees: ClassVar[bool] = False
    summary: ClassVar[str] = ""

    # Written once here: seventeen generated copies would be felt at every start of the command line.
    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.__dict__.items())})"

    def own_keys(self) -> dict[str, Any]:
        """The method's own keys whose value differs from the default, tuples as lists, ready for JSON."""
        found: dict[str, Any] = {}
        for row in fields(self):
            value = getattr(self, row.name)
            if value != row.default:
                found[row.name] = list(value) if isinstance(value, tuple) else value
        return found


@dataclass(frozen=True, eq=False, repr=False)
class Ngram(Method):
    """Copy what followed the last tokens when they stood in the text before.

    `prompt_lookup_min` and `prompt_lookup_max` bound the length of the matched suffix, in tokens. `search` says which
    occurrence wins: `earliest` (longest match first, then the oldest place; vLLM's rule), `latest` (the youngest
    place), `transformers` (the rule of its prompt lookup) or `trie` (a tree over all requests of the server, as
    SGLang keeps). `shared_pool`: matches may come from other requests."""

    name: ClassVar[str] = "ngram"
    summary: ClassVar[str] = "copies what followed the last tokens earlier in the text"
    prompt_lookup_min: int = 2
    prompt_lookup_max: int = 4
    search: str = "earliest"
    shared_pool: bool = False
    on_device: bool = False

    def own_keys(self) -> dict[str, Any]:
        """As `Method.own_keys`, but both bounds always stand, since engines differ in their defaults."""
        bounds = {"prompt_lookup_min": self.prompt_lookup_min, "prompt_lookup_max": self.prompt_lookup_max}
        return bounds | super().own_keys()


@dataclass(frozen=True, eq=False, repr=False)
class Suffix(Method):
    """Follow the most frequent continuations in a suffix tree of this and earlier requests (SuffixDecoding)."""

    name: ClassVar[str] = "suffix"
    summary: ClassVar[str] = "follows frequent continuations in a suffix tree of earlier outputs"
    max_tree_depth: int = 24
    max_cached_requests: int = 10000
    max_spec_factor: float = 1.0
    min_token_prob: float = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class SuffixAutomaton(Method):
    """TensorRT-LLM's `SA`: longest suffix match in an automaton; -1 means no upper bound of the match."""

    name: ClassVar[str] = "suffix_automaton"
    summary: ClassVar[str] = "longest suffix match in an automaton (TensorRT-LLM)"
    runs_in_specctl: ClassVar[bool] = False
    max_matching_ngram_size: int = -1
    shared_pool: bool = False
    pool_size: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class DraftModel(Method):
    """A smaller language model with the target's vocabulary proposes, token by token."""

    name: ClassVar[str] = "draft_model"
    drafts_trees: ClassVar[bool] = True
    needs_model: ClassVar[bool] = True
    summary: ClassVar[str] = "a small model of the same vocabulary proposes token by token"
    heterogeneous_vocab: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Eagle(Method):
    """EAGLE (1 and 2): one decoder layer over the target's last hidden state and the next token's embedding."""

    name: ClassVar[str] = "eagle"
    drafts_trees: ClassVar[bool] = True
    needs_model: ClassVar[bool] = True
    uses_hidden_states: ClassVar[bool] = True
    summary: ClassVar[str] = "one layer on the target's last hidden state"
    parallel_drafting: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Eagle3(Method):
    """EAGLE-3: one layer over hidden states of several target layers; often a smaller draft vocabulary."""

    name: ClassVar[str] = "eagle3"
    drafts_trees: ClassVar[bool] = True
    needs_model: ClassVar[bool] = True
    uses_hidden_states: ClassVar[bool] = True
    summary: ClassVar[str] = "one layer on hidden states of three target layers"
    parallel_drafting: bool = False
    aux_layers: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Mtp(Method):
    """Multi-token prediction layers that ship with the target (DeepSeek, GLM, Qwen3-Next, ...)."""

    name: ClassVar[str] = "mtp"
    drafts_trees: ClassVar[bool] = True
    optional_model: ClassVar[bool] = True
    uses_hidden_states: ClassVar[bool] = True
    summary: ClassVar[str] = "prediction layers that ship inside the target"
    vanilla: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Medusa(Method):
    """Medusa: independent heads on the last hidden state, head i guessing the token i + 1 places ahead."""

    name: ClassVar[str] = "medusa"
    drafts_trees: ClassVar[bool] = True
    needs_model: ClassVar[bool] = True
    uses_hidden_states: ClassVar[bool] = True
    summary: ClassVar[str] = "independent heads, one for each place ahead"
    num_heads: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class MlpSpeculator(Method):
    """MLP speculator: a small recurrent stack of linear layers over the last hidden state."""

    name: ClassVar[str] = "mlp_speculator"
    drafts_trees: ClassVar[bool] = True
    needs_model: ClassVar[bool] = True
    uses_hidden_states: ClassVar[bool] = True
    summary: ClassVar[str] = "a small recurrent stack on the last hidden state"


@dataclass(frozen=True, eq=False, repr=False)
class Pard(Method):
    """PARD: a draft model trained with mask tokens, so that one forward drafts all k tokens."""

    name: ClassVar[str] = "pard"
    needs_model: ClassVar[bool] = True
    summary: ClassVar[str] = "a draft model that proposes all tokens in one forward"
    mask_token_id: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class DFlash(Method):
    """DFlash: a block-diffusion draft that fills a block of mask tokens from the target's hidden states."""

    name: ClassVar[str] = "dflash"
    needs_model: ClassVar[bool] = True
    uses_hidden_states: ClassVar[bool] = True
    summary: ClassVar[str] = "fills a block of masks in one forward from hidden states"
    mask_token_id: int | None = None
    target_layer_ids: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class DSpark(Method):
    """DSpark: parallel drafting with a Markov head between the places of a block."""

    name: ClassVar[str] = "dspark"
    optional_model: ClassVar[bool] = True
    uses_hidden_states: ClassVar[bool] = True
    runs_in_specctl: ClassVar[bool] = False
    summary: ClassVar[str] = "a parallel block with a Markov head between its places"
    draft_topk: int | None = None
    mask_token_id: int | None = None
    target_layer_ids: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Lookahead(Method):
    """Lookahead decoding (TensorRT-LLM 1.2.1 with its engine backend)."""

    name: ClassVar[str] = "lookahead"
    runs_in_specctl: ClassVar[bool] = False
    summary: ClassVar[str] = "Jacobi windows of the target itself"
    max_window_size: int = 4
    max_ngram_size: int = 3
    max_verification_set_size: int = 4


@dataclass(frozen=True, eq=False, repr=False)
class Uno(Method):
    """SGLang's UNO: the target drafts for itself through a LoRA adapter."""

    name: ClassVar[str] = "uno"
    runs_in_specctl: ClassVar[bool] = False
    summary: ClassVar[str] = "the target drafts for itself through a LoRA adapter"


@dataclass(frozen=True, eq=False, repr=False)
class Auto(Method):
    """The engine chooses (TensorRT-LLM's `AUTO`)."""

    name: ClassVar[str] = "auto"
    runs_in_specctl: ClassVar[bool] = False
    summary: ClassVar[str] = "the engine chooses"


@dataclass(frozen=True, eq=False, repr=False)
class CustomClass(Method):
    """A proposer that the user wrote; `model` holds its dotted import path."""

    name: ClassVar[str] = "custom_class"
    optional_model: ClassVar[bool] = True
    runs_in_specctl: ClassVar[bool] = False
    summary: ClassVar[str] = "a proposer class of the user's own"


@dataclass(frozen=True, eq=False, repr=False)
class ExtractHiddenStates(Method):
    """No speculation: the engine dumps hidden states, as training data for a draft."""

    name: ClassVar[str] = "extract_hidden_states"
    optional_model: ClassVar[bool] = True
    runs_in_specctl: ClassVar[bool] = False
    summary: ClassVar[str] = "dumps hidden states as training data; drafts nothing"
    aux_layers: tuple[int, ...] | None = None


_CLASSES: tuple[type[Method], ...] = (
    Ngram,
    Suffix,
    DraftModel,
    Eagle,
    Eagle3,
    Mtp,
    Medusa,
    MlpSpeculator,
    Pard,
    DFlash,
    DSpark,
    SuffixAutomaton,
    Lookahead,
    Uno,
    Auto,
    CustomClass,
    ExtractHiddenStates,
)

METHODS: dict[str, type[Method]] = {cls.name: cls for cls in _CLASSES}

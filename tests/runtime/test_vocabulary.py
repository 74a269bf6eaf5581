"""Drafts whose vocabulary is not quite, or not at all, the target's: judged by the ids, run without changing text."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
import torch
from scipy.stats import chisquare
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from specctl.errors import SpecctlError
from specctl.modelinfo import ModelFacts, facts_of
from specctl.modelinfo.fit import check_fit, fits, pair_of
from specctl.runtime import Engine, EngineOptions, Target, load_target, make_engine
from specctl.runtime.kv_cache import Span
from specctl.runtime.proposers.vocabulary import _plain
from specctl.spec.config import SpecDecodeConfig, Tree
from specctl.spec.methods import DraftModel
from tests.runtime.kit import OPTIONS, SIZES, ask, run

WORDS = ["<eos>", *"abcdefghijklmnopqrstuvwxyz"]
TINY = SIZES | {"hidden_size": 16, "num_hidden_layers": 1, "eos_token_id": 0}


def checkpoint(folder: Path, words: list[str], rows: int, seed: int = 0) -> str:
    """A random model of ``rows`` rows over the pieces ``words``."""
    torch.manual_seed(seed)
    LlamaForCausalLM(LlamaConfig(**TINY | {"vocab_size": rows})).save_pretrained(folder)
    pieces = {word: place for place, word in enumerate(words)}
    made = Tokenizer(models.WordLevel(pieces, unk_token="<eos>"))
    PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<eos>").save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    return load_target(checkpoint(tmp_path_factory.mktemp("t") / "t", WORDS, 30), device="cpu", dtype="float64")


SHUFFLED = [WORDS[0], *random.Random(1).sample(WORDS[1:], 26)]
PAIRS = {
    "padded": (WORDS, 40, True, "both tokenizers use 27, the rest is padding"),
    "narrower": (WORDS, 27, True, "both tokenizers use 27, the rest is padding"),
    "equal": (WORDS, 30, True, "all 27 ids have the same text"),
    "re-ordered": (SHUFFLED, 30, False, f"id 1 is 'a' for the target and {SHUFFLED[1]!r} for the draft"),
    "one added": ([*WORDS, "new"], 30, True, "the added token 27 ('new') only the draft has"),
    "other family": (["<eos>", "ab", "cd", *"xyz"], 6, False, "id 1 is 'a' for the target and 'ab' for the draft"),
}


def facts(folder: str) -> ModelFacts:
    found = facts_of(Path(folder).name, Path(folder))
    assert isinstance(found, ModelFacts)
    return found


@pytest.mark.parametrize("kind", PAIRS)
def test_inspect_and_runtime_judge_a_pair_alike(kind: str, target: Target, tmp_path: Path) -> None:
    words, rows, runs, evidence = PAIRS[kind]
    draft = checkpoint(tmp_path / "draft", words, rows, seed=1)
    checks = check_fit(pair_of(facts(str(target.folder)), facts(draft)))
    assert (fits(checks) != "no") == runs
    assert any(evidence in check.evidence for check in checks)
    setting = SpecDecodeConfig(DraftModel(), 3, model=draft)
    if not runs:
        with pytest.raises(SpecctlError, match="has another vocabulary") as refused:
            make_engine(target, setting, OPTIONS)
        assert evidence in refused.value.message
        assert "heterogeneous_vocab" in (refused.value.help or "")
        return
    engine = make_engine(target, setting, OPTIONS)
    requests = [
        ask(str(seed), [1 + seed, 29, 5], seed=seed, temperature=seed % 2, ignore_eos=True) for seed in range(4)
    ]
    plain = run(Engine(target, None, OPTIONS), requests)
    found = run(engine, requests)
    assert [found[name]["tokens"] for name in "02"] == [plain[name]["tokens"] for name in "02"]
    assert engine.stats.num_drafts > 20
    assert any("never proposes" in note for note in engine.notes) == (kind == "one added")


def test_a_token_that_only_the_draft_knows_is_never_proposed(target: Target, tmp_path: Path) -> None:
    draft = checkpoint(tmp_path / "draft", [*WORDS, "new"], 30)
    model = LlamaForCausalLM.from_pretrained(draft)
    with torch.no_grad():
        model.lm_head.weight[27] = model.lm_head.weight.sum(0) * 50  # without a mask it would nearly always win or lose
        model.lm_head.weight[28] = -model.lm_head.weight[27]
    model.save_pretrained(draft)
    for sampled in ("greedy", "probabilistic"):
        setting = SpecDecodeConfig(DraftModel(), 3, model=draft, draft_sample_method=sampled)
        engine = make_engine(target, setting, OPTIONS)
        proposed: list[int] = []
        propose = engine.proposer.propose  # type: ignore[union-attr]

        def listening(sequences: list, limits: list, propose=propose, proposed=proposed) -> list:  # type: ignore[no-untyped-def,type-arg]
            drafts = propose(sequences, limits)
            proposed.extend(token for draft in drafts for token in draft.tokens)
            return drafts

        engine.proposer.propose = listening  # type: ignore[union-attr,method-assign]
        run(engine, [ask("a", [3], temperature=1.0, seed=5, ignore_eos=True, max_tokens=40)])
        assert len(proposed) > 60
        assert 27 not in proposed


@pytest.mark.parametrize("tree", [None, Tree(topk=2, num_nodes=5)], ids=["chain", "tree"])
@pytest.mark.parametrize("kind", ["re-ordered", "other family"])
def test_two_tokenizers_joined_by_their_texts_change_nothing(
    kind: str, tree: Tree | None, target: Target, tmp_path: Path
) -> None:
    words, rows, *_ = PAIRS[kind]
    draft = checkpoint(tmp_path / "draft", words, rows, seed=1)
    engine = make_engine(target, SpecDecodeConfig(DraftModel(True), 3, model=draft, tree=tree), OPTIONS)
    assert "has another tokenizer: it shares" in engine.notes[0]
    requests = [ask(str(first), [first, 2, 9], ignore_eos=True, max_tokens=40) for first in range(1, 7)]
    plain = run(Engine(target, None, OPTIONS), requests)
    found = run(engine, requests)
    assert {name: result["tokens"] for name, result in found.items()} == {n: r["tokens"] for n, r in plain.items()}
    assert engine.stats.num_drafts > 40


def test_a_shuffled_copy_of_the_target_is_accepted_whole(tmp_path: Path) -> None:
    """The ids are carried over rightly in both directions: the same model under other ids is never wrong."""
    target = load_target(checkpoint(tmp_path / "target", WORDS, 27), device="cpu", dtype="float64")
    model = LlamaForCausalLM.from_pretrained(target.folder)
    order = torch.tensor([WORDS.index(word) for word in SHUFFLED])
    with torch.no_grad():
        for weight in (model.model.embed_tokens.weight, model.lm_head.weight):
            weight.copy_(weight[order].clone())
    folder = checkpoint(tmp_path / "draft", SHUFFLED, 27)
    model.save_pretrained(folder)
    engine = make_engine(target, SpecDecodeConfig(DraftModel(True), 3, model=folder), OPTIONS)
    run(engine, [ask("a", [4, 9, 2], max_tokens=40, ignore_eos=True)])
    assert engine.stats.num_accepted_tokens == engine.stats.num_draft_tokens > 20


def test_sampled_text_of_a_joined_pair_follows_the_target(target: Target, tmp_path: Path) -> None:
    """Chi-square over two sampled tokens, drafts drawn by the draft's own distribution; a bias of 2 % is noticed."""
    draft = checkpoint(tmp_path / "draft", SHUFFLED, 30, seed=1)
    setting = SpecDecodeConfig(DraftModel(True), 1, model=draft, draft_sample_method="probabilistic")
    count = 20_000
    engine = make_engine(target, setting, EngineOptions(250, 16, 1000))
    found = run(
        engine, [ask(str(i), [3], seed=i, temperature=2.0, max_tokens=2, ignore_eos=True) for i in range(count)]
    )
    assert 0 < engine.stats.num_accepted_tokens < engine.stats.num_drafts
    wanted = _two_tokens(target, [3], 2.0) * count
    common = wanted.flatten().topk(150).indices
    seen = Counter(result["tokens"][0] * 30 + result["tokens"][1] for result in found.values())

    def p_value(expected: torch.Tensor) -> float:
        rows = [seen[int(cell)] for cell in common], expected.flatten()[common].tolist()
        counted, hoped = ([*cells, count - sum(cells)] for cells in rows)
        return float(chisquare(counted, hoped).pvalue)

    assert p_value(wanted) >= 1e-4
    biased = wanted.clone()
    biased.flatten()[common[0]] += 0.02 * count
    assert p_value(biased / biased.sum() * count) < 1e-4


def _two_tokens(target: Target, prompt: list[int], temperature: float) -> torch.Tensor:
    """The probability [30, 30] of each pair of tokens behind ``prompt``, from plain forwards."""

    def after(tokens: list[int]) -> torch.Tensor:
        cache = target.model.make_cache(1, len(tokens))
        logits = target.model.forward(tokens, [Span(0, 0, len(tokens))], cache, [len(tokens) - 1])
        return (logits[0] / temperature).softmax(-1)

    return torch.stack([chance * after([*prompt, token]) for token, chance in enumerate(after(prompt))])


@pytest.mark.parametrize(("one", "other"), [("Ġthe", "▁the"), ("Ċ", "<0x0A>"), ("Ġ", "▁"), ("x", "x")])
def test_ways_of_writing_a_piece_are_the_same_text(one: str, other: str) -> None:
    assert _plain(one) == _plain(other)
    assert _plain("Ġthe") != _plain("the")


def test_nothing_shared_is_refused(target: Target, tmp_path: Path) -> None:
    draft = checkpoint(tmp_path / "draft", ["0", "1", "2", "3"], 4)
    with pytest.raises(SpecctlError, match="share no token at all"):
        make_engine(target, SpecDecodeConfig(DraftModel(True), 3, model=draft), OPTIONS)


def test_a_draft_without_a_tokenizer_needs_the_targets_size(target: Target, tmp_path: Path) -> None:
    draft = Path(checkpoint(tmp_path / "draft", WORDS, 29))
    for file in draft.glob("*token*"):
        file.unlink()
    with pytest.raises(SpecctlError, match="has 30, and the draft has no tokenizer"):
        make_engine(target, SpecDecodeConfig(DraftModel(), 3, model=str(draft)), OPTIONS)

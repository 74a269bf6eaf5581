"""Heads on hidden states: every layout's proposals against its plain reference after every step, whatever was
accepted.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM

from specctl.errors import DamagedError, MissingError, SpecctlError
from specctl.runtime import Engine, EngineOptions, Target, make_engine
from specctl.runtime.draft import Draft
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.hf import load_adapted
from specctl.runtime.models.hidden import FINAL
from specctl.runtime.models.recognise import recognise
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import Eagle, Eagle3, Pard
from tests.runtime.head_kit import MADE, SIZES, MadeHead, eagle, eagle3, make_head, mtp
from tests.runtime.kit import ask, run

PROMPTS = {
    "one": [97],
    "few": list(b"abcabc"),
    "long": [random.Random(5).randrange(256) for _ in range(50)],
    "more": [random.Random(6).randrange(256) for _ in range(11)],
}


class Oracle:
    """The target in transformers, for true hidden states and the true continuation."""

    def __init__(self, folder: Path) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
        self._raw: list[Tensor] = []
        self._model.model.layers[-1].register_forward_hook(self._keep)

    def _keep(self, module: Any, args: Any, output: Any) -> None:
        self._raw = [output if isinstance(output, Tensor) else output[0]]

    @torch.inference_mode()
    def states(self, tokens: list[int]) -> Mapping[int, Tensor]:
        out = self._model(torch.tensor([tokens]), output_hidden_states=True, use_cache=False)
        states = dict(enumerate(state[0] for state in out.hidden_states[:-1]))
        return states | {len(states): self._raw[0].reshape(len(tokens), -1), FINAL: out.hidden_states[-1][0]}


@pytest.fixture(scope="session")
def oracle(checkpoint: Callable[..., Path]) -> Oracle:
    return Oracle(checkpoint())


class Schooled:
    """A proposer whose drafts are checked against the reference and then replaced by what makes the target accept a
    number of them that changes from step to step: the head's own memory must not suffer from either.
    """

    def __init__(self, proposer: Any, made: MadeHead, oracle: Oracle, truth: Mapping[str, list[int]]) -> None:
        self._proposer = proposer
        self._made = made
        self._oracle = oracle
        self._truth = truth
        self._dice = random.Random(3)
        self.compared = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proposer, name)

    def propose(self, sequences: list[Any], limits: list[int]) -> list[Draft]:
        drafts = self._proposer.propose(sequences, limits)
        taught = []
        for sequence, draft, limit in zip(sequences, drafts, limits, strict=True):
            if draft.tokens:
                states = self._oracle.states(sequence.tokens[:-1])
                assert draft.tokens == self._made.reference(sequence.tokens, states, len(draft.tokens))
                self.compared += len(draft.tokens)
            assert len(draft.tokens) == min(self._proposer.num_speculative_tokens, max(limit, 0))
            taught.append(Draft(self._teach(sequence, draft.tokens)))
        return taught

    def _teach(self, sequence: Any, drafted: list[int]) -> list[int]:
        right = self._truth[sequence.request.id][sequence.num_output :]
        known = right[: self._dice.randint(0, len(drafted))]
        return known + [(token + 1) % 256 for token in drafted[len(known) :]]


def check_against_reference(target: Target, setting: SpecDecodeConfig, made: MadeHead, oracle: Oracle) -> None:
    requests = [ask(name, prompt, ignore_eos=True, max_tokens=30) for name, prompt in PROMPTS.items()]
    plain = run(Engine(target, None, EngineOptions(4)), requests)
    engine = make_engine(target, setting, EngineOptions(3, None, 9))
    truth = {name: result["tokens"] for name, result in plain.items()}
    schooled: Any = Schooled(engine._proposer, made, oracle, truth)
    engine._proposer = schooled
    drafted = run(engine, requests)
    assert {name: result["tokens"] for name, result in drafted.items()} == truth
    assert schooled.compared > 100
    assert all(engine.stats.acceptance_length_histogram), "each number of accepted tokens must have come up"


@pytest.mark.parametrize("kind", MADE)
def test_every_draft_is_the_reference_s_whatever_was_accepted(
    kind: str, exact: Callable[..., Target], oracle: Oracle, tmp_path: Path
) -> None:
    made = make_head(kind, exact(), tmp_path / "head")
    setting = SpecDecodeConfig(made.method, 4, model=str(made.folder))
    check_against_reference(exact(), setting, made, oracle)


@pytest.mark.parametrize("kind", ["eagle", "eagle3-speculators", "mtp-mimo", "medusa-vllm", "mlp-speculator"])
def test_heads_run_on_targets_behind_the_adapter(
    kind: str, checkpoint: Callable[..., Path], exact: Callable[..., Target], oracle: Oracle, tmp_path: Path
) -> None:
    target = replace(exact(), model=load_adapted(checkpoint(), torch.float64, torch.device("cpu")))
    made = make_head(kind, target, tmp_path / "head")
    check_against_reference(target, SpecDecodeConfig(made.method, 4, model=str(made.folder)), made, oracle)


@pytest.mark.parametrize("named", ["pard_token", "mask_token_id", "setting"])
def test_pard_fills_its_masks_in_one_forward(
    named: str, checkpoint: Callable[..., Path], exact: Callable[..., Target], oracle: Oracle, tmp_path: Path
) -> None:
    """The reference runs the draft in transformers over all tokens and k - 1 masks behind them."""
    folder, mask = shutil.copytree(checkpoint("llama", 1), tmp_path / "draft"), 257
    if named != "setting":
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {named: mask}))
    draft = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)

    @torch.inference_mode()
    def reference(tokens: list[int], hidden: Mapping[int, Tensor], k: int) -> list[int]:
        logits = draft(torch.tensor([[*tokens, *[mask] * (k - 1)]])).logits[0, -k:]
        return [int(best) for best in logits.argmax(-1)]

    method = Pard(mask_token_id=mask if named == "setting" else None)
    setting = SpecDecodeConfig(method, 4, model=str(folder))
    check_against_reference(exact(), setting, MadeHead(folder, method, (), reference), oracle)
    if named == "setting":
        with pytest.raises(SpecctlError, match="mask token"):
            make_engine(exact(), SpecDecodeConfig(Pard(), 4, model=str(folder)), EngineOptions(1))


def test_a_step_after_guessed_rows_would_show(exact: Callable[..., Target], oracle: Oracle, tmp_path: Path) -> None:
    """The test above can fail: a head that keeps the rows of its own accepted guesses drafts something else."""
    made = make_head("eagle", exact(), tmp_path / "head")
    request = ask("few", PROMPTS["few"], ignore_eos=True, max_tokens=30)
    truth = {"few": run(Engine(exact(), None, EngineOptions(1)), [request])["few"]["tokens"]}
    engine = make_engine(exact(), SpecDecodeConfig(made.method, 4, model=str(made.folder)), EngineOptions(1))
    proposer: Any = engine._proposer
    honest = proposer.observe

    def lazy(sequence: Any, hidden: Tensor) -> None:
        kept = len(hidden) - 1  # the last of them was never guessed
        if sequence.num_output > 1 and kept:
            proposer._computed[sequence.slot] += kept
            hidden = hidden[kept:]
        honest(sequence, hidden)

    proposer.observe = lazy
    engine._proposer = Schooled(proposer, made, oracle, truth)  # type: ignore[assignment]
    with pytest.raises(AssertionError):
        run(engine, [request])


@pytest.mark.parametrize("kind", ["eagle", "eagle3", "eagle3.1", "peagle", "mtp-mimo", "mtp-qwen3_next"])
def test_a_head_s_cache_rests_on_true_states_after_every_step(
    kind: str, exact: Callable[..., Target], tmp_path: Path
) -> None:
    """Keys and values equal those of a head that is fed the true states from the beginning."""
    target, made = exact(), make_head(kind, exact(), tmp_path / "head")
    engine = make_engine(target, SpecDecodeConfig(made.method, 3, model=str(made.folder)), EngineOptions(3, None, 40))
    for name, prompt in PROMPTS.items():
        engine.add(ask(name, prompt, temperature=1.0, seed=4, ignore_eos=True))
    proposer: Any = engine._proposer
    checked = 0
    while engine.has_work():
        engine.step()
        for sequence in engine._scheduler.running:
            rows = proposer._computed[sequence.slot]
            if rows == 0:
                continue
            tokens = sequence.tokens[: rows + 1]
            cache = target.model.make_cache(1, 96)
            _, hidden = target.model.forward_tapped(
                tokens[:-1], [Span(0, 0, rows)], cache, [rows - 1], proposer.hidden_layers
            )
            clean, head = proposer._head.make_cache(1, 96), proposer._head
            head.forward(tokens[1:], head.enter(hidden), [Span(0, 0, rows)], clean, [rows - 1])
            begin = sequence.slot * proposer._cache.max_len
            for kept, fresh in zip(proposer._cache.kv, clean.kv, strict=True):
                torch.testing.assert_close(kept[begin : begin + rows], fresh[:rows], rtol=1e-8, atol=1e-8)
            checked += 1
    assert checked > 50


@pytest.mark.parametrize("adapted", [False, True])
def test_taps_are_the_hidden_states_of_transformers(
    adapted: bool, checkpoint: Callable[..., Path], exact: Callable[..., Target], oracle: Oracle
) -> None:
    model: Any = load_adapted(checkpoint(), torch.float64, torch.device("cpu")) if adapted else exact().model
    layers = (0, 2, FINAL) if adapted else (3, 0, 1, FINAL, 2)
    cache = model.make_cache(3, 96)
    tokens = {0: PROMPTS["few"], 2: PROMPTS["more"]}
    flat = [*tokens[0][:4], *tokens[2]]
    model.forward_tapped(flat, [Span(0, 0, 4), Span(2, 0, 11)], cache, [3], layers)
    flat = [*tokens[0][4:], 5, 6]
    logits, hidden = model.forward_tapped(flat, [Span(0, 4, 2), Span(2, 11, 2)], cache, [1, 3], layers)
    wanted = [oracle.states(tokens[0]), oracle.states([*tokens[2], 5, 6])]
    expected = torch.cat([torch.cat([states[layer][-2:] for layer in layers], -1) for states in wanted])
    # transformers computes norms in float32 whatever the model's dtype.
    close = 1e-9 if adapted else 1e-3
    torch.testing.assert_close(hidden, expected, rtol=close, atol=close)
    assert torch.equal(logits, model.forward(flat, [Span(0, 4, 2), Span(2, 11, 2)], cache, [1, 3]))


@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("slots", [1, 4])
def test_a_head_that_knows_the_target_is_always_right(
    k: int, slots: int, checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    """The target's next token hangs on its newest alone, and the head passes the embedding on: all k are accepted, also
    in steps after a draft that was spoilt on purpose.
    """
    from specctl.runtime import load_target

    folder = tmp_path / "target"
    tensors = load_file(checkpoint() / "model.safetensors")
    silent = {n: torch.zeros_like(v) if "o_proj" in n or "down_proj" in n else v for n, v in tensors.items()}
    silent |= {n: torch.ones_like(v) for n, v in silent.items() if "norm" in n}
    folder.mkdir()
    for file in checkpoint().iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    save_file(silent, folder / "model.safetensors", {"format": "pt"})
    target = load_target(str(folder), device="cpu", dtype="float64")
    made = eagle(target, tmp_path / "head", bias=False)
    head = load_file(made.folder / "model.safetensors")
    head |= {n: torch.zeros_like(v) for n, v in head.items() if "o_proj" in n or "down_proj" in n}
    head["fc.weight"] = torch.cat([torch.eye(32), torch.zeros(32, 32)], -1).double()
    save_file(head, made.folder / "model.safetensors")
    engine = make_engine(target, SpecDecodeConfig(made.method, k, model=str(made.folder)), EngineOptions(slots))
    dice, proposer, spoilt = random.Random(8), engine._proposer, [0]
    honest = proposer.propose  # type: ignore[union-attr]

    def sometimes_wrong(sequences: Any, limits: Any) -> list[Draft]:
        drafts = honest(sequences, limits)
        for draft in drafts:
            if dice.random() < 0.3:
                place = dice.randrange(len(draft.tokens))
                draft.tokens[place] = (draft.tokens[place] + 1) % 256
                spoilt[0] += len(draft.tokens) - place
        return drafts

    proposer.propose = sometimes_wrong  # type: ignore[union-attr,method-assign]
    run(engine, [ask(name, prompt, ignore_eos=True, max_tokens=30) for name, prompt in PROMPTS.items()])
    stats = engine.stats
    assert spoilt[0] > 0
    assert 1 + (stats.num_accepted_tokens + spoilt[0]) / stats.num_drafts >= k + 0.95


@pytest.mark.parametrize(
    ("ids", "taps"),
    [([1, 1, 2], (2, 2, 3)), ([2, 1, 0], (2, 1, 0)), ([0, 1, 3], (0, 1, 3)), ([0, 2, 1], None), ([1, 2, 3], None)],
)
def test_taps_of_both_conventions_and_those_that_could_be_either(
    ids: list[int], taps: tuple[int, ...] | None, exact: Callable[..., Target], tmp_path: Path
) -> None:
    eagle3(exact(), tmp_path / "head", stated=ids)

    def hidden_layers(**keys: Any) -> tuple[int, ...]:
        spec = SpecDecodeConfig(Eagle3(**keys), 3, model=str(tmp_path / "head"))
        return make_engine(exact(), spec, EngineOptions(1))._proposer.hidden_layers  # type: ignore[union-attr]

    if taps is None:
        with pytest.raises(DamagedError, match=r"one less[\s\S]*aux_layers"):
            hidden_layers()
    else:
        assert hidden_layers() == taps
    assert hidden_layers(aux_layers=(1, 2, 3)) == (1, 2, 3), "the setting wins"
    with pytest.raises(SpecctlError, match="layer 4; the target has 3"):
        hidden_layers(aux_layers=(1, 2, 4))


def break_tensor(folder: Path, name: str, change: Callable[[Tensor], Tensor | None]) -> None:
    tensors = load_file(folder / "model.safetensors")
    changed = change(tensors.pop(name))
    save_file(tensors | ({} if changed is None else {name: changed.contiguous()}), folder / "model.safetensors")


def spoil_one(value: Tensor) -> Tensor:
    return value.index_fill(0, torch.tensor([3]), float("nan"))


@pytest.mark.parametrize(
    ("name", "change", "kind", "says"),
    [
        ("fc.weight", lambda _: None, MissingError, r"no tensor 'fc\.weight'"),
        ("fc.weight", lambda v: v[:, :64], DamagedError, r"'fc\.weight' is \[32, 64\], wanted \[32, 96\]"),
        ("midlayer.mlp.up_proj.weight", lambda v: v[1:], DamagedError, r"\[39, 32\], wanted \[40, 32\]"),
        ("midlayer.self_attn.q_proj.weight", lambda v: v[:, 32:], DamagedError, r"wanted \[32, 64\]"),
        ("lm_head.weight", spoil_one, DamagedError, r"32 values of tensor 'lm_head\.weight' are not finite"),
        ("d2t", lambda v: v + 200, DamagedError, r"'d2t' leads to token \d+; the target has 258"),
        ("d2t", lambda v: v.double(), DamagedError, r"'d2t' is torch\.float64"),
        ("d2t", lambda _: None, DamagedError, r"scores 100 tokens of the target's 258"),
    ],
)
def test_a_bad_head_is_named_with_file_tensor_found_and_wanted(
    name: str, change: Any, kind: type[Exception], says: str, exact: Callable[..., Target], tmp_path: Path
) -> None:
    made = eagle3(exact(), tmp_path / "head")
    break_tensor(made.folder, name, change)
    with pytest.raises(kind, match=says) as error:
        make_engine(exact(), SpecDecodeConfig(made.method, 3, model=str(made.folder)), EngineOptions(1))
    assert str(made.folder) in str(error.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hidden_size": 64}, "64"),
        ({"num_hidden_layers": "one"}, "num_hidden_layers is 'one'"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": "big"}}, r"config\.json"),
        ({"rms_norm_eps": "tiny"}, r"config\.json"),
        ({"hidden_size": None}, "no whole number under hidden_size"),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "rope type 'dynamic'"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": "2,1,0"}}, "list of whole numbers"),
    ],
)
def test_a_bad_config_is_named(change: dict[str, Any], says: str, exact: Callable[..., Target], tmp_path: Path) -> None:
    made = eagle3(exact(), tmp_path / "head")
    path = made.folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(SpecctlError, match=says):
        make_engine(exact(), SpecDecodeConfig(made.method, 3, model=str(made.folder)), EngineOptions(1))


def test_the_block_reference_is_what_transformers_computes(
    exact: Callable[..., Target], oracle: Oracle, tmp_path: Path
) -> None:
    """transformers has this architecture under the name of one model; only two tensors are called differently."""
    families = pytest.importorskip("transformers.models.muse_glimmer_assistant.modeling_muse_glimmer_assistant")
    made = make_head("dflash", exact(), tmp_path / "head")
    raw = json.loads((made.folder / "config.json").read_text())
    sizes = {key: raw[key] for key in SIZES if key not in ("rope_theta", "vocab_size")}
    config = families.MuseGlimmerAssistantConfig(
        **sizes,
        rope_parameters={"rope_type": "default", "rope_theta": raw["rope_theta"]},
        layer_types=["full_attention"] * raw["num_hidden_layers"],
        **raw["dflash_config"],
    )
    model = families.MuseGlimmerAssistantModel(config).double().eval()
    renamed = {"fc.weight": "encoder.fc.weight", "hidden_norm.weight": "encoder.output_norm_enc.weight"}
    stored = load_file(made.folder / "model.safetensors")
    model.load_state_dict({renamed.get(name, name): value for name, value in stored.items()})
    for tokens in PROMPTS.values():
        states = oracle.states(tokens)
        context = torch.cat([states[tap] for tap in made.taps], -1)[None]
        block = exact().model.embedding[[5, *[raw["dflash_config"]["mask_token_id"]] * 4]][None]
        with torch.inference_mode():
            out = model(noise_embeds=block, context_hidden_states=context).last_hidden_state[0, 1:]
        assert (out @ exact().model.head.T).argmax(-1).tolist() == made.reference([*tokens, 5], states, 4)


@pytest.mark.parametrize("kind", MADE)
def test_a_folder_is_recognised_by_its_content(kind: str, exact: Callable[..., Target], tmp_path: Path) -> None:
    made = make_head(kind, exact(), tmp_path / "head")
    config = json.loads((made.folder / "config.json").read_text())
    stored = made.folder / "model.safetensors"
    names = list(load_file(stored)) if stored.exists() else []
    assert recognise(config, names) == (made.method.name if names or kind != "eagle-pickled" else None)


def test_what_is_no_head_is_not_taken_for_one(checkpoint: Callable[..., Path]) -> None:
    for family in ("llama", "qwen3"):
        config = json.loads((checkpoint(family) / "config.json").read_text())
        assert recognise(config, list(load_file(checkpoint(family) / "model.safetensors"))) is None
    assert recognise({"pard_token": 7, "model_type": "llama"}, ["model.norm.weight"]) == "pard"
    assert recognise({"speculators_model_type": "dflash2"}, ["fc.weight"]) == "dspark"
    assert recognise({"text_config": {"mtp_num_hidden_layers": 1}}, ["model.norm.weight"]) == "mtp"


def test_other_refusals(exact: Callable[..., Target], tmp_path: Path) -> None:
    def engine(made: MadeHead, k: int | None = 3, method: Any = None) -> Engine:
        return make_engine(
            exact(), SpecDecodeConfig(method or made.method, k, model=str(made.folder)), EngineOptions(1)
        )

    made = make_head("medusa-vllm", exact(), tmp_path / "medusa")
    assert engine(made, None).num_speculative_tokens == 4
    with pytest.raises(SpecctlError, match="drafts 1 to 4"):
        engine(made, 5)
    assert engine(make_head("eagle3-speculators", exact(), tmp_path / "s"), None).num_speculative_tokens == 4
    experts = mtp(exact(), tmp_path / "mtp", "mimo")
    tensors = load_file(experts.folder / "model.safetensors")
    save_file(tensors | {"model.mtp_layers.0.mlp.gate.weight": torch.zeros(2, 2)}, experts.folder / "model.safetensors")
    with pytest.raises(SpecctlError, match="experts"):
        engine(experts)
    with pytest.raises(SpecctlError, match="method 'medusa'; the setting says 'mtp'"):
        engine(made, 3, experts.method)
    config = json.loads((experts.folder / "config.json").read_text())
    (experts.folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2}))
    break_tensor(experts.folder, "model.mtp_layers.0.input_proj.weight", lambda _: None)
    with pytest.raises(SpecctlError, match="no prediction layer"):
        engine(experts)
    with pytest.raises(SpecctlError, match="no tensor 'mask_hidden'"):
        engine(make_head("eagle3", exact(), tmp_path / "chain"), 3, Eagle3(parallel_drafting=True))
    with pytest.raises(SpecctlError, match="parallel_drafting"):
        engine(make_head("eagle", exact(), tmp_path / "eagle"), 3, Eagle(parallel_drafting=True))
    with pytest.raises(SpecctlError, match="drafts 1 to 4"):
        engine(make_head("dflash", exact(), tmp_path / "block"), 5)

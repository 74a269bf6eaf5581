"""Heads on hidden states: every layout's proposals against its plain reference after every step, whatever was
accepted.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForCausalLM

from specctl.errors import SpecctlError
from specctl.runtime import EngineOptions, Target, make_engine
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.hf import load_adapted
from specctl.runtime.models.hidden import FINAL
from specctl.spec.config import SpecDecodeConfig, Tree
from specctl.spec.methods import DraftModel, Pard
from tests.runtime.head_kit import MADE, make_head
from tests.runtime.head_parts import SIZES, MadeHead
from tests.runtime.kit import ask
from tests.runtime.schooled import PROMPTS, Oracle, check_against_reference
from tests.runtime.tree_kit import DEPTH, DYNAMIC, STATIC


@pytest.mark.parametrize("kind", MADE)
def test_every_draft_is_the_reference_s_whatever_was_accepted(
    kind: str, exact: Callable[..., Target], oracle: Oracle, tmp_path: Path
) -> None:
    made = make_head(kind, exact(), tmp_path / "head")
    setting = SpecDecodeConfig(made.method, 4, model=str(made.folder))
    check_against_reference(exact(), setting, made, oracle)


@pytest.mark.parametrize("tree", [STATIC, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize("kind", ["eagle", "eagle3", "eagle3.1", "mtp-mimo", "medusa-vllm-mapped", "mlp-speculator"])
def test_every_tree_is_the_reference_s_whatever_was_accepted(
    kind: str, tree: Tree, exact: Callable[..., Target], oracle: Oracle, tmp_path: Path
) -> None:
    made = make_head(kind, exact(), tmp_path / "head")
    setting = SpecDecodeConfig(made.method, DEPTH, model=str(made.folder), tree=tree)
    check_against_reference(exact(), setting, made, oracle)


@pytest.mark.parametrize("tree", [STATIC, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize("adapted", [False, True], ids=["native", "adapter"])
def test_every_tree_of_a_draft_model_is_the_reference_s(
    adapted: bool,
    tree: Tree,
    checkpoint: Callable[..., Path],
    exact: Callable[..., Target],
    oracle: Oracle,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = checkpoint("llama", 1)
    draft = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    if adapted:
        model = load_adapted(folder, torch.float64, torch.device("cpu"))
        monkeypatch.setattr("specctl.runtime.proposers.draft_model.load_model", lambda *_: model)

    @torch.inference_mode()
    def scores(tokens: list[int], hidden: Mapping[int, Tensor], path: list[int]) -> Tensor:
        found: Tensor = draft(torch.tensor([[*tokens, *path]])).logits[0, -1]
        return found

    def never(tokens: list[int], hidden: Mapping[int, Tensor], k: int) -> list[int]:
        raise AssertionError("no chain is asked for")

    setting = SpecDecodeConfig(DraftModel(), DEPTH, model=str(folder), tree=tree)
    check_against_reference(exact(), setting, MadeHead(folder, DraftModel(), (), never, scores), oracle)


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


@pytest.mark.parametrize("kind", ["eagle", "eagle3", "eagle3.1", "peagle", "mtp-mimo", "mtp-qwen3_next"])
def test_a_head_s_cache_rests_on_true_states_after_every_step(
    kind: str, exact: Callable[..., Target], tmp_path: Path
) -> None:
    """Keys and values equal those of a head that is fed the true states from the beginning."""
    target, made = exact(), make_head(kind, exact(), tmp_path / "head")
    engine = make_engine(target, SpecDecodeConfig(made.method, 3, model=str(made.folder)), EngineOptions(3, None, 40))
    for name, prompt in PROMPTS.items():
        engine.add(ask(name, prompt, temperature=1.0, seed=4, ignore_eos=True))
    proposer: Any = engine._drafting.proposer
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

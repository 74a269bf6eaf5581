"""Every family of targets: the tokens of transformers' own generate, plain and with every method, and a cache that can
be cut back anywhere.
"""

from __future__ import annotations

import importlib.util
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from specctl.errors import DamagedError, SpecctlError
from specctl.runtime import Engine, EngineOptions, Target, load_target, make_engine
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.exact import Exact
from specctl.runtime.models.families import FAMILIES, NATIVE
from specctl.runtime.models.flat import FlatModel
from specctl.runtime.models.hidden import FINAL
from specctl.runtime.models.pretrained import load_network
from specctl.spec.config import Tree
from tests.runtime.family_kit import TINIES, write_family
from tests.runtime.family_methods import METHODS, PROMPTS, has, outputs, setting

ROOT = Path(__file__).parents[2]
# The families that differ in their layers, not in their wrapping; these meet every method here.
DISTINCT = (
    "mixtral-window", "qwen3_next", "qwen3_5", "qwen3_5_moe_text", "deepseek_v3", "gemma3_text", "gemma4_text",
    "gpt_oss", "glm4_moe", "ernie4_5_moe", "step3p7", "mimo", "qwen3_moe",
)  # fmt: skip


ALWAYS = ("ngram", "relative", "eagle3", "mtp")
# Chunked prefill, and fewer slots than requests: slots are used again.
MIXED = EngineOptions(2, None, 11)


@pytest.fixture(scope="session")
def family(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a family's checkpoint, made once a session."""
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = write_family(name, tmp_path_factory.mktemp(name))
        return made[name]

    return get


@pytest.fixture(scope="session")
def target(family: Callable[[str], Path]) -> Callable[[str], Target]:
    """A family's target in float64."""
    loaded: dict[str, Target] = {}

    def get(name: str) -> Target:
        if name not in loaded:
            loaded[name] = load_target(str(family(name)), device="cpu", dtype="float64")
        return loaded[name]

    return get


@pytest.fixture(scope="session")
def plain(target: Callable[[str], Target]) -> Callable[[str], dict[str, list[int]]]:
    """What plain decoding of a family answers to the prompts."""
    done: dict[str, dict[str, list[int]]] = {}

    def get(name: str) -> dict[str, list[int]]:
        if name not in done:
            done[name] = outputs(Engine(target(name), None, EngineOptions(3)))
        return done[name]

    return get


@pytest.mark.parametrize("name", TINIES)
def test_plain_decoding_is_transformers_generate(
    name: str, family: Callable[[str], Path], plain: Callable[[str], dict[str, list[int]]]
) -> None:
    oracle = load_network(family(name), torch.float64, torch.device("cpu"))
    oracle.set_experts_implementation("eager")
    for request, prompt in PROMPTS.items():
        out = oracle.generate(
            torch.tensor([prompt]), max_new_tokens=14, do_sample=False, eos_token_id=-1, pad_token_id=0
        )
        assert plain(name)[request] == out[0, len(prompt) :].tolist()


@pytest.mark.parametrize("name", TINIES)
def test_cutting_back_after_any_accept_count_leaves_no_trace(name: str, target: Callable[[str], Target]) -> None:
    """Two sequences beside each other, cut at different places, twice in a row and after single rows as well."""
    model = target(name).model
    texts = {slot: [random.Random(slot).randrange(256) for _ in range(40)] for slot in (0, 2)}
    clean = model.make_cache(1, 96)
    wanted = {}
    for slot, text in texts.items():
        wanted[slot] = model.forward(text, [Span(0, 0, 40)], clean, range(40))
    for accepted in range(6):
        cache = model.make_cache(3, 96)
        done = dict.fromkeys(texts, 0)
        plan = [(17, 17), (1 + accepted, 6), (6 - accepted, 6), (1, 1), (1, 1), (4, 4)]
        for step, (kept, count) in enumerate(plan):
            spans, flat = [], []
            for slot, text in texts.items():
                kept_here = kept if slot == 0 or step not in (1, 2) else count - kept + 1
                begin = done[slot]
                spans.append(Span(slot, begin, count))
                right = text[begin : begin + kept_here]
                flat += right + [(token + 1) % 256 for token in text[begin + kept_here : begin + count]]
                done[slot] = begin + kept_here
            logits = model.forward(flat, spans, cache, range(len(flat)))
            for i, span in enumerate(spans):
                rows = logits[i * count : i * count + done[span.slot] - span.start]
                torch.testing.assert_close(rows, wanted[span.slot][span.start : done[span.slot]], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", TINIES)
def test_the_table_says_how_a_family_runs_and_what_it_ships(name: str, target: Callable[[str], Target]) -> None:
    row = next(row for row in FAMILIES if name.split("-")[0] in row.types)
    assert isinstance(target(name).model, FlatModel) == (row.way != NATIVE)
    # Gemma 4's drafts lie in a repository of their own, and Kimi's config counts none.
    assert row.drafts.startswith("mtp") == (TINIES[name].mtp is not None or name.startswith("gemma4"))


def test_every_type_in_the_table_is_tried() -> None:
    tried = {name.split("-")[0] for name in TINIES} | {"llama", "mistral", "qwen2", "qwen3"}
    assert {kind for row in FAMILIES for kind in row.types} == tried


def test_absent_tensors_are_named_not_made_up(family: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shutil.copytree(family("qwen3_moe"), tmp_path / "cut")
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.2.self_attn.o_proj.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(DamagedError, match=r"1 tensors .*layers\.2\.self_attn\.o_proj"):
        load_target(str(folder), device="cpu")


def test_a_type_that_transformers_lacks_is_refused_by_name(family: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shutil.copytree(family("qwen3_moe"), tmp_path / "odd")
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_type": "kimi_k3"}))
    with pytest.raises(SpecctlError, match=r"'kimi_k3' does not run .* transformers has no model"):
        load_target(str(folder), device="cpu")


@pytest.mark.parametrize("name", TINIES)
def test_a_draft_changes_no_token(
    name: str,
    target: Callable[[str], Target],
    plain: Callable[[str], dict[str, list[int]]],
    tmp_path: Path,
) -> None:
    """`family_methods` tries the full cross product."""
    if name in DISTINCT:
        others = [method for method in METHODS if method not in ALWAYS]
        methods = (*ALWAYS, others[DISTINCT.index(name) % len(others)])
    else:
        methods = ("mtp",) if has(name, "mtp") else ("relative",)
    for place, method in enumerate(method for method in methods if has(name, method)):
        k = 2 + (place + len(name)) % 4
        engine = make_engine(target(name), setting(method, target(name), tmp_path, k), MIXED)
        assert outputs(engine) == plain(name), method
        assert engine.stats.num_drafts > 0, method
        assert method != "same" or engine.stats.mean_acceptance_length == k + 1


@pytest.mark.parametrize("name", ["gemma4_text", "deepseek_v3", "qwen3_5"])
def test_a_tree_changes_no_token_or_is_refused(
    name: str, target: Callable[[str], Target], plain: Callable[[str], dict[str, list[int]]], tmp_path: Path
) -> None:
    spec = replace(setting("relative", target(name), tmp_path, 3), tree=Tree(topk=2, num_nodes=8))
    if name == "qwen3_5":
        with pytest.raises(
            SpecctlError,
            match=r"2 of its layers \(the first is layer 0\) keep a recurrent state, which follows one path",
        ):
            make_engine(target(name), spec, MIXED)
        return
    engine = make_engine(target(name), spec, MIXED)
    assert outputs(engine) == plain(name)
    assert engine.stats.mean_acceptance_length > 1.5


@pytest.mark.parametrize("name", DISTINCT)
def test_taps_are_the_hidden_states_of_transformers(
    name: str, family: Callable[[str], Path], target: Callable[[str], Target]
) -> None:
    model, layers = target(name).model, (0, 3, FINAL, 1)
    tokens = PROMPTS["long"]
    network = load_network(family(name), torch.float64, torch.device("cpu"))
    network.set_experts_implementation("eager")
    with torch.inference_mode(), Exact():
        states = network(torch.tensor([tokens]), output_hidden_states=True, use_cache=False).hidden_states
    wanted = torch.cat([states[layer][0] for layer in layers], -1)
    cache = model.make_cache(2, 96)
    _, first = model.forward_tapped(tokens[:20], [Span(1, 0, 20)], cache, [19], layers)
    _, second = model.forward_tapped(tokens[20:], [Span(1, 20, 25)], cache, [24], layers)
    # The network's rotations are under `Exact` here and float32 there, as the models were trained.
    torch.testing.assert_close(torch.cat([first, second]), wanted, rtol=1e-4, atol=1e-4)


def test_the_page_of_families_is_fresh() -> None:
    found = importlib.util.spec_from_file_location("families_page", ROOT / "docs" / "families_page.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    assert module.PAGE.read_text("utf-8") == module.page(), "run: python docs/families_page.py"
    assert module.README.read_text("utf-8") == module.readme(), "run: python docs/families_page.py"

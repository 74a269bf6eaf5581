"""Folders of draft heads: what they are told to be, which layers they tap, and what is said of bad ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from specctl.errors import DamagedError, MissingError, SpecctlError
from specctl.modelinfo.recognise import recognise
from specctl.runtime import Engine, EngineOptions, Target, make_engine
from specctl.spec.config import SpecDecodeConfig
from specctl.spec.methods import DraftModel, Eagle, Eagle3, Method, Pard
from tests.runtime.eagle_heads import eagle3
from tests.runtime.head_kit import MADE, make_head
from tests.runtime.head_parts import WIDTH, MadeHead
from tests.runtime.mtp_heads import mtp


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
        return make_engine(exact(), spec, EngineOptions(1)).proposer.hidden_layers  # type: ignore[union-attr]

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


# A product of each layout, whose absence, shape, dtype or values must be noticed.
LAYOUTS = {
    "eagle": "fc.weight",
    "eagle3-speculators": "layers.0.self_attn.k_proj.weight",
    "peagle": "mask_hidden",
    "mtp-deepseek_v3": "model.layers.3.eh_proj.weight",
    "mtp-mimo": "model.mtp_layers.0.input_proj.weight",
    "mtp-qwen3_next": "mtp.fc.weight",
    "mtp-ernie4_5_moe": "model.mtp_linear_proj.0.weight",
    "medusa-merged": "medusa_head.1.0.linear.weight",
    "medusa-vllm": "lm_heads.1.weight",
    "mlp-speculator": "proj.1.weight",
    "dflash": "fc.weight",
}
FAULTS: dict[str, Callable[[Tensor], Tensor | None]] = {
    "absent": lambda _: None,
    "another shape": lambda value: value[..., 1:],
    "not a number": lambda value: torch.full_like(value, float("nan")),
    "another dtype": lambda value: value.to(torch.complex64),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_every_layout_names_a_bad_tensor(kind: str, fault: str, exact: Callable[..., Target], tmp_path: Path) -> None:
    made = make_head(kind, exact(), tmp_path / "head")
    break_tensor(made.folder, LAYOUTS[kind], FAULTS[fault])
    with pytest.raises(SpecctlError) as error:
        make_engine(exact(), SpecDecodeConfig(made.method, 3, model=str(made.folder)), EngineOptions(1))
    assert str(made.folder) in error.value.message
    if fault != "absent" or kind.startswith(("eagle", "medusa", "mlp", "dflash")):  # others are told by that tensor
        assert LAYOUTS[kind] in error.value.message


@pytest.mark.parametrize("kind", [*LAYOUTS, "eagle3"])
def test_every_layout_names_the_config_of_another_target(
    kind: str, checkpoint: Callable[..., Path], exact: Callable[..., Target], tmp_path: Path
) -> None:
    """The head of a target twice as wide."""
    made = make_head(kind, exact(), tmp_path / "head")
    path = made.folder / "config.json"
    text = path.read_text().replace(f'"hidden_size": {WIDTH}', f'"hidden_size": {2 * WIDTH}')
    path.write_text(text.replace(f'"emb_dim": {WIDTH}', f'"emb_dim": {2 * WIDTH}'))
    if kind.startswith("medusa"):  # its config states no width: the tensors are those of another target
        break_tensor(made.folder, LAYOUTS[kind], lambda value: torch.cat([value, value], -1))
    with pytest.raises(SpecctlError, match=rf"\b({WIDTH}|{2 * WIDTH})\b") as error:
        make_engine(exact(), SpecDecodeConfig(made.method, 3, model=str(made.folder)), EngineOptions(1))
    assert str(made.folder) in error.value.message


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
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": []}}, "list of whole numbers"),
        ({"eagle_config": "none"}, "eagle_config is 'none'; wanted an object"),
        ({"eagle_config": {"use_aux_hidden_state": "no"}}, "use_aux_hidden_state is 'no'; wanted true or false"),
        ({"norm_before_residual": "false"}, "norm_before_residual is 'false'; wanted true or false"),
        ({"norm_output": 1}, "norm_output is 1; wanted true or false"),
        ({"draft_vocab_size": 50}, "draft_vocab_size is 50; the head's matrix scores 100 tokens"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True"),
        ({"num_hidden_layers": 2**70}, "num_hidden_layers is 1180591620717411303424; the weights hold 15 tensors"),
        ({"rope_theta": 2**70 * 10**20}, "rope_theta"),
        ({"rope_theta": 2**70}, "rope_theta is 1180591620717411303424; wanted"),
        ({"rope_theta": -1.0}, r"rope_theta is -1\.0; wanted"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps is nan"),
        ({"partial_rotary_factor": 1.5}, r"partial_rotary_factor is 1\.5"),
        ({"partial_rotary_factor": [1]}, r"partial_rotary_factor is \[1\]"),
        ({"head_dim": 0}, "head_dim is 0"),
    ],
)
def test_a_bad_config_is_named(change: dict[str, Any], says: str, exact: Callable[..., Target], tmp_path: Path) -> None:
    made = eagle3(exact(), tmp_path / "head")
    path = made.folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(SpecctlError, match=says):
        make_engine(exact(), SpecDecodeConfig(made.method, 3, model=str(made.folder)), EngineOptions(1))


def test_a_projection_without_a_width_is_named(exact: Callable[..., Target], tmp_path: Path) -> None:
    """Where the config names no layers, their number is read from it."""
    made = make_head("dflash-without-ids", exact(), tmp_path / "head")
    file = made.folder / "model.safetensors"
    save_file(load_file(file) | {"fc.weight": torch.tensor(1.0)}, file)
    with pytest.raises(DamagedError, match=r"tensor 'fc.weight' is a single number"):
        make_engine(exact(), SpecDecodeConfig(made.method, 3, model=str(made.folder)), EngineOptions(1))


def test_what_a_head_cannot_use_is_named(exact: Callable[..., Target], tmp_path: Path) -> None:
    def notes(kind: str, more: dict[str, Tensor]) -> tuple[str, ...]:
        made = make_head(kind, exact(), tmp_path / kind)
        tensors = load_file(made.folder / "model.safetensors") | more
        save_file(tensors, made.folder / "model.safetensors")
        spec = SpecDecodeConfig(made.method, 3, model=str(made.folder))
        return make_engine(exact(), spec, EngineOptions(1)).proposer.notes  # type: ignore[union-attr]

    odd = {"layers.7.odd.weight": torch.ones(2)}
    for kind in ("eagle", "eagle3", "peagle", "medusa-merged", "mlp-speculator", "dflash"):
        assert notes(kind, {}) == ()
        told = notes(kind, odd)
        assert len(told) == 1
        assert f"{tmp_path / kind} holds tensors that its layout does not know" in told[0]
        assert "layers.7.odd.weight" in told[0]
    assert notes("medusa-merged", {"model.norm.weight": torch.ones(2), "lm_head.weight": torch.ones(2)}) == ()
    for norm in ("norm.weight", "layers.0.input_layernorm.weight", "pre_lm_head_layernorm.weight"):
        with pytest.raises(SpecctlError, match=f"EAGLE-2 do not have: tensor '{norm}'"):
            notes("eagle", {"embed_tokens.weight": torch.ones(258, WIDTH), norm: torch.ones(WIDTH)})
    with pytest.raises(DamagedError, match=r"'layers\.0\.self_attn\.o_proj\.bias' is \[3\], wanted \[32\]"):
        notes("eagle", {"layers.0.self_attn.o_proj.bias": torch.ones(3)})
    with pytest.raises(MissingError, match=r"no tensor 'layers\.0\.self_attn\.q_proj\.bias'"):
        notes("eagle", {"layers.0.self_attn.k_proj.bias": torch.ones(16)})
    with pytest.raises(DamagedError, match=r"embed_tokens\.weight has 200 rows; the target has 258"):
        notes("eagle3", {"embed_tokens.weight": torch.ones(200, WIDTH)})


@pytest.mark.parametrize("stated", [-1, "x", [1], 1.5])
def test_a_bad_count_of_prediction_layers_is_named(stated: Any, exact: Callable[..., Target], tmp_path: Path) -> None:
    made = make_head("mtp-mimo", exact(), tmp_path / "head")
    path = made.folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"num_nextn_predict_layers": stated}))
    with pytest.raises(DamagedError, match="num_nextn_predict_layers is"):
        make_engine(exact(), SpecDecodeConfig(made.method, 3, model=str(made.folder)), EngineOptions(1))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("medusa-vllm", "blocks.1.layers.0.weight"),
        ("medusa-merged", "medusa_head.1.0.linear.weight"),
        ("medusa-vllm-mapped", "lm_heads.2.weight"),
    ],
)
def test_a_head_missing_between_others_is_named(
    kind: str, name: str, exact: Callable[..., Target], tmp_path: Path
) -> None:
    made = make_head(kind, exact(), tmp_path / "head")
    break_tensor(made.folder, name, lambda _: None)
    with pytest.raises(MissingError, match=f"no tensor '{name}'"):
        make_engine(exact(), SpecDecodeConfig(made.method, 1, model=str(made.folder)), EngineOptions(1))


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
    with pytest.raises(SpecctlError, match=rf"is 5; medusa with {made.folder} drafts 1 to 4"):
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
    with pytest.raises(SpecctlError, match=r"no tensor 'model\.mtp_layers\.0\.input_proj\.weight'"):
        engine(experts)
    with pytest.raises(SpecctlError, match="no tensor 'mask_hidden'"):
        engine(make_head("eagle3", exact(), tmp_path / "chain"), 3, Eagle3(parallel_drafting=True))
    with pytest.raises(SpecctlError, match="parallel_drafting"):
        engine(make_head("eagle", exact(), tmp_path / "eagle"), 3, Eagle(parallel_drafting=True))
    with pytest.raises(SpecctlError, match="drafts 1 to 4"):
        engine(make_head("dflash", exact(), tmp_path / "block"), 5)


@pytest.mark.parametrize("method", [DraftModel(), Pard(mask_token_id=257)])
def test_a_draft_model_with_values_that_are_no_numbers_is_named(
    method: Method, checkpoint: Callable[..., Path], exact: Callable[..., Target], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoint(), tmp_path / "draft")
    break_tensor(folder, "model.norm.weight", spoil_one)
    with pytest.raises(DamagedError, match=r"model\.safetensors: 1 values of tensor 'model\.norm\.weight' are not"):
        make_engine(exact(), SpecDecodeConfig(method, 3, model=str(folder)), EngineOptions(1))

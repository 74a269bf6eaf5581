"""What checkpoints are and whether drafts fit, from folders written for the purpose."""

from __future__ import annotations

import json
import re
import struct
from math import prod
from pathlib import Path
from typing import Any

import pytest

from specctl.modelinfo import ModelFacts, ModelProblem, facts_of
from specctl.modelinfo.depth import beyond_depth
from specctl.modelinfo.describe import describe, method_of
from specctl.modelinfo.fit import check_fit, fits, pair_of

PIECES = ["<pad>", "a", "b", "c", "d", "ab", "cd", "abcd"]
SIZES = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 12,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "vocab_size": 8,
    "rope_theta": 10000.0, "torch_dtype": "bfloat16",
}  # fmt: skip
HEAD = SIZES | {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": 4}
HEAD_TENSORS = {"fc.weight": (64, 192), "midlayer.hidden_norm.weight": (64,), "d2t": (4,), "lm_head.weight": (4, 64)}


def folder(
    place: Path,
    config: dict[str, Any],
    pieces: list[str] | None = None,
    tensors: dict[str, tuple[int, ...]] | None = None,
) -> ModelFacts:
    """A checkpoint with a config, a tokenizer of ``pieces`` and empty weights of the shapes of ``tensors``."""
    place.mkdir()
    (place / "config.json").write_text(json.dumps(config), "utf-8")
    if pieces is not None:
        vocabulary = {piece: number for number, piece in enumerate(pieces)}
        (place / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}), "utf-8")
        (place / "chat_template.jinja").write_text("{{ messages }}", "utf-8")
    if tensors is not None:
        write_weights(place / "model.safetensors", tensors)
    found = facts_of(place.name, place)
    assert isinstance(found, ModelFacts)
    return found


def write_weights(file: Path, tensors: dict[str, tuple[int, ...]], lacking: int = 0) -> None:
    header, at = {}, 0
    for name, shape in tensors.items():
        header[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [at, at + 2 * prod(shape)]}
        at += 2 * prod(shape)
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + bytes(at - lacking))


@pytest.fixture
def target(tmp_path: Path) -> ModelFacts:
    return folder(tmp_path / "target", SIZES, PIECES)


def status(target: ModelFacts, draft: ModelFacts) -> tuple[str, dict[str, tuple[str, str]]]:
    checks = check_fit(pair_of(target, draft))
    return fits(checks), {check.name: (check.status, check.evidence) for check in checks}


@pytest.mark.parametrize(
    ("pieces", "rows", "verdict", "evidence"),
    [
        (PIECES, 8, "yes", "all 8 ids have the same text"),
        (PIECES, 64, "with-notes", "the target has 8 rows, the draft 64; both tokenizers use 8, the rest is padding"),
        ([*PIECES[:5], "cd", "ab", "abcd"], 8, "no", "id 5 is 'ab' for the target and 'cd' for the draft"),
        ([*PIECES, "<new>"], 9, "with-notes", "8 ('<new>') only the draft has; all other ids agree"),
        (["!", "?", "x", "y"], 4, "no", "id 0 is '<pad>' for the target and '!' for the draft"),
    ],
    ids=["equal", "padded", "re-ordered", "one added", "other family"],
)
def test_vocabularies_are_judged_by_their_ids(
    pieces: list[str], rows: int, verdict: str, evidence: str, target: ModelFacts, tmp_path: Path
) -> None:
    draft = folder(tmp_path / "draft", SIZES | {"num_hidden_layers": 2, "vocab_size": rows}, pieces)
    found, checks = status(target, draft)
    assert found == verdict
    assert any(evidence in said for _, said in checks.values())


def test_one_added_token_is_named_beside_the_sizes(target: ModelFacts, tmp_path: Path) -> None:
    draft = folder(tmp_path / "draft", SIZES | {"vocab_size": 9}, [*PIECES, "<new>"])
    checks = status(target, draft)[1]
    assert checks["tokenizer"][0] == checks["vocabulary"][0] == "note"
    assert checks["vocabulary"][1] == "the target has 8 rows, the draft 9"


def test_an_end_of_text_that_the_draft_reads_otherwise_is_no_small_thing(tmp_path: Path) -> None:
    config = SIZES | {"eos_token_id": [8]}
    target, draft = (folder(tmp_path / name, config, PIECES) for name in ("target", "draft"))
    for each, content in ((target, "</s>"), (draft, "<|im_end|>")):
        table = json.loads((each.path / "tokenizer.json").read_text("utf-8"))
        added = {"added_tokens": [{"id": 8, "content": content}]}
        (each.path / "tokenizer.json").write_text(json.dumps(table | added), "utf-8")
    verdict, checks = status(target, draft)
    assert verdict == "no"
    assert checks["tokenizer"][1].startswith("id 8 is '</s>' for the target and '<|im_end|>' for the draft")


def test_a_head_that_fits(target: ModelFacts, tmp_path: Path) -> None:
    found, checks = status(target, folder(tmp_path / "head", HEAD, None, HEAD_TENSORS))
    assert found == "yes"
    assert checks["method"][1] == "the draft is for eagle3, told by its content"
    assert checks["hidden size"][1] == "fc.weight reads 3 x 64"
    assert checks["vocabulary map"][1] == "4 of 8 tokens are drafted"


@pytest.mark.parametrize(
    ("config", "tensors", "check", "wanted", "evidence"),
    [
        ({"hidden_size": 32}, {}, "hidden size", "fail", "the head is made for states of 32, the target's have 64"),
        ({}, {"fc.weight": (64, 100)}, "hidden size", "fail", "fc.weight reads 100 numbers"),
        ({}, {"d2t": (5,)}, "vocabulary map", "fail", "d2t has the shape [5]; wanted [4]"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 6, 40]}}, {}, "tap layers", "fail", "has 12"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 6, 7]}}, {}, "tap layers", "note", "set aux_layers"),
        ({"max_position_embeddings": 128}, {}, "context", "note", "made for 128 positions, the target for 512"),
        ({"rope_theta": 5e5}, {}, "rope theta", "note", "500000; the target has 10000"),
        ({"torch_dtype": "float16"}, {}, "dtype", "note", "float16 may overflow"),
        ({"speculators_config": {"verifier": {"name_or_path": "org/other"}}}, {}, "trained for", "note", "org/other"),
    ],
)
def test_what_is_wrong_with_a_head_is_told_with_evidence(
    config: dict[str, Any],
    tensors: dict[str, tuple[int, ...]],
    check: str,
    wanted: str,
    evidence: str,
    target: ModelFacts,
    tmp_path: Path,
) -> None:
    found, checks = status(target, folder(tmp_path / "head", HEAD | config, None, HEAD_TENSORS | tensors))
    assert checks[check][0] == wanted
    assert evidence in checks[check][1]
    assert found == {"fail": "no", "note": "with-notes"}[wanted]


def test_a_reduced_vocabulary_without_its_map(target: ModelFacts, tmp_path: Path) -> None:
    tensors = {name: shape for name, shape in HEAD_TENSORS.items() if name != "d2t"}
    assert status(target, folder(tmp_path / "head", HEAD, None, tensors))[1]["vocabulary map"][0] == "fail"


def test_a_narrow_head_needs_an_embedding_of_its_own(target: ModelFacts, tmp_path: Path) -> None:
    config = HEAD | {"hidden_size": 32, "target_hidden_size": 64}
    alone = folder(tmp_path / "alone", config, None, HEAD_TENSORS)
    own = folder(tmp_path / "own", config, None, HEAD_TENSORS | {"embed_tokens.weight": (8, 32)})
    assert status(target, alone)[1]["embedding"][0] == "fail"
    assert status(target, own)[1]["embedding"] == ("ok", "the head brings its own")


def test_cut_off_weights_are_a_failure(target: ModelFacts, tmp_path: Path) -> None:
    head = folder(tmp_path / "head", HEAD, None, HEAD_TENSORS)
    write_weights(head.path / "model.safetensors", HEAD_TENSORS, lacking=10)
    found, checks = status(target, head)
    assert found == "no"
    assert "10 bytes more than the file has" in checks["draft weights"][1]


def test_a_model_is_no_draft_for_itself_and_a_head_no_target(target: ModelFacts, tmp_path: Path) -> None:
    head = folder(tmp_path / "head", HEAD, None, HEAD_TENSORS)
    assert status(target, target)[1]["method"][0] == "fail"
    assert status(head, target)[1]["method"] == ("fail", "the target is itself a draft for eagle3")


LAYER = "model.layers.12."
PREDICTION = [f"{LAYER}{name}.weight" for name in
              ("enorm", "hnorm", "eh_proj", "shared_head.norm", "self_attn.o_proj", "mlp.gate")]  # fmt: skip
ERNIE = [f"model.mtp_{name}.weight" for name in
         ("emb_norm.0", "hidden_norm.0", "linear_proj.0", "block.0.self_attn.o_proj", "block.0.mlp.up_proj")
         ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "declared", "names", "found", "fault"),
    [
        ("deepseek_v3", 1, PREDICTION, 1, None),
        ("deepseek_v3", None, PREDICTION, 1, None),
        ("deepseek_v3", 1, [], 0, None),
        ("deepseek_v3", 1, PREDICTION[1:], 1, "no tensor 'model.layers.12.enorm.weight'"),
        ("deepseek_v3", 1, PREDICTION[:2], 1, "no tensor 'model.layers.12.eh_proj.weight'"),
        ("deepseek_v3", 1, PREDICTION[:4], 1, "no tensor 'model.layers.12.self_attn.*'"),
        ("deepseek_v3", 1, [name.replace(".12.", ".14.") for name in PREDICTION], 1, "numbered 14; .* it would be 12"),
        ("ernie4_5", 1, ERNIE, 1, None),  # a family whose layers vLLM does not know
    ],
)
def test_prediction_layers_are_counted_in_config_and_tensors(
    kind: str, declared: int | None, names: list[str], found: int, fault: str | None, tmp_path: Path
) -> None:
    config = SIZES | {"model_type": kind} | ({} if declared is None else {"num_nextn_predict_layers": declared})
    names = ["model.layers.0.input_layernorm.weight", *names]
    about = describe(folder(tmp_path / "m", config, PIECES, dict.fromkeys(names, (1,))))
    told = about["mtp_layers"].pop("fault")
    assert about["mtp_layers"] == {"declared": declared, "found": found}
    assert told is None if fault is None else re.search(fault.replace("*'", r"\*'"), told)
    assert about["methods"] == ["ngram", "suffix", "draft_model", *(["mtp"] if found and not fault else [])]
    assert about["kind"] == "target"


def test_an_assistant_holds_no_counted_layers(tmp_path: Path) -> None:
    """It is prediction layers as a whole, made to run again and again."""
    facts = folder(tmp_path / "m", SIZES | {"model_type": "gemma4_assistant"}, None, {"pre_projection.weight": (1,)})
    assert describe(facts)["mtp_layers"] is None
    assert beyond_depth(facts, "mtp", 4) is None


def test_an_assistant_is_a_draft(tmp_path: Path) -> None:
    assert method_of(folder(tmp_path / "m", SIZES | {"model_type": "gemma4_assistant"})) == "mtp"


def test_an_assistant_wants_a_target_of_its_family(target: ModelFacts, tmp_path: Path) -> None:
    assistant = folder(tmp_path / "a", SIZES | {"model_type": "gemma4_assistant", "backbone_hidden_size": 64}, PIECES)
    verdict, checks = status(target, assistant)
    assert verdict == "no"
    assert checks["family"] == (
        "fail",
        "an assistant of Gemma 4 reads its target's keys and values; the target is llama",
    )
    own = folder(tmp_path / "gemma", SIZES | {"model_type": "gemma4_text"}, PIECES)
    assert "family" not in status(own, assistant)[1]


@pytest.mark.parametrize(
    ("keys", "fault"),
    [({"hidden_size": "64"}, "hidden_size is '64'"), ({"num_hidden_layers": -1}, "num_hidden_layers is -1"),
     ({"model_type": 7}, "model_type is 7")],
)  # fmt: skip
def test_a_config_that_cannot_be_meant_is_named(
    target: ModelFacts, keys: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    odd = folder(tmp_path / "odd", SIZES | keys, PIECES)
    assert fault in describe(odd)["damage"]
    assert fault in status(target, odd)[1]["draft config"][1]


def test_nothing_known_of_the_ids_is_a_note(target: ModelFacts, tmp_path: Path) -> None:
    assert status(target, folder(tmp_path / "bare", {"model_type": "llama"}))[0] == "with-notes"


def test_an_adapter_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "org/base"}), "utf-8")
    found = facts_of("lora", tmp_path)
    assert isinstance(found, ModelProblem)
    assert "an adapter (LoRA) of org/base, no model by itself" in found.message

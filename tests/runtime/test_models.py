"""The native decoder computes what transformers computes, and cuts its cache back without a trace."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, MambaConfig, MambaForCausalLM

from specctl.errors import DamagedError, MissingError, SpecctlError, UsageError
from specctl.runtime import Target, load_target
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.decoder import Decoder
from specctl.runtime.models.hf import AdaptedModel
from tests.runtime.kit import EOS, FAMILIES, OPTIONS, VOCAB, ask, run, save

# transformers computes its norms in float32 whatever the dtype, so float64 agrees to float32's precision only.
CLOSE = {"rtol": 1e-4, "atol": 2e-4}


def reference(folder: Path, tokens: list[int]) -> torch.Tensor:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    with torch.inference_mode():
        return model(torch.tensor([tokens])).logits[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_mixed_flat_batch_gives_each_sequence_its_own_logits(
    family: str, checkpoint: Callable[..., Path], exact: Callable[..., Target]
) -> None:
    model = exact(family).model
    assert isinstance(model, Decoder)
    dice = random.Random(1)
    texts = {slot: [dice.randrange(256) for _ in range(length)] for slot, length in ((0, 40), (1, 12), (3, 70))}
    cache = model.make_cache(4, 96)
    done = dict.fromkeys(texts, 0)
    got: dict[int, list[torch.Tensor]] = {slot: [] for slot in texts}
    for sizes in ({0: 35, 1: 5, 3: 1}, {0: 5, 1: 1, 3: 40}, {1: 6, 3: 29}):
        spans = [Span(slot, done[slot], size) for slot, size in sizes.items()]
        flat = [token for span in spans for token in texts[span.slot][span.start : span.end]]
        logits = model.forward(flat, spans, cache, list(range(len(flat))))
        for span, part in zip(spans, logits.split([span.count for span in spans]), strict=True):
            got[span.slot].append(part)
            done[span.slot] = span.end
    for slot, tokens in texts.items():
        assert done[slot] == len(tokens)
        torch.testing.assert_close(torch.cat(got[slot]), reference(checkpoint(family), tokens), **CLOSE)


@pytest.mark.parametrize("family", ["llama", "qwen2-window", "mistral-window", "qwen3"])
@pytest.mark.parametrize("accepted", range(6))
def test_cutting_back_after_any_accept_count_leaves_no_trace(
    family: str, accepted: int, exact: Callable[..., Target]
) -> None:
    model = exact(family).model
    tokens = [random.Random(2).randrange(256) for _ in range(30)]
    cache, clean = model.make_cache(1, 96), model.make_cache(1, 96)
    model.forward(tokens[:20], [Span(0, 0, 20)], cache, [19])
    wrong = [(token + 1) % 256 for token in tokens[20 + accepted : 26]]
    model.forward(tokens[20 : 20 + accepted] + wrong, [Span(0, 20, 6)], cache, [5])
    after = model.forward(tokens[20 + accepted :], [Span(0, 20 + accepted, 10 - accepted)], cache, [9 - accepted])
    plain = model.forward(tokens, [Span(0, 0, 30)], clean, [29])
    torch.testing.assert_close(after, plain, rtol=1e-9, atol=1e-9)
    for layer, clear in zip(cache.kv, clean.kv, strict=True):
        torch.testing.assert_close(layer[:30], clear[:30], rtol=1e-9, atol=1e-9)


def test_shards_with_an_index_load_like_one_file(
    checkpoint: Callable[..., Path], exact: Callable[..., Target], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoint("qwen3"), tmp_path / "sharded")
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in shards.items():
        save_file({name: tensors[name] for name in part}, folder / file)
    weight_map = {name: file for file, part in shards.items() for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (folder / "model.safetensors").unlink()
    model = load_target(str(folder), device="cpu", dtype="float64").model
    rows = [model.forward([5, 6, 7], [Span(0, 0, 3)], m.make_cache(1, 8), [2]) for m in (model, exact("qwen3").model)]
    assert torch.equal(rows[0], rows[1])
    (folder / "b.safetensors").unlink()
    with pytest.raises(MissingError, match=r"b\.safetensors"):
        load_target(str(folder), device="cpu")


@pytest.mark.parametrize("kept", [0, 3, 200, 5000])
def test_a_truncated_weight_file_is_named_with_its_size(
    kept: int, checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoint(), tmp_path / "cut")
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DamagedError, match=r"model\.safetensors.*bytes") as error:
        load_target(str(folder), device="cpu")
    assert error.value.exit_code == 3


def test_what_is_absent_is_named(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="looked for"):
        load_target("no-such-model", device="cpu")
    with pytest.raises(MissingError, match=r"config\.json"):
        load_target(str(tmp_path), device="cpu")
    folder = shutil.copytree(checkpoint(), tmp_path / "bare")
    (folder / "model.safetensors").unlink()
    with pytest.raises(MissingError, match="no weights") as error:
        load_target(str(folder), device="cpu")
    assert error.value.help
    tensors = load_file(checkpoint() / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(MissingError, match=r"layers\.1\.mlp\.up_proj"):
        load_target(str(folder), device="cpu")


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"hidden_size": 3}', '{"model_type": "no-such-type"}'])
def test_a_config_that_is_none_is_refused(text: str, checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint(), tmp_path / "odd")
    (folder / "config.json").write_text(text)
    with pytest.raises(SpecctlError, match=r"config\.json"):
        load_target(str(folder), device="cpu")


def test_devices_and_dtypes_that_are_not_there(checkpoint: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="float7"):
        load_target(str(checkpoint()), device="cpu", dtype="float7")
    with pytest.raises(UsageError, match="abacus"):
        load_target(str(checkpoint()), device="abacus")


def test_other_architectures_run_through_the_adapter(tmp_path: Path) -> None:
    torch.manual_seed(3)
    config = GPT2Config(
        vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=2, n_positions=96, eos_token_id=EOS, initializer_range=0.3
    )
    folder = save(GPT2LMHeadModel(config), tmp_path / "gpt2")
    target = load_target(str(folder), device="cpu", dtype="float64")
    assert isinstance(target.model, AdaptedModel)
    from specctl.runtime import Engine
    from specctl.runtime.proposers.ngram import NgramProposer

    prompts = {"a": list(b"one two one two one"), "b": list(b"xyz")}
    requests = [ask(name, prompt, ignore_eos=True) for name, prompt in prompts.items()]
    plain = run(Engine(target, None, OPTIONS), requests)
    drafted = run(Engine(target, NgramProposer(4, 1, 3), OPTIONS), requests)
    oracle = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    for name, prompt in prompts.items():
        out = oracle.generate(torch.tensor([prompt]), max_new_tokens=24, do_sample=False, eos_token_id=-1)
        assert plain[name]["tokens"] == drafted[name]["tokens"] == out[0, len(prompt) :].tolist()


def test_a_recurrent_state_is_refused_by_name(tmp_path: Path) -> None:
    config = MambaConfig(vocab_size=VOCAB, hidden_size=16, num_hidden_layers=1, state_size=4)
    folder = save(MambaForCausalLM(config), tmp_path / "mamba")
    with pytest.raises(SpecctlError, match="mamba keeps a recurrent state"):
        load_target(str(folder), device="cpu")


@pytest.mark.parametrize(
    ("content", "says"), [(b"", "not a GGUF file"), (b"junk" * 9, "not a GGUF file"), (b"GGUF" + b"\0" * 64, "GGUF")]
)
def test_damaged_gguf_files_are_named(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(DamagedError, match=says) as error:
        load_target(str(path), device="cpu")
    assert error.value.exit_code == 3


def test_a_config_of_another_model_than_the_weights_is_refused(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint(), tmp_path / "mixed")
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text.replace('"vocab_size": 258', '"vocab_size": 100'))
    with pytest.raises(DamagedError, match=r"vocab_size 100 .* 258 x 32"):
        load_target(str(folder), device="cpu")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("num_hidden_layers", "x", "num_hidden_layers"),
        ("hidden_size", 31, r"hidden size \(31\)"),
        ("num_attention_heads", 0, "zero"),
        ("rms_norm_eps", float("nan"), "rms_norm_eps is nan; wanted"),
        ("max_position_embeddings", -1, "max_position_embeddings is -1; wanted"),
        ("max_position_embeddings", 2**70, "max_position_embeddings is 1180591620717411303424; wanted"),
    ],
)
def test_a_config_that_cannot_be_meant_is_named(
    key: str, value: Any, says: str, checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(checkpoint(), tmp_path / "odd")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {key: value}))
    with pytest.raises(SpecctlError, match=rf"(?s)config\.json.*{says}"):
        load_target(str(folder), device="cpu")


def test_weights_under_another_name_are_named(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder = shutil.copytree(checkpoint(), tmp_path / "renamed")
    (folder / "model.safetensors").rename(folder / "draft.safetensors")
    with pytest.raises(MissingError, match=r"neither model\.safetensors .* only draft\.safetensors"):
        load_target(str(folder), device="cpu")

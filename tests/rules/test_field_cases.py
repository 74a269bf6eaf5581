"""What goes wrong for people who run speculative decoding, and what we say to it before the start.

Each case is a minimal reconstruction of a public report; the numbers are those of our collection of such cases.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from specctl.rules.checker import check
from specctl.source.flags import extract

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 1000,
    "hidden_size": 64,
    "num_hidden_layers": 32,
    "num_attention_heads": 8,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
HEAD = LLAMA | {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1}
MTP = LLAMA | {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "num_nextn_predict_layers": 1}
NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lay(
    name: str,
    config: dict[str, Any],
    tensors: list[str] | None = None,
    tokens: list[str] | None = None,
    added: dict[str, int] | None = None,
) -> str:
    path = Path(name)
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    if tensors is not None:
        header = json.dumps({each: {"dtype": "F16", "shape": [1], "data_offsets": [0, 0]} for each in tensors}).encode()
        (path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    if tokens is not None:
        vocabulary = {text: number for number, text in enumerate(tokens)}
        extra = [{"id": number, "content": text} for text, number in (added or {}).items()]
        (path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}, "added_tokens": extra}))
    return f"./{name}"


def said(report: Any) -> str:
    return " | ".join(f"{each.severity} {each.code}: {each.message} ({each.help})" for each in report.diagnostics)


def vllm(setting: Any, **options: Any) -> Any:
    return check(setting if isinstance(setting, str) else json.dumps(setting), engine="vllm", form="json", **options)


def vllm_argv(*tokens: str, **options: Any) -> Any:
    return check(list(tokens), engine="vllm", form="argv", **options)


def sglang(text: str, **options: Any) -> Any:
    return check(text.split(), engine="sglang", form="argv", **options)


def trtllm(text: str, release: str = "1.4.0rc0", **options: Any) -> Any:
    return check(f"speculative_config: {{{text}}}\n", engine="trtllm", release=release, form="yaml", **options)


def test_f01_json_split_on_blanks() -> None:
    report = vllm_argv("-sc", '\'{"model":', '"org/assistant",', '"num_speculative_tokens":', "4}'")
    assert report.verdict == "refuses"
    assert "split" in said(report)
    assert '{"model": "org/assistant", "num_speculative_tokens": 4}' in said(report)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('\\{\\"method\\":\\"mtp\\"\\,\\"num_speculative_tokens\\":2\\}', "quoted twice"),
        ("{method: mtp, num_speculative_tokens: 1}", "eaten by a shell"),
        ("{'method': 'arctic', 'num_speculative_tokens': 3, 'enable_suffix_decoding': True}", "Python dict"),
    ],
)
def test_f02_f03_f04_transport_damage(value: str, words: str) -> None:
    report = vllm_argv("--speculative-config", value)
    assert report.verdict == "refuses"
    assert words in said(report)
    assert json.loads(report.diagnostics[0].fix.replacement)["num_speculative_tokens"] in (1, 2, 3)


def test_f05_old_prefix_and_four_dashes() -> None:
    report = vllm({"method": "ngram", "num_speculative_tokens": 10, "ngram_prompt_lookup_max": 10})
    assert "prompt_lookup_max" in (report.diagnostics[0].help or "")
    report = vllm_argv("----speculative-config", json.dumps(NGRAM | {"ngram_prompt_lookup_max": 10}))
    assert "two dashes" in said(report)
    assert "prompt_lookup_max" in said(report)
    assert extract(["validate-config", "----speculative-config", "{}"]).taken[0].engine == "vllm"


def test_f06_one_bound_is_used_for_both() -> None:
    report = vllm({"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4})
    assert (report.effective["prompt_lookup_min"], report.effective["prompt_lookup_max"]) == (4, 4)
    assert "SPC120" in said(report)
    bare = vllm({"method": "ngram", "num_speculative_tokens": 5})
    assert (bare.effective["prompt_lookup_min"], bare.effective["prompt_lookup_max"]) == (5, 5)
    assert vllm(NGRAM | {"prompt_lookup_min": 0}).verdict == "refuses"


def test_f07_batch_size_cut_off() -> None:
    report = vllm({"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3, "disable_by_batch_size": 32})
    assert report.verdict == "refuses"
    assert "[[1, 31, K], [32, 4096, 0]]" in said(report)


def test_f08_invented_keys() -> None:
    report = vllm(
        {
            "draft_model": "org/small-model",
            "num_speculative_tokens": 5,
            "max_draft_len": 3,
            "temperature": 1,
            "top_p": 1,
        }
    )
    text = said(report)
    assert "draft_model is a value" in text
    assert "max_draft_len is TensorRT-LLM's" in text
    assert text.count("belongs into the request") == 2


def test_f09_three_mistakes_in_one_line() -> None:
    value = '{{"method":"eagle3","model":"org/head","enforce_eager":true,"num_speculative_tokrns":5}}'
    report = vllm_argv("--additional-config", value)
    assert report.verdict == "refuses"
    assert "--speculative-config" in said(report)
    notes = " ".join(note for each in report.diagnostics for note in each.notes)
    assert "doubled braces" in notes
    assert "'num_speculative_tokrns'; did you mean 'num_speculative_tokens'?" in notes
    assert "doubled braces" in said(vllm_argv("--speculative-config", value))


def test_f10_number_as_text() -> None:
    report = vllm({"model": "org/EAGLE", "method": "eagle", "num_speculative_tokens": 3, "max_model_len": "65536"})
    assert (report.verdict, report.effective["max_model_len"]) == ("accepts", 65536)
    assert "SPC010" in said(report)


def test_f11_removed_flag() -> None:
    report = vllm_argv("--num-speculative-tokens", "1")
    assert report.verdict == "refuses"
    assert '"num_speculative_tokens": 1' in said(report)


def test_f12_f14_tensor_parallel_size_of_the_draft() -> None:
    setting = {"model": "org/draft", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 2}
    four = {"engine_args": {"tensor_parallel_size": 4}}
    assert "1 or the target's 4" in said(vllm(setting, **four))
    assert vllm(setting | {"draft_tensor_parallel_size": 4}, **four).verdict == "accepts"
    assert (
        vllm({"model": "org/draft", "num_speculative_tokens": 3}, **four).effective["draft_tensor_parallel_size"] == 4
    )
    wrong = vllm({"model": "org/draft", "num_speculative_tokens": 5, "tensor_parallel_size": 1}, **four)
    assert "draft_tensor_parallel_size" in said(wrong)


def test_f13_a_head_on_one_gpu_beside_a_target_on_four() -> None:
    setting = {"method": "eagle3", "model": "org/head", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 1}
    report = check(setting, engine="vllm", engine_args={"tensor_parallel_size": 4})
    assert report.verdict == "accepts"
    assert [(each.code, each.severity) for each in report.diagnostics] == [("SPC310", "warning")]
    assert "several releases ran the head on 4" in report.diagnostics[0].message
    alone = check(setting, engine="vllm", engine_args={"tensor_parallel_size": 1})
    assert not alone.diagnostics


def test_f15_count_against_the_drafts_own() -> None:
    lay("t", LLAMA)
    head = lay("h", HEAD | {"n_predict": 3})
    assert vllm({"method": "eagle3", "model": head, "num_speculative_tokens": 4}, target="./t").verdict == "refuses"
    assert vllm({"method": "eagle3", "model": head, "num_speculative_tokens": 6}, target="./t").verdict == "accepts"


def test_f16_mtp_without_a_count() -> None:
    lay("t", MTP)
    report = vllm({"method": "mtp"}, target="./t")
    assert '"num_speculative_tokens": 1' in said(report)


def test_f17_method_by_folder_name() -> None:
    report = vllm({"method": "draft_model", "model": "/models/my-eagle-draft", "num_speculative_tokens": 3})
    assert report.effective.get("method", "eagle") == "eagle"
    assert "becomes" in said(report)


def test_f18_f19_f20_the_three_numbers() -> None:
    base = "--speculative-algorithm EAGLE --speculative-draft-model-path org/head "
    report = sglang(base + "--speculative-num-draft-tokens 4 --speculative-eagle-topk 1")
    assert "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4" in said(report)
    report = sglang(base + "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 8")
    assert (report.verdict, report.spec["num_speculative_tokens"]) == ("accepts", 3)
    assert "8 becomes 4" in said(report)
    report = sglang(base + "--speculative-num-steps 5 --speculative-eagle-topk 8 --speculative-num-draft-tokens 64")
    assert report.verdict == "accepts"
    assert report.spec["tree"] == {"topk": 8, "num_nodes": 63}


def test_f21_f22_draft_and_algorithm() -> None:
    lay("t", LLAMA | {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"})
    assert "again as its own" in said(sglang("--model-path ./t --speculative-algorithm EAGLE3"))
    head = lay("h", HEAD)
    numbers = " --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
    report = sglang(f"--model-path ./t --speculative-algorithm EAGLE --speculative-draft-model-path {head}{numbers}")
    assert "EAGLE3" in said(report)
    assert "eagle3" in said(vllm({"method": "eagle", "model": head, "num_speculative_tokens": 2}, target="./t"))


def test_f23_f24_f25_f26_types_of_tensorrt_llm() -> None:
    draft = "max_draft_len: 4, speculative_model_dir: org/draft"
    assert "Draft_Target" in said(trtllm(f"decoding_type: DraftTarget, {draft}"))
    assert trtllm(f"decoding_type: DraftTarget, {draft}", "1.2.1").verdict == "accepts"
    for wrong, right in (("eagle3", "Eagle3"), ("EAGLE3", "Eagle3"), ("mtp", "MTP"), ("Ngram", "NGram")):
        assert f"write decoding_type: {right}" in said(trtllm(f"decoding_type: {wrong}, {draft}"))
    assert "speculative_model" in said(trtllm("decoding_type: MTP, max_draft_len: 3, pytorch_weights_path: /m"))
    lay("t", LLAMA)
    head = lay("h", HEAD)
    text = f"speculative_config: {{decoding_type: MTP, max_draft_len: 3, speculative_model: {head}}}"
    pair = check(text, engine="trtllm", release="1.4.0rc0", target="./t")
    assert (pair.verdict, "write decoding_type: Eagle3" in said(pair)) == ("fails-at-start", True)
    alone = check("speculative_config: {decoding_type: MTP}", engine="trtllm", release="1.4.0rc0", target="./t")
    assert (alone.verdict, "without prediction layers" in said(alone)) == ("fails-at-start", True)
    report = trtllm("decoding_type: MTP, num_nextn_predict_layers: 3")
    assert (report.verdict, report.effective["max_draft_len"]) == ("accepts", 3)
    assert "max_draft_len 2 wins" in said(trtllm("decoding_type: MTP, num_nextn_predict_layers: 3, max_draft_len: 2"))
    assert "backend: tensorrt" in said(trtllm("decoding_type: Medusa, max_draft_len: 3", "1.2.1"))
    wrong_root = check("speculative_decoding_config: {decoding_type: NGram}\n", engine="trtllm")
    assert "speculative_config" in said(wrong_root)


def test_f27_speculators_checkpoint_without_a_count() -> None:
    lay("t", LLAMA)
    proposal = {"proposal_methods": [{"speculative_tokens": 3}], "verifier": {"name_or_path": "./t"}}
    head = lay(
        "h", {"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "speculators_config": proposal}
    )
    report = vllm({"method": "eagle3", "model": head}, target="./t")
    assert '"num_speculative_tokens": 3' in said(report)


def test_f28_f29_f30_vocabularies() -> None:
    words = [f"w{number}" for number in range(40)]
    lay("t", LLAMA | {"vocab_size": 152064}, tokens=words, added={"<eos>": 100})
    draft = lay("d", LLAMA | {"vocab_size": 151936}, tokens=words, added={"<eos>": 100})
    report = vllm({"method": "draft_model", "model": draft, "num_speculative_tokens": 3}, target="./t")
    assert report.verdict == "refuses"
    assert "use_heterogeneous_vocab" in said(report)
    draft = lay("e", LLAMA | {"vocab_size": 152064}, tokens=[*words[:5], "other", *words[6:]])
    report = vllm({"method": "draft_model", "model": draft, "num_speculative_tokens": 3}, target="./t")
    assert not report.valid
    assert "token 5" in said(report)
    draft = lay("f", LLAMA | {"vocab_size": 152064}, tokens=words, added={"<tool>": 100})
    report = vllm({"method": "draft_model", "model": draft, "num_speculative_tokens": 3}, target="./t")
    assert report.valid
    assert "added token 100" in said(report)


def test_f31_f32_widths() -> None:
    lay("t", LLAMA | {"hidden_size": 128})
    narrow = lay("h", HEAD | {"hidden_size": 64, "target_hidden_size": 128})
    assert "SPC213" not in said(vllm({"method": "eagle3", "model": narrow, "num_speculative_tokens": 3}, target="./t"))
    plain = lay("d", LLAMA | {"num_hidden_layers": 8})
    assert vllm({"method": "draft_model", "model": plain, "num_speculative_tokens": 3}, target="./t").valid
    assert "no eagle3 head" in said(
        vllm({"method": "eagle3", "model": plain, "num_speculative_tokens": 3}, target="./t")
    )


def test_f33_reduced_vocabulary_without_a_map() -> None:
    lay("t", LLAMA)
    head = lay("h", HEAD | {"draft_vocab_size": 100}, tensors=["fc.weight", "lm_head.weight"])
    assert "no map" in said(vllm({"method": "eagle3", "model": head, "num_speculative_tokens": 3}, target="./t"))
    head = lay("g", HEAD | {"draft_vocab_size": 100}, tensors=["fc.weight", "d2t"])
    assert vllm({"method": "eagle3", "model": head, "num_speculative_tokens": 3}, target="./t").valid


def test_f34_f35_f36_prediction_layers() -> None:
    lay("t", MTP, tensors=["model.layers.0.mlp.weight", "model.layers.31.mlp.weight"])
    report = vllm({"method": "mtp", "num_speculative_tokens": 1}, target="./t")
    assert "hold none" in said(report)
    twin = lay("u", MTP, tensors=["model.layers.32.eh_proj.weight"])
    assert vllm({"method": "mtp", "num_speculative_tokens": 1, "model": twin}, target="./t").valid
    quantized = {"quant_method": "compressed-tensors", "ignore": ["mtp.fc", "lm_head"]}
    lay("q", MTP | {"quantization_config": quantized})
    assert "1.000" in said(vllm({"method": "mtp", "num_speculative_tokens": 1}, target="./q"))


def test_f37_f39_f45_heads_of_other_targets() -> None:
    lay("t", LLAMA)
    short = lay("h", HEAD | {"max_position_embeddings": 2048})
    assert "2048 positions" in said(
        vllm({"method": "eagle3", "model": short, "num_speculative_tokens": 3}, target="./t")
    )
    other = lay("g", HEAD | {"hidden_size": 32, "torch_dtype": "float16", "rope_scaling": {"rope_type": "llama3"}})
    text = said(vllm({"method": "eagle3", "model": other, "num_speculative_tokens": 3}, target="./t"))
    assert "width 32" in text
    assert "float16" in text
    assert "llama3" in text


def test_f40_quantized_target() -> None:
    lay("t", LLAMA | {"quantization_config": {"quant_method": "gptq"}})
    head = lay("h", HEAD)
    numbers = " --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
    assert "unquant" in said(
        sglang(f"--model-path ./t --speculative-algorithm EAGLE3 --speculative-draft-model-path {head}{numbers}")
    )


def test_f41_f42_hidden_layers() -> None:
    lay("t", LLAMA | {"num_hidden_layers": 94})
    head = lay("h", HEAD | {"eagle_aux_hidden_state_layer_ids": [2, 46, 91, 93]})
    assert "SPC224" not in said(vllm({"method": "eagle3", "model": head, "num_speculative_tokens": 3}, target="./t"))
    lay("s", LLAMA | {"num_hidden_layers": 5})
    plain = lay("g", HEAD)
    assert "no three different layers" in said(
        vllm({"method": "eagle3", "model": plain, "num_speculative_tokens": 3}, target="./s")
    )


def test_f43_f44_verifiers_and_nested_sizes() -> None:
    nested = {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "text_config": LLAMA}
    lay("t", nested)
    draft = lay("d", LLAMA | {"num_hidden_layers": 4})
    assert vllm({"method": "draft_model", "model": draft, "num_speculative_tokens": 3}, target="./t").valid
    config = {"verifier": {"name_or_path": "org/base-instruct"}, "proposal_methods": [{"speculative_tokens": 3}]}
    head = lay(
        "h", {"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "speculators_config": config}
    )
    assert "org/base-instruct" in said(
        vllm({"method": "eagle3", "model": head, "num_speculative_tokens": 3}, target="./t")
    )


def test_f46_f79_f82_f84_f89_side_effects() -> None:
    lay("t", MTP)
    assert "over and over" in said(vllm({"method": "mtp", "num_speculative_tokens": 3}, target="./t"))
    schedule = {"num_speculative_tokens_per_batch_size": [[1, 4, 2], [5, 512, 0]]}
    assert vllm({"method": "mtp", "num_speculative_tokens": 2} | schedule, target="./t").verdict == "accepts"
    assert "8192" in said(vllm(NGRAM, engine_args={"max_num_batched_tokens": 2048}))
    assert "48 requests" in said(sglang("--speculative-algorithm NGRAM"))
    text = "decoding_type: MTP, max_draft_len: 3"
    assert "max_num_tokens" in said(trtllm(text, engine_args={"max_num_tokens": 512, "max_batch_size": 256}))


def test_f65_wide_tree_in_graphs() -> None:
    numbers = "--speculative-num-steps 5 --speculative-eagle-topk 8 --speculative-num-draft-tokens 64"
    report = sglang(f"--speculative-algorithm EAGLE --speculative-draft-model-path org/head {numbers}")
    assert "--cuda-graph-max-bs-decode" in said(report)

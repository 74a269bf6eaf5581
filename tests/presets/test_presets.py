"""Every preset reads, validates without a warning, is written for each engine it names, and is taken there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from specctl import check, convert, load, presets
from specctl.dialects.dialect import DIALECTS
from specctl.errors import MissingError, UsageError
from specctl.presets import Preset
from specctl.resources import bundled_model, presets_dir
from specctl.rules.checker import check_path

ALL = {preset.name: preset for preset in presets.every()}
RUNS = [(name, engine, release) for name, preset in ALL.items() for engine, release in preset.releases()]
FORMS = {"vllm": "json", "sglang": "argv", "trtllm": "yaml"}

# name -> draft (None: inside the target, or none needed), k, engines: what the published cards, recipes and engine
# documents name.
PAIRINGS: dict[str, tuple[str | None, int, str]] = {
    "llama-3.1-8b-eagle3": ("RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3", 3, "vllm"),
    "gpt-oss-120b-eagle3-short-context": ("nvidia/gpt-oss-120b-Eagle3-short-context", 3, "trtllm"),
    "gpt-oss-120b-eagle3-long-context": ("nvidia/gpt-oss-120b-Eagle3-long-context", 3, "trtllm sglang"),
    "gpt-oss-120b-eagle3-throughput": ("nvidia/gpt-oss-120b-Eagle3-throughput", 1, "trtllm"),
    "gpt-oss-120b-eagle3-v3": ("nvidia/gpt-oss-120b-Eagle3-v3", 7, "vllm trtllm"),
    "kimi-k2.6-eagle3.1": ("lightseekorg/kimi-k2.6-eagle3.1-mla", 3, "vllm"),
    "gemma-4-e2b-assistant": ("google/gemma-4-E2B-it-assistant", 2, "vllm"),
    "gemma-4-e4b-assistant": ("google/gemma-4-E4B-it-assistant", 4, "vllm"),
    "gemma-4-12b-assistant": ("google/gemma-4-12B-it-assistant", 4, "vllm"),
    "gemma-4-26b-a4b-assistant": ("google/gemma-4-26B-A4B-it-assistant", 4, "vllm"),
    "gemma-4-31b-assistant": ("google/gemma-4-31B-it-assistant", 4, "vllm"),
    "deepseek-v3-mtp": (None, 1, "vllm sglang trtllm"),
    "deepseek-r1-mtp": (None, 1, "vllm sglang trtllm"),
    "qwen3.5-397b-a17b-mtp": (None, 3, "vllm trtllm"),
    "qwen3.8-2.4t-a95b-mtp": (None, 3, "vllm trtllm"),
    "qwen3.8-27b-mtp": (None, 3, "vllm"),
    "step-3.5-flash-mtp": (None, 1, "vllm sglang"),
    "step-3.7-flash-mtp": (None, 3, "vllm"),
    "qwen3-8b-draft-qwen3-0.6b": ("Qwen/Qwen3-0.6B", 5, "vllm"),
    "qwen3-4b-thinking-2507-draft-qwen3-0.6b": ("Qwen/Qwen3-0.6B", 5, "vllm"),
    "llama-3.3-70b-eagle3": ("RedHatAI/Llama-3.3-70B-Instruct-speculator.eagle3", 7, "vllm"),
    "llama-3.3-70b-eagle3-authors": ("yuhuili/EAGLE3-LLaMA3.3-Instruct-70B", 3, "vllm trtllm"),
    "llama-3.3-70b-eagle3-authors-sglang": ("lmsys/sglang-EAGLE3-LLaMA3.3-Instruct-70B", 3, "sglang"),
    "llama-3.1-8b-eagle3-authors": ("yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", 3, "vllm trtllm"),
    "llama-3.1-8b-eagle3-authors-sglang": ("jamesliu1/sglang-EAGLE3-Llama-3.1-Instruct-8B", 3, "sglang"),
    "llama-3.3-70b-eagle3-nebius": ("nebius/EAGLE3-Llama-3.3-70B-Instruct", 6, "vllm"),
    "llama-3.1-8b-eagle3-specforge": ("lmsys/SGLang-EAGLE3-Llama-3.1-8B-Instruct-SpecForge", 3, "sglang"),
    "llama-3.3-70b-eagle3-specforge": ("lmsys/SGLang-EAGLE3-Llama-3.3-70B-Instruct-SpecForge", 3, "sglang"),
    "qwen3-30b-a3b-instruct-2507-eagle3-specforge": (
        "lmsys/SGLang-EAGLE3-Qwen3-30B-A3B-Instruct-2507-SpecForge-Nex",
        3,
        "sglang",
    ),
    "qwen3-235b-a22b-instruct-2507-eagle3-specforge": (
        "lmsys/SGLang-EAGLE3-Qwen3-235B-A22B-Instruct-2507-SpecForge-Meituan",
        3,
        "sglang",
    ),
    "qwen3-next-80b-a3b-eagle3-specforge": (
        "lmsys/SGLang-EAGLE3-Qwen3-Next-80B-A3B-Instruct-FP8-perfect-blend-regenerated",
        3,
        "sglang",
    ),
    "kimi-k2-eagle3": ("AQ-MedAI/Kimi-K2-Instruct-eagle3", 3, "sglang"),
    "kimi-k2.6-eagle3-aq-medai": ("AQ-MedAI/Kimi-K26-eagle3", 3, "sglang"),
    "kimi-k2.6-eagle3-mla": ("lightseekorg/kimi-k2.6-eagle3-mla", 3, "vllm"),
    "kimi-k2.5-eagle3-mla": ("lightseekorg/kimi-k2.5-eagle3-mla", 3, "vllm"),
    "kimi-k2.7-code-eagle3.1-mla": ("lightseekorg/kimi-k2.7-coder-eagle3.1-mla", 3, "sglang"),
    "gpt-oss-20b-eagle3": ("RedHatAI/gpt-oss-20b-speculator.eagle3", 3, "vllm"),
    "gpt-oss-20b-p-eagle": ("amazon/GPT-OSS-20B-P-EAGLE", 7, "vllm"),
    "gpt-oss-20b-eagle3-nebius": ("nebius/EAGLE3-gpt-oss-20b", 6, "vllm"),
    "gpt-oss-20b-eagle3-specdrift": ("Dogacel/specdrift-gpt-oss-20b-eagle3", 3, "sglang"),
    "gpt-oss-120b-eagle3-redhat": ("RedHatAI/gpt-oss-120b-speculator.eagle3", 5, "vllm"),
    "qwen3-8b-eagle3": ("RedHatAI/Qwen3-8B-speculator.eagle3", 5, "vllm"),
    "qwen3-8b-dflash": ("RedHatAI/Qwen3-8B-speculator.dflash", 7, "vllm"),
    "qwen3-8b-dflash2": ("RedHatAI/Qwen3-8B-speculator.dflash2", 15, "vllm"),
    "qwen3-30b-a3b-dflash": ("RedHatAI/Qwen3-30B-A3B-speculator.dflash", 7, "vllm"),
    "qwen3-8b-pard": ("amd/PARD-Qwen3-0.6B", 12, "vllm trtllm"),
    "qwen3-4b-pard": ("amd/PARD-Qwen3-0.6B", 12, "vllm trtllm"),
    "mistral-small-4-119b-eagle": ("mistralai/Mistral-Small-4-119B-2603-eagle", 3, "vllm"),
    "qwen3-8b-draft-smollm2": ("HuggingFaceTB/SmolLM2-135M-Instruct", 3, "vllm"),
    "llama-4-maverick-eagle3": ("RedHatAI/Llama4-Maverick-17B-128E-Instruct-speculator.eagle3", 3, "vllm"),
    "minimax-m3-eagle3.1": ("amd/MiniMax-M3-EAGLE3.1", 3, "vllm"),
    "coding-ngram": (None, 5, "vllm specctl"),
    "coding-ngram-trtllm": (None, 5, "trtllm"),
    "coding-ngram-sglang": (None, 11, "sglang"),
    "coding-suffix": (None, 24, "vllm specctl"),
    "coding-suffix-automaton": (None, 8, "trtllm"),
    "demo-draft": ("demo-draft", 4, "specctl"),
    "demo-ngram": (None, 4, "specctl"),
    "demo-suffix": (None, 8, "specctl"),
}
# Published heads that have no preset, and why.
WITHOUT: dict[str, str] = {
    "nvidia/Llama-3.3-70B-Instruct-Eagle3": "no k is published",
    "nvidia/Kimi-K2.6-Eagle3": "no engine is published",
    "nvidia/Kimi-K2.5-Thinking-Eagle3": "neither k nor engine is published",
    "AQ-MedAI/Qwen3.5-397B-A17B-eagle3": "neither k nor engine is published, and the built-in MTP accepts more",
    "lmsys/EAGLE3-gpt-oss-120b-bf16": "no k is published",
    "RedHatAI/Qwen3-14B-speculator.eagle3": "no k is published",
    "RedHatAI/Qwen3-8B-speculator.peagle": "no k is published",
    "RedHatAI/gemma-4-31B-it-speculator.eagle3": "no k is published",
    "AngelSlim/Qwen3-8B_eagle3": "no k is published",
    "ibm-ai-platform/llama3-8b-accelerator": "vLLM 0.31.0 refuses mlp_speculator, and no other engine has it",
    "Snowflake LSTM speculator for gpt-oss-120b": "needs a plug-in of vLLM; no engine of ours has the method",
    "turboderp/Qwama-0.5B-Instruct": "measured on an engine of 2024; no k is published",
    "yuhuili/EAGLE-LLaMA3-Instruct-8B": "no k is published",
}


def test_every_pairing_has_its_preset_and_there_are_no_others() -> None:
    assert sorted(ALL) == sorted(PAIRINGS)
    assert not {preset.config.model for preset in ALL.values()} & WITHOUT.keys()


@pytest.mark.parametrize("name", PAIRINGS)
def test_draft_k_and_engines_are_those_of_the_pairing(name: str) -> None:
    draft, k, engines = PAIRINGS[name]
    config = ALL[name].config
    assert (config.model, config.num_speculative_tokens) == (draft, k)
    assert set(engines.split()) <= set(ALL[name].engines)


@pytest.mark.parametrize("name", ALL)
def test_a_preset_holds_without_error_or_warning(name: str) -> None:
    outcome = presets.check(name)
    found = [(each.code, each.message) for result in outcome.results for each in result.diagnostics]
    assert outcome.holds(strict=True), (found, outcome.faults)
    assert outcome.results
    assert set(outcome.releases) == set(ALL[name].releases())


@pytest.mark.parametrize(("name", "engine", "release"), RUNS)
def test_the_written_text_is_taken_by_the_engine(name: str, engine: str, release: str) -> None:
    written = convert(ALL[name].config, engine, to_release=release)
    assert written.report.valid
    source: Any = written.output if engine == "sglang" else written.text
    report = check(source, engine=engine, release=release, form=FORMS[engine])
    assert report.verdict == "accepts", [(each.code, each.message) for each in report.diagnostics]
    again = DIALECTS[engine].write(report.config, release)
    assert again == written.output


@pytest.mark.parametrize(("name", "engine", "release"), RUNS)
def test_k_arrives(name: str, engine: str, release: str) -> None:
    effective = check_path(str(ALL[name].path), dialect="specctl", engine=engine, release=release).effective
    k = ALL[name].config.num_speculative_tokens
    keys = {
        "vllm": ("num_speculative_tokens",),
        "trtllm": ("max_draft_len", "num_nextn_predict_layers"),
        "sglang": ("speculative_num_draft_tokens",),
    }[engine]
    counted = [effective[key] for key in keys if effective.get(key) is not None]
    assert counted
    assert all(count == (k + 1 if engine == "sglang" else k) for count in counted), effective


def figures(preset: Preset) -> Iterator[tuple[int, str, str, float]]:
    for entry in preset.published:
        for kind in ("acceptance_length", "acceptance_rate"):
            for dataset, value in entry.get(kind, {}).items():
                yield entry["k"], kind, dataset, value


@pytest.mark.parametrize("name", ALL)
def test_published_figures_can_be(name: str) -> None:
    for k, kind, dataset, value in figures(ALL[name]):
        assert (1 <= value <= k + 1) if kind == "acceptance_length" else (0 <= value <= 1), (dataset, k, value)


@pytest.mark.parametrize("name", ALL)
def test_longer_drafts_never_accept_less(name: str) -> None:
    tables: dict[tuple[str, str], dict[int, float]] = {}
    for entry in ALL[name].published:
        for dataset, value in entry.get("acceptance_length", {}).items():
            tables.setdefault((dataset, entry.get("conditions", "")), {})[entry["k"]] = value
    for table in tables.values():
        assert [table[k] for k in sorted(table)] == sorted(table.values()), table


def test_some_published_figures_are_the_published_ones() -> None:
    found = {(name, *row[:3]): row[3] for name in ALL for row in figures(ALL[name])}
    assert found["llama-3.1-8b-eagle3", 3, "acceptance_length", "HumanEval"] == 3.02
    assert found["llama-3.1-8b-eagle3", 7, "acceptance_length", "CNN/DailyMail"] == 2.99
    assert found["gpt-oss-120b-eagle3-short-context", 3, "acceptance_length", "MT-Bench writing"] == 2.10
    assert found["llama-4-maverick-eagle3", 5, "acceptance_length", "GSM8K"] == 3.73
    assert found["llama-3.3-70b-eagle3-specforge", 7, "acceptance_length", "MT-Bench"] == 3.978
    assert found["qwen3.8-27b-mtp", 3, "acceptance_rate", "FP8 checkpoint"] == 0.771


@pytest.mark.parametrize("name", ALL)
def test_a_preset_says_where_it_is_from_and_up_to_which_load_it_pays(name: str) -> None:
    preset = ALL[name]
    assert preset.config.about["source"]
    assert len(preset.config.about["advice"]) > 40
    assert preset.text.startswith("# yaml-language-server: $schema=../schemas/specctl.schema.json\n# ")
    assert not re.search(r"(?<![\w.])/(?:tmp|work|home|root|usr)\b", preset.text)
    if preset.config.target == "demo":
        assert all(bundled_model(model) for model in ("demo", preset.config.model) if model)


def test_names_are_plain_and_files_lie_flat() -> None:
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name) for name in ALL)
    assert all(path.suffix == ".yaml" and path.is_file() for path in presets_dir().iterdir())


@pytest.mark.parametrize(("name", "engine", "release"), RUNS)
def test_the_target_stays_when_an_engine_judges(name: str, engine: str, release: str) -> None:
    config = check(ALL[name].path, engine=engine, release=release).config
    assert config is not None
    assert (config.target, config.limits) == (ALL[name].config.target, ALL[name].engines)


def test_an_excluded_release_is_refused_with_the_one_that_fits() -> None:
    path = presets_dir() / "qwen3-8b-pard.yaml"
    report = convert(path, "trtllm").report
    assert any(each.code == "SPC405" and "1.4.0rc0" in str(each.help) for each in report.diagnostics)
    assert convert(path, "trtllm", to_release="1.4.0rc0").report.valid
    assert not check(path, engine="trtllm", release="1.2.1").valid


def test_a_method_of_another_engine_alone_can_be_converted() -> None:
    path = presets_dir() / "coding-suffix-automaton.yaml"
    assert [each.code for each in check(path).diagnostics] == ["SPC161"]
    written = convert(path, "trtllm", to_release="1.4.0rc0")
    assert written.report.valid
    assert written.report.verdict == "accepts"
    assert written.output["speculative_config"]["decoding_type"] == "SA"


def test_a_preset_stands_for_its_target() -> None:
    setting = {"method": "draft_model", "model": "demo-draft", "num_speculative_tokens": 4}
    by_preset = check(setting, engine="vllm", target="demo-ngram")
    assert by_preset.skipped == check(setting, engine="vllm", target="demo").skipped
    assert by_preset.skipped != check(setting, engine="vllm").skipped
    assert load({"specctl": 1, "method": "ngram", "num_speculative_tokens": 4}, target="demo-ngram").method.name
    with pytest.raises(UsageError, match="for any target"):
        check(setting, target="coding-ngram")


def test_a_bundled_model_comes_before_a_preset_of_its_name() -> None:
    setting = {"method": "ngram", "num_speculative_tokens": 4}
    assert check(setting, engine="vllm", target="demo-draft").valid  # the model, whose config.json is read


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(MissingError, match="there is no preset") as error:
        presets.find("llama-3.1-8b-eagl")
    assert error.value.help == "did you mean llama-3.1-8b-eagle3?"


def test_the_page_is_fresh() -> None:
    path = presets_dir().parent / "docs" / "presets.md"
    assert path.read_text(encoding="utf-8") == presets.page(), "run python -m specctl.presets"

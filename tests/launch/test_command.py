"""The command lines that engines are started with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from specctl import check, load
from specctl.errors import UsageError
from specctl.launch.command import Command, make_command, place_of
from specctl.launch.engines import LAUNCHERS
from specctl.spec import SpecDecodeConfig

NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2}
DRAFT = {"method": "draft_model", "model": "demo-draft", "num_speculative_tokens": 3}
RELEASES = {"vllm": "0.31.0", "sglang": "0.5.22", "trtllm": "1.2.1"}


def made(engine: str, setting: SpecDecodeConfig | Path | None, target: str = "org/model", **more: Any) -> Command:
    more = {"release": RELEASES[engine], "host": "127.0.0.1", "port": 8000} | more
    return make_command(LAUNCHERS[engine], Path(LAUNCHERS[engine].program), target, setting, **more)


def test_vllm_gets_json_and_the_engines_own_flags_behind_it() -> None:
    found = made("vllm", load(NGRAM, engine="vllm"), more=["-tp", "2"])
    at = found.argv.index("--speculative-config")
    assert found.argv[:7] == ("vllm", "serve", "org/model", "--host", "127.0.0.1", "--port", "8000")
    assert json.loads(found.argv[at + 1]) == NGRAM
    assert found.argv[at + 2 :] == ("-tp", "2")


def test_sglang_gets_its_triple_and_is_asked_for_metrics_once() -> None:
    found = made("sglang", load(DRAFT, engine="vllm"), more=["--enable-metrics"])
    pairs = dict(zip(found.argv, found.argv[1:], strict=False))
    assert found.argv[:3] == ("sglang", "serve", "org/model")
    assert pairs["--speculative-algorithm"] == "STANDALONE"
    assert pairs["--speculative-num-steps"] == "3"
    assert pairs["--speculative-num-draft-tokens"] == "4"
    assert pairs["--speculative-draft-model-path"] == place_of("demo-draft") != "demo-draft"
    assert found.argv.count("--enable-metrics") == 1


@pytest.mark.parametrize("release", ["1.2.1", "1.4.0rc0"])
def test_tensorrt_llm_gets_a_file_that_it_accepts(release: str, tmp_path: Path) -> None:
    found = made("trtllm", load(NGRAM, engine="vllm"), release=release).in_folder(tmp_path)
    text = Path(found.argv[found.argv.index("--config") + 1]).read_text("utf-8")
    assert yaml.safe_load(text)["speculative_config"]["max_draft_len"] == 4
    assert yaml.safe_load(text)["enable_iter_perf_stats"] is True
    assert check(text, engine="trtllm", release=release).valid


def test_a_python_runs_the_engines_module() -> None:
    launcher = LAUNCHERS["sglang"]
    found = make_command(
        launcher, Path("/venv/bin/python3.11"), "m", None, release="0.5.22", host="127.0.0.1", port=1
    )  # fmt: skip
    assert found.argv[:5] == ("/venv/bin/python3.11", "-m", "sglang.launch_server", "--model-path", "m")


def test_a_bundled_target_keeps_its_name_in_the_api() -> None:
    found = made("vllm", None, target="demo")
    pairs = dict(zip(found.argv, found.argv[1:], strict=False))
    assert pairs["--served-model-name"] == "demo"
    assert Path(found.argv[2], "config.json").is_file()


def test_without_a_setting_nothing_of_speculation_is_written() -> None:
    assert not any("spec" in token for engine in LAUNCHERS for token in made(engine, None).argv)


def test_the_engines_own_file_is_handed_over(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    assert made("trtllm", file).argv[-2:] == ("--config", str(file))


@pytest.mark.parametrize(
    ("engine", "more", "wanted"),
    [
        ("vllm", ["--port", "1"], "--port stands behind --"),
        ("vllm", ["-sc", "{}"], "-sc behind -- would go to vLLM unchecked"),
        ("sglang", ["--speculative-algorithm=NGRAM"], "--speculative-algorithm behind --"),
        ("trtllm", ["--extra_llm_api_options", "a.yaml"], "second settings file"),
    ],
)
def test_what_specctl_writes_may_not_be_said_again(engine: str, more: list[str], wanted: str) -> None:
    with pytest.raises(UsageError, match=wanted):
        made(engine, load(NGRAM, engine="vllm"), more=more)


def test_an_option_without_a_counterpart_is_named() -> None:
    with pytest.raises(UsageError, match="--max-queue is an option of the bundled runtime"):
        made("vllm", None, options={"max_queue": 3})


@pytest.mark.parametrize(
    ("host", "url"), [("0.0.0.0", "http://127.0.0.1:8000"), ("::1", "http://[::1]:8000"), ("h", "http://h:8000")]
)
def test_where_the_engine_is_asked(host: str, url: str) -> None:
    assert made("vllm", None, host=host).url == url

"""Random mixes of every option: the same answers with each draft and all at once as alone without one, in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.request_mixes import difference, mixes
from benchmarks.schema_mixes import schemas
from benchmarks.serve_schemas import accepted, calls_for, ended
from benchmarks.serving import ask
from specctl.runtime import EngineOptions, Target, load_target, make_engine, set_threads
from specctl.spec.config import SpecDecodeConfig
from tests.runtime.head_kit import make_head
from tests.runtime.kit import build
from tests.server.live import Live, live

TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}>"
REQUESTS = 60
SCHEMAS = 12
METHODS = ("ngram", "suffix", "draft_model", "eagle3", "medusa-vllm")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    set_threads(1)
    folder = build("llama", tmp_path_factory.mktemp("target"))
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    text = (folder / "config.json").read_text("utf-8")
    (folder / "config.json").write_text(text.replace('"max_position_embeddings": 96', '"max_position_embeddings": 512'))
    return load_target(str(folder), device="cpu", dtype="float64")


def serving(target: Target, spec: SpecDecodeConfig | None, **options: Any) -> Any:
    engine = make_engine(target, spec, EngineOptions(6, max_num_batched_tokens=64, coupled=True, **options))
    return live(engine, target, model_names=("tiny",), max_model_len=target.max_model_len)


@pytest.fixture(scope="module", params=METHODS)
def drafting(
    request: pytest.FixtureRequest, target: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Live]:
    """A server with prefix caching that must also preempt now and then."""
    method = request.param
    settings: dict[str, dict[str, Any]] = {
        "ngram": {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 1, "prompt_lookup_max": 4},
        "suffix": {"method": "suffix", "num_speculative_tokens": 6},
        "draft_model": {"method": "draft_model", "model": str(target.folder), "num_speculative_tokens": 3},
    }
    if method in settings:
        spec = SpecDecodeConfig.from_dict(settings[method])
    else:
        made = make_head(method, target, tmp_path_factory.mktemp("head") / "head")
        spec = SpecDecodeConfig(made.method, 3, model=str(made.folder))
    with serving(target, spec, prefix_caching=True, kv_cache_tokens=560) as found:
        yield found


@pytest.fixture(scope="module")
def plain(target: Target) -> list[dict[str, Any]]:
    with serving(target, None) as server:
        return ask(server.url, mixes(REQUESTS, 1, target.vocab_size, longest=16), 1)


def test_no_answer_changes(drafting: Live, plain: list[dict[str, Any]], target: Target) -> None:
    answers = ask(drafting.url, mixes(REQUESTS, 1, target.vocab_size, longest=16), REQUESTS)
    found = {i: difference(a, b, 1e-8) for i, (a, b) in enumerate(zip(plain, answers, strict=True))}
    assert {index: where for index, where in found.items() if where} == {}
    counters = drafting.engine.counters
    assert counters.proposer_failures == 0
    assert drafting.engine.kv_usage == 0


def test_answers_keep_to_their_schemas(drafting: Live) -> None:
    wanted = schemas(SCHEMAS, 3)
    before = accepted(drafting.url)
    answers = ask(drafting.url, calls_for(wanted, 300), SCHEMAS)
    assert ended(wanted, answers) >= 0.9 * SCHEMAS
    assert accepted(drafting.url) >= before


def test_the_comparison_sees_differences(plain: list[dict[str, Any]]) -> None:
    assert difference(plain[0], plain[0], 0) is None
    assert difference(plain[0], plain[1], 1e-8)
    assert difference({"a": [1.0]}, {"a": [1.0 + 1e-7]}, 1e-8) == ".a[0]: 1.0 and 1.0000001"

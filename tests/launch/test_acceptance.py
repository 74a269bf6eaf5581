"""The acceptance that engines tell on /metrics."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from specctl.launch.acceptance import AcceptanceReader


class Pages(BaseHTTPRequestHandler):
    pages: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        body = self.pages.pop(0).encode() if self.pages else None
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def lines(engine: str, url: str, pages: list[str]) -> list[str | None]:
    Pages.pages = list(pages)
    reader = AcceptanceReader(engine, url)
    found = [reader.line() for _ in pages] + [reader.total_line()]
    reader.close()
    return found


def vllm(*engines: tuple[int, int, int]) -> str:
    names = ("drafts", "draft_tokens", "accepted_tokens")
    rows: list[str] = []
    for place, name in enumerate(names):
        rows.append(f"# TYPE vllm:spec_decode_num_{name} counter")
        for number, counts in enumerate(engines):
            rows.append(f'vllm:spec_decode_num_{name}_total{{engine="{number}",model_name="m"}} {counts[place]}.0')
    return "\n".join(rows) + "\n"


def test_vllm_counts_are_summed_over_engines_and_told_by_window(url: str) -> None:
    pages = [vllm((4816, 33712, 12208)), vllm((4816, 33712, 12208)), vllm((4820, 33732, 12210), (6, 8, 8))]
    first, second, third, total = lines("vllm", url, pages)
    assert first is not None
    assert "acceptance rate 0.362, mean acceptance length 3.53 (4816 drafts" in first
    assert second is None
    assert third == "acceptance rate 0.357, mean acceptance length 2.00 (10 drafts, 28 drafted, 10 accepted)"
    assert total is not None
    assert "(4826 drafts, 33740 drafted, 12218 accepted)" in total


def test_a_restarted_engine_counts_from_nothing(url: str) -> None:
    _, second, total = lines("vllm", url, [vllm((100, 400, 200)), vllm((10, 40, 30))])
    assert second == "acceptance rate 0.750, mean acceptance length 4.00 (10 drafts, 40 drafted, 30 accepted)"
    assert total is not None
    assert "(110 drafts" in total


def alarm_after(engine: str, url: str, method: str, pages: list[str]) -> str | None:
    Pages.pages = list(pages)
    reader = AcceptanceReader(engine, url)
    for _ in pages:
        reader.line()
    found = reader.alarm(method)
    reader.close()
    return found.text if found else None


def first_places(count: int) -> str:
    name = "vllm:spec_decode_num_accepted_tokens_per_pos"
    return f'# TYPE {name} counter\n{name}_total{{engine="0",model_name="m",position="0"}} {count}.0\n'


def test_the_alarm_judges_all_windows_by_the_first_place(url: str) -> None:
    low, more = vllm((40, 160, 30)) + first_places(1), vllm((110, 440, 60)) + first_places(2)
    assert alarm_after("vllm", url, "eagle3", [low]) is None  # 40 drafts are too few to be sure
    said = alarm_after("vllm", url, "eagle3", [low, more])
    assert said is not None
    assert said.startswith("eagle3 looks broken: of 110 drafts, 2 had their first token accepted")
    assert alarm_after("vllm", url, "ngram", [low, more]) is None  # no weights, so nothing to be broken
    assert alarm_after("vllm", url, "", [low, more]) is None
    assert alarm_after("vllm", url, "eagle3", [vllm((110, 440, 60))]) is None  # without places 60 may all be first ones


def test_the_alarm_about_other_engines_drafts(url: str) -> None:
    stats = {"numRequestsWithDraftTokens": 90, "numDraftTokens": 360, "numAcceptedTokens": 1}
    assert "of 90 drafts, 1 had" in (
        alarm_after("trtllm", url, "mtp", [json.dumps([{"specDecodingStats": stats}])]) or ""
    )
    calls = "# TYPE sglang:spec_verify_calls counter\nsglang:spec_verify_calls_total {0}\n"
    gauge = "# TYPE sglang:spec_accept_length gauge\nsglang:spec_accept_length {1}\n"
    broken = [(calls + gauge).format(100, 1.01), (calls + gauge).format(300, 1.02)]
    assert "of 300 drafts, 5 had" in (alarm_after("sglang", url, "eagle", broken) or "")
    assert alarm_after("sglang", url, "eagle", [(calls + gauge).format(300, 1.6)]) is None
    assert alarm_after("sglang", url, "eagle", [gauge.format(0, 1.01)]) is None  # how many drafts is not told


def test_sglang_gauges_are_averaged_over_ranks(url: str) -> None:
    page = "".join(
        f'# TYPE sglang:{name} gauge\nsglang:{name}{{tp_rank="0"}} {a}\nsglang:{name}{{tp_rank="1"}} {b}\n'
        for name, a, b in (("spec_accept_length", 2.0, 3.0), ("spec_accept_rate", 0.4, 0.6))
    )
    assert lines("sglang", url, [page])[0] == (
        "acceptance rate 0.500, mean acceptance length 2.50 (SGLang's last interval)"
    )


def test_tensorrt_llm_iterations_are_weighted_and_ranks_not_counted_twice(url: str) -> None:
    def row(drafts: int, drafted: int, accepted: int, rank: int = 0) -> dict[str, object]:
        stats = {"numRequestsWithDraftTokens": drafts, "numDraftTokens": drafted, "numAcceptedTokens": accepted}
        return {"iter": 1, "attentionDpRank": rank, "specDecodingStats": stats}

    pages = [json.dumps([row(2, 8, 4), row(2, 8, 4, rank=1), {"iter": 2}]), "[]", json.dumps([row(1, 4, 4)])]
    first, second, third, total = lines("trtllm", url, pages)
    assert first == "acceptance rate 0.500, mean acceptance length 3.00 (2 drafts, 8 drafted, 4 accepted)"
    assert second is None
    assert third == "acceptance rate 1.000, mean acceptance length 5.00 (1 drafts, 4 drafted, 4 accepted)"
    assert total is not None
    assert total.endswith("(3 drafts, 12 drafted, 8 accepted)")


@pytest.mark.parametrize("page", ["{not metrics", '{"a": 1}', "[1]"])
def test_a_page_that_cannot_be_read_is_said(page: str, url: str) -> None:
    found = lines("trtllm", url, [page])[0]
    assert found is not None
    assert found.startswith("acceptance unknown: http://127.0.0.1")


def test_a_server_without_metrics_is_said(url: str) -> None:
    Pages.pages = []
    reader = AcceptanceReader("vllm", url)
    found = reader.line()
    reader.close()
    assert found is not None
    assert "404" in found


def test_counters_that_are_not_all_there_are_said(url: str) -> None:
    page = "\n".join(line for line in vllm((4, 16, 8)).splitlines() if "draft_tokens" not in line) + "\n"
    found = lines("vllm", url, [page])[0]
    assert found is not None
    assert "it lacks draft_tokens" in found

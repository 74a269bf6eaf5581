"""Settings in the files that start engines: found where they stand, and judged as the engine's program would."""

from __future__ import annotations

import pytest

from specctl.rules.checker import check_file
from specctl.rules.report import Report
from specctl.source.document import Document

GOOD = '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_min":2,"prompt_lookup_max":4}'
BAD = GOOD.replace(":4}", ":1}")  # the bounds are crossed
ESCAPED = GOOD.replace('"', '\\"')


def reports(name: str, text: str) -> list[Report]:
    return check_file(Document(name, text, "yaml"))


def codes(name: str, text: str) -> list[str]:
    return [found.code for report in reports(name, text) for found in report.diagnostics]


VALID = {
    "more.sh": f"vllm serve m --speculative-config '{GOOD}' \"$@\"\n",
    "extra.sh": f"vllm serve m --speculative-config '{GOOD}' ${{EXTRA:-}} \"${{MORE[@]}}\" $*\n",
    "number.sh": f"vllm serve m -tp $GPUS --port \"$PORT\" --speculative-config '{GOOD}'\n",
    "lists.sh": f"vllm serve m --served-model-name a b --lora-modules x=y z=w -O3 --speculative-config '{GOOD}'\n",
    "short.sh": f"vllm serve m -dpl 2 -asc 4 -O 2 --hf-token --speculative-config '{GOOD}'\n",
    "docker.sh": f"docker run vllm/vllm-openai:v0.31.0 /models/m --speculative-config '{GOOD}'\n",
    "inner.sh": f"docker run --entrypoint sh vllm/vllm-openai:v0.31.0 -c 'vllm serve m -sc {ESCAPED}'\n",
    "pod.sh": f"kubectl run x --image=vllm/vllm-openai -- --model m --speculative-config='{GOOD}'\n",
    "ssh.sh": f"ssh gpu1 \"vllm serve m --speculative-config '{ESCAPED}'\"\n",
    "bench.sh": f"vllm bench throughput --model m --num-prompts 9 --speculative-config '{GOOD}'\n",
    "branch.sh": f'if a; then\n  X="--speculative-config {ESCAPED}"\nelse\n  X=""\nfi\nvllm serve m $X\n',
    "eval.sh": f'C="vllm serve m"\nC+=" --speculative-config \'{ESCAPED}\'"\neval "$C"\n',
    "vllm.env": f"MODEL=m\nARGS=--speculative-config {GOOD} --seed 1\n",
    "m.service": f'[Service]\nEnvironment="S={ESCAPED}"\nExecStart=/bin/vllm serve m --speculative-config ${{S}}\n',
    "single.service": f"[Service]\nEnvironment='S={GOOD}'\nExecStart=vllm serve m --speculative-config ${{S}}\n",
    "rank.sh": "python3 -m sglang.launch_server --model-path m --node-rank ${RANK} --tp $N --speculative-algorithm "
    "NGRAM --speculative-num-draft-tokens 8 --max-running-requests 8\n",
    "other.yaml": f"command: [python3, -m, dynamo.vllm]\nargs: [--model, m, --worker, '--speculative-config={GOOD}']\n",
    "kserve.yaml": f"model:\n  args:\n  - --model_id=m\n  - '--speculative-config={GOOD}'\n",
    "word.yaml": f"- image: vllm/vllm-openai\n  args: [m, --served-model-name, a, b, '--speculative-config={GOOD}']\n",
    "serve.yaml": f"vllm:\n  args: >-\n    serve m\n    --speculative-config '{GOOD}'\n",
    "patch.yaml": f"- op: add\n  path: /args/-\n  value: --speculative-config={GOOD}\n",
    "range.yaml": f"args:\n- '--speculative-config={GOOD}'\n{{{{- range .Values.extra }}}}\n- {{{{ . | quote }}}}\n"
    "{{- end }}\n",
    "alias.yaml": "s: &s {method: ngram, num_speculative_tokens: 4, prompt_lookup_min: 2, prompt_lookup_max: 4}\n"
    "engine_kwargs: {speculative_config: *s}\n",
    "camel.yaml": f"vllmConfig:\n  speculativeConfig: {GOOD}\n",
    "Makefile": f"K ?= 4\nSPEC := {GOOD.replace(':4,', ':$(K),', 1)}\nserve:\n\tvllm serve m -sc '$(SPEC)'\n",
    "args.hcl": f'config {{\n  args  = ["--model", "m", "--speculative-config", "{ESCAPED}"]\n}}\n',
    "usage.sh": "cat <<EOF\n  vllm serve m --speculative-config JSON\nEOF\n"
    f"vllm serve m --speculative-config '{GOOD}'\n",
    "ray.yaml": "spec:\n  serveConfigV2: |\n    args:\n    - engine_kwargs:\n        speculative_config:\n"
    f"          {GOOD}\n",
    "twice.yaml": f"a: &a\n- --speculative-config\n- '{GOOD}'\nb: {{image: vllm/vllm-openai, args: *a}}\n"
    "c: {image: vllm/vllm-openai, args: *a}\n",
    "engine.yaml": "engine_kwargs:\n  speculative_algorithm: NGRAM\n  speculative_num_draft_tokens: 8\n  my_own: 1\n"
    "  max_running_requests: 8\n",
}


@pytest.mark.parametrize("name", VALID)
def test_what_works_gives_no_finding(name: str) -> None:
    found = reports(name, VALID[name])
    assert [report.verdict for report in found] == ["accepts"]
    assert [report.config.method.name if report.config else None for report in found] == ["ngram"]
    assert [each.code for each in found[0].diagnostics if each.code not in ("SPC502", "SPC323")] == []


@pytest.mark.parametrize("name", [name for name, text in VALID.items() if GOOD in text or ESCAPED in text])
def test_the_same_files_with_a_fault(name: str) -> None:
    text = VALID[name].replace(GOOD, BAD).replace(ESCAPED, BAD.replace('"', '\\"'))
    (found,) = [each for report in reports(name, text) for each in report.diagnostics if each.severity == "error"]
    assert found.code == "SPC106"
    assert found.span is not None
    line = text.split("\n")[found.span.line - 1]
    assert line[found.span.column - 1 : found.span.end_column - 1] == "2"


ALIASES = {
    "whole": "s: &s {method: ngram, num_speculative_tokens: 0}\na:\n  b: {speculative_config: *s}\n",
    "one value": "k: &k 0\na:\n  speculative_config: {method: ngram, num_speculative_tokens: *k}\n",
    "merged": "b: &b {method: ngram, num_speculative_tokens: 0}\na:\n  speculative_config:\n    <<: *b\n",
}


@pytest.mark.parametrize("text", ALIASES.values(), ids=ALIASES)
def test_settings_by_alias_point_to_the_value(text: str) -> None:
    (report,) = reports("a.yaml", text)
    (found,) = [each for each in report.diagnostics if each.severity == "error"]
    assert (found.code, found.span and found.span.line) == ("SPC104", 1)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("vllm serve m --served-model-name a --spec-mthod ngram\n", "SPC007"),  # looks like speculation: said
        ('X=\'--speculative-config {"method": "ngram", "num_speculative_tokens": 3}\'\nvllm serve m $X\n', "SPC002"),
        ('X="--speculative-config \'{\\"method\\":\\"ngram\\"}\'"\nvllm serve m $X\n', "SPC002"),  # quotes stay
        ("vllm serve m --watermark --spec-method ngram --spec-tokens 3\n", "SPC008"),
        ("docker run vllm/vllm-openai:v1 serve m --spec-method ngram --spec-tokens 3\n", "SPC008"),  # serve serve
    ],
)
def test_what_the_shell_or_the_program_breaks(text: str, code: str) -> None:
    assert code in codes("a.sh", text + "vllm serve m --spec-method suffix\n")


@pytest.mark.parametrize(
    "text",
    [
        'args = ["--speculative-config", jsonencode({ method = "ngram" })]\n',  # no list of texts
        "cat <<EOF\n  vllm serve m --speculative-config '{}'\nEOF\n",
        'note: "--speculative-config may be set"\nname: --speculative-config\n',
    ],
)
def test_prose_is_no_setting(text: str) -> None:
    assert codes("a.yaml" if text.startswith("note") else "a.sh", text) == ["SPC013"]


@pytest.mark.parametrize("mark", ["{{k}}", "{{ .Values.k }}"])
def test_template_marks_inside_quotes_are_named(mark: str) -> None:
    text = f"vllm serve m --speculative-config '{GOOD.replace(':4,', f':{mark},', 1)}'\n"
    (report,) = reports("justfile", text)
    assert [each.code for each in report.diagnostics] == ["SPC015"]
    assert mark in report.diagnostics[0].message


@pytest.mark.parametrize(
    ("text", "release"),
    [
        (
            "image: nvcr.io/nvidia/tensorrt-llm/release:1.4.0rc0\nargs: [trtllm-serve, m, --config, /a.yaml]\n",
            "1.4.0rc0",
        ),
        ("image: vllm/vllm-openai:v0.10.2\nargs: [--model, m, --spec-method, suffix]\n", "0.31.0"),
    ],
)
def test_the_release_of_the_image(text: str, release: str) -> None:
    (report,) = reports("a.yaml", text)
    assert report.release == release
    assert any("release 0.10.2 is not known" in note for note in report.result.assumptions) == ("0.10.2" in text)


def test_beside_the_setting() -> None:
    text = (
        "engine_kwargs:\n  tensor_parallel_size: 4\n  accelerator: H100\n  speculative_config:\n"
        "    {method: draft_model, model: org/d, num_speculative_tokens: 3, draft_tensor_parallel_size: 2}\n"
    )
    (report,) = reports("a.yaml", text)
    assert [each.code for each in report.diagnostics if each.severity == "error"] == ["SPC302"]


@pytest.mark.parametrize("name", ["setting", "setting.txt", "setting.conf"])
@pytest.mark.parametrize("text", [GOOD, f"speculative-config: {GOOD}\n", "speculative-algorithm: NGRAM\n"])
def test_a_setting_in_a_file_of_any_name(name: str, text: str) -> None:
    (report,) = reports(name, text)
    assert report.verdict == "accepts"
    assert report.config is not None


def test_json_with_the_arguments_around_the_setting() -> None:
    text = '{"model": "m", "tensor_parallel_size": 2, "speculative_config": ' + BAD + "}"
    (report,) = reports("llm.json", text)
    assert [(each.code, each.route) for each in report.diagnostics if each.severity == "error"] == [
        ("SPC106", ("speculative_config", "prompt_lookup_min"))
    ]


def test_what_hangs_on_the_environment_is_not_called_accepted() -> None:
    from specctl.diagnostics.as_text import render

    text = render([report.result for report in reports("a.sh", "vllm serve m --spec-method ngram --spec-tokens $K\n")])
    assert "vLLM 0.31.0 is not judged: the setting hangs on what stands elsewhere" in text
    assert "accepts" not in text

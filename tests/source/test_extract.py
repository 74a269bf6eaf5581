"""Command lines inside other files: found, read as their shell reads them, every character with its place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.source.document import Document
from specctl.source.extract import embedded
from specctl.source.mapped import Mapped
from specctl.source.shell import LONGEST, Shell, assignments


def words_of(text: str, variables: str = "") -> list[str]:
    known = assignments(Mapped.whole(variables))
    return [word.text for word in Shell(Mapped.whole(text), known).command(0)[0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
        ('a "x\\"y" \\{z', ["a", 'x"y', "{z"]),
        ("a \\\n  b", ["a", "b"]),
        ("a b # c", ["a", "b"]),
        ("a b; c", ["a", "b"]),
        ("a b > log 2>&1 c", ["a", "b", "c"]),
        ("a b && c", ["a", "b"]),
        ("a ''", ["a", ""]),
        ('a \'{"k": 1,\n  "l": 2}\'', ["a", '{"k": 1,\n  "l": 2}']),
    ],
)
def test_words_are_those_of_the_shell(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("text", "variables", "words"),
    [
        ("a $K", "K=4\n", ["a", "4"]),
        ("a ${K}", "export K='x y'\n", ["a", "x", "y"]),
        ('a "$K"', "export K='x y'\n", ["a", "x y"]),
        ("a '$K'", "K=4\n", ["a", "$K"]),
        ('a "${ARGS[@]}"', "ARGS=(--x 'y z')\n", ["a", "--x", "y z"]),
        ('a "${ARGS[@]}"', "ARGS=(--x)\nARGS+=(--y)\n", ["a", "--x", "--y"]),
        ("a $(K)", "K := 4\n", ["a", "4"]),
        ("a $K", "K=4\nif x; then\n  K=5\nfi\n", ["a", "$K"]),
        ("a ${K:-3}", "", ["a", "${K:-3}"]),
    ],
)
def test_variables_that_are_set_once(text: str, variables: str, words: list[str]) -> None:
    assert words_of(text, variables) == words


JSON = '{"method": "ngram", "num_speculative_tokens": 4}'
QUOTED = JSON.replace('"', '\\"')
FILES = {
    "run.sh": f"set -e\nexec vllm serve m \\\n  --speculative-config '{JSON}' &\n",
    "double.sh": f'vllm serve m --speculative-config "{QUOTED}"\n',
    "nested.sh": f"bash -lc \"vllm serve m --speculative-config '{QUOTED}'\"\n",
    "variable.sh": f"SPEC='{JSON}'\npython3 -m vllm.entrypoints.openai.api_server --speculative-config \"$SPEC\"\n",
    "array.sh": f"ARGS=(--speculative-config '{JSON}')\nvllm serve m \"${{ARGS[@]}}\"\n",
    "Dockerfile": f'FROM x\nCMD ["vllm", "serve", "m", \\\n "--speculative-config", "{QUOTED}"]\n',
    "two.Dockerfile": f'ENTRYPOINT ["vllm", "serve"]\nCMD ["m", "--speculative-config", "{QUOTED}"]\n',
    "m.service": f"[Service]\nExecStart=/opt/bin/vllm serve m \\\n --speculative-config '{JSON}'\n",
    "Makefile": f"run:\n\t@vllm serve m --speculative-config '{JSON}'\n",
    "args.yaml": f"spec:\n- image: vllm/vllm-openai\n  args:\n  - m\n  - --speculative-config\n  - '{JSON}'\n",
    "one.yaml": f"args:\n- vllm\n- serve\n- m\n- '--speculative-config={JSON}'\n",
    "double.yaml": f'args: [vllm, serve, m, --speculative-config, "{QUOTED}"]\n',
    "literal.yaml": f"data:\n  run: |\n    #!/bin/sh\n    vllm serve m \\\n      --speculative-config '{JSON}'\n",
    "folded.yaml": f"run: >-\n  vllm serve m\n  --speculative-config\n  '{JSON}'\n",
    "documents.yaml": f"a: 1\n---\nrun: |\n  vllm serve m --speculative-config '{JSON}'\n",
    "compose.yaml": "services:\n  a:\n    image: vllm/vllm-openai:v1\n"
    f"    command: >\n      --model m\n      --speculative-config '{JSON}'\n",
    "values.yaml": f"extraArgs:\n- --speculative-config\n- '{JSON}'\n",
    "helm.yaml": "{{- if .Values.on }}\nargs:\n- vllm\n- serve\n- {{ .Values.model }}\n"
    f"- --speculative-config\n- '{JSON}'\n{{{{- end }}}}\n",
    "env.yaml": "env:\n- name: SPEC\n  value: '" + JSON + "'\ncommand: [vllm, serve]\n"
    "args: [m, --speculative-config, $(SPEC)]\n",
}


@pytest.mark.parametrize("name", FILES)
def test_each_character_points_to_itself(name: str) -> None:
    text = FILES[name]
    found = embedded(Document(name, text, "yaml"))
    assert len(found) == 1
    assert found[0].engine == "vllm"
    word = next(each for each in found[0].words if "ngram" in each.text)
    assert JSON in word.text
    for char, place in word.mapped.pairs():
        assert text[place] == char or text[place : place + 2] == "\\" + char
    places = list(word.mapped.at)
    assert places == sorted(places)


@pytest.mark.parametrize(
    "text", ["# vllm serve m --speculative-config '{}'\n", "about: vllm\n", "x: [a, b]\n", "speculative: 1\n"]
)
def test_where_there_is_nothing(text: str) -> None:
    assert embedded(Document("a.yaml", text, "yaml")) == []
    assert embedded(Document("a.sh", text, "yaml")) == []


def test_variables_that_double_again_and_again() -> None:
    lines = ["V0=0123456789"] + [f'V{n}="$V{n - 1}$V{n - 1}"' for n in range(1, 60)]
    known = assignments(Mapped.whole("\n".join(lines)))
    assert len(known["V1"][0].text) == 20
    assert "V13" not in known
    assert all(sum(len(word.text) for word in words) <= LONGEST for words in known.values())


def test_settings_inside() -> None:
    body = "speculative_config:\n  decoding_type: NGram\n"
    script = f"cat > c.yaml <<'EOF'\n{body}EOF\ntrtllm-serve m --config c.yaml\n"
    inside = embedded(Document("a.sh", script, "yaml"))
    assert [each.setting.text if each.setting else None for each in inside] == [body, None]
    manifest = "data:\n  c.yaml: |\n    speculative_config:\n      decoding_type: NGram\n"
    inside = embedded(Document("a.yaml", manifest, "yaml"))
    assert [each.setting.text if each.setting else None for each in inside] == [body]


NESTED = """\
applications:
- args:
    llm_configs:
    - engine_kwargs:
        tensor_parallel_size: 2
        speculative_config:
          method: ngram
          num_speculative_tokens: 0
    - engine_kwargs: {speculative_config: {method: eagle3, num_speculative_tokens: 3}}
    - engine_kwargs:
        speculative_config: '{"method": "ngrm", "num_speculative_tokens": 3}'
"""


def test_settings_below_other_keys() -> None:
    from specctl.rules.checker import check_file

    reports = check_file(Document("serve.yaml", NESTED, "yaml"))
    lines = NESTED.split("\n")
    places = []
    for report in reports:
        found = next(each for each in report.diagnostics if each.severity == "error")
        assert found.span is not None
        places.append(lines[found.span.line - 1][found.span.column - 1 : found.span.end_column - 1])
    assert places == ["0", "eagle3", '"ngrm"']


def test_environment_of_the_command() -> None:
    text = 'Environment="VLLM_USE_V2_MODEL_RUNNER=1"\nExecStart=vllm serve m --spec-method ngram\n'
    assert embedded(Document("a.service", text, "yaml"))[0].env == {"VLLM_USE_V2_MODEL_RUNNER": "1"}
    text = "env: {VLLM_X: a, HOME: b}\ncommand: [vllm, serve, m, --spec-method, ngram]\n"
    assert embedded(Document("a.yaml", text, "yaml"))[0].env == {"VLLM_X": "a"}


PIECES = (
    "vllm serve ",
    "--speculative-config ",
    "'",
    '"',
    "{",
    "}",
    "\\",
    "\n",
    "$X",
    "${",
    "$(",
    "X=",
    "(",
    ")",
    "- ",
    ": ",
)
PIECES += (
    "|",
    ">",
    "#",
    "[",
    "]",
    "&a ",
    "*a ",
    "args:",
    "{{ x }}",
    "{% y %}",
    "<<EOF\n",
    "CMD [",
    " ",
    "  ",
    "\t",
    "é",
)
PIECES += ("speculative_x: 1", "--speculative-num-steps ", "3")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.sampled_from(["a.sh", "a.yaml", "Dockerfile"]))
def test_any_text_is_taken_apart_without_a_traceback(text: str, name: str) -> None:
    for found in embedded(Document(name, text, "yaml")):
        for mapped in (found.setting, *(word.mapped for word in found.words)):
            if mapped is not None:
                assert len(mapped.at) == len(mapped.text)
                assert all(0 <= place < len(text) for place in mapped.at)

"""A TensorRT-LLM file as another release takes it: only what must change changes, comments and order stay."""

from __future__ import annotations

from typing import Any

from specctl.dialects import trtllm
from specctl.dialects.field import by_key
from specctl.dialects.render import render
from specctl.source import Document, read_yaml
from specctl.source.rewrite import Edit, edited
from specctl.spec import SpecDecodeConfig

KEY = "speculative_config"


def moved_file(text: str, old: str, spec: SpecDecodeConfig, new: str) -> tuple[dict[str, Any], str] | None:
    """The file's root and its text for release `new`; `spec` is its setting, `old` the release it was read for.

    None where the text is no file with a root of arguments, such as a bare setting."""
    root = read_yaml(Document("<file>", text, "yaml")).value
    given = root.get(KEY) if isinstance(root, dict) else None
    if not isinstance(given, dict):
        return None
    if old == new:
        return root, text
    edits, added = _edits(given, trtllm.write(spec, old)[KEY], trtllm.write(spec, new)[KEY], spec, new)
    setting: dict[str, Any] = {}
    for key, value in given.items():
        edit = edits.get(key, Edit(key))
        if edit.key is not None:
            setting[edit.key] = edit.value if edit.changed else value
    output = root | {KEY: setting | added}
    kept = edited(text, (KEY,), edits, added)
    return output, kept if kept is not None else render(output, "trtllm")


def _edits(
    given: dict[str, Any], before: dict[str, Any], after: dict[str, Any], spec: SpecDecodeConfig, release: str
) -> tuple[dict[str, Edit], dict[str, Any]]:
    """What changes of the keys that are written: by the difference of what the writer says for both releases, so that
    defaults which somebody wrote out stay, and by what the release does not know."""
    known = by_key(trtllm.ROWS, release, trtllm.native_type(spec, release))
    names = {name: row.key for row in trtllm.ROWS for name in (row.key, *row.aliases)}
    edits: dict[str, Edit] = {}
    left = dict(after)
    for written in given:
        key = names.get(written, written)
        other = _COUNTS.get(key)
        if key in left and (key not in before or before[key] == left[key] or written not in known):
            value = left.pop(key)
            if key not in before and given[written] != value:
                edits[written] = Edit(written, value, changed=True)
        elif key in left:
            edits[written] = Edit(written, left.pop(key), changed=True)
        elif other in left and other not in given:
            edits[written] = Edit(other, left.pop(other), changed=True)
        elif key in before or written not in known:
            edits[written] = Edit(None)
    return edits, left


# The draft length under its two names.
_COUNTS = {"num_nextn_predict_layers": "max_draft_len", "max_draft_len": "num_nextn_predict_layers"}

"""Remarks to specctl inside YAML comments.

`# specctl: ignore SPC010, SPC12` at the end of a line silences these codes (or beginnings of codes) on this line; on
a line of its own, on the next one. `# specctl: ignore-file SPC010` silences them in the whole file. Without codes,
all are meant."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_REMARK = r"#\s*specctl:\s*(ignore-file|ignore)\b[ \t]*([A-Z0-9, \t]*)"


@dataclass
class Remarks:
    """Silenced codes: of the whole file, and by line."""

    file: tuple[str, ...] = ()
    lines: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def silence(self, code: str, line: int | None) -> bool:
        """Whether a code is silenced at a line."""
        here = self.lines.get(line or 0, ())
        return any(code.startswith(each) for each in (*self.file, *here))


def remarks_of(text: str) -> Remarks:
    """The remarks of a text; cheap where there are none."""
    found = Remarks()
    if "specctl:" not in text:
        return found
    for number, line in enumerate(text.split("\n"), 1):
        remark = re.search(_REMARK, line)
        if remark:
            codes = tuple(remark.group(2).replace(",", " ").split()) or ("SPC",)
            if remark.group(1) == "ignore-file":
                found.file += codes
            else:
                alone = line.lstrip().startswith("#")
                place = number + 1 if alone else number
                found.lines[place] = found.lines.get(place, ()) + codes
    return found

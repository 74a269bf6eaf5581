"""Text in, values with places out.

Belongs here: reading files, JSON, YAML and command lines so that every value keeps its line and column; damage done
in transport. Does not belong here: what a key means (dialects), whether it is right (rules), models (modelinfo). Who
may enter: every room from dialects up; this one imports diagnostics (for places) and errors only."""

from specctl.source.document import Document, Problem, read_file, sniff
from specctl.source.marked import read_json, read_yaml

__all__ = ["Document", "Problem", "read_file", "read_json", "read_yaml", "sniff"]

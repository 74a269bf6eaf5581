"""The converted setting says the same word, but the engines mean different things by it."""

SEVERITY = "warning"

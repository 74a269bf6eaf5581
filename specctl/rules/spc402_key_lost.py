"""A value has no counterpart in the other engine and is left out of the converted setting."""

SEVERITY = "warning"

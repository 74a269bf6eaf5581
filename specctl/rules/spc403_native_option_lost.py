"""An option that only the source's engine knows is left out of the converted setting."""

SEVERITY = "warning"

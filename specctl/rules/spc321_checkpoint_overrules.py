"""The served checkpoint brings its own method and draft, and what is written is ignored.

Serving a speculators checkpoint as the model replaces target and tokenizer by its verifier and locks method and draft.
"""

SEVERITY = "warning"

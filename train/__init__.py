"""Trains the bundled demo models: corpus, tokenizer, target, draft, evaluation, model cards.

Belongs here: whatever made the files under `specctl/bundled/`. What does not: anything that
specctl runs. Nothing imports this.
"""

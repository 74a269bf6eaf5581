"""The text is not JSON.

The place is the first character that cannot stand there. Where one known kind of damage explains the whole text
(typographic quotes, quotes eaten by a shell, doubled escapes, Python's True, comments, template braces, a missing
brace), the help shows the repaired text.

Bad:

    vllm: {"method": "ngram", "num_speculative_tokens": 3

Bad:

    vllm: {'method': 'ngram', 'num_speculative_tokens': 3}

Good:

    vllm: {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
"""

"""A flag lacks its value, has one that it does not take, is short for several flags, or a word is left over.

Bad:

    sglang: --speculative-algorithm EAGLE3 --speculative-adaptive true

Good:

    sglang: --speculative-algorithm NGRAM
"""

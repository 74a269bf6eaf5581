"""One file holds the spellings of two engines.

A file that was named alone ends the command with status 2; in a folder it is one error among the others.
"""

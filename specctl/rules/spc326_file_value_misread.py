"""A value of the config file, or the file itself, is read otherwise than it looks.

SGLang reads `--config FILE` but ignores `--config=FILE`; a null in the file becomes the text None.
"""

SEVERITY = "warning"

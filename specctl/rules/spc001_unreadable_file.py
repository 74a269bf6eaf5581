"""The file is no text that can be read.

A settings file is UTF-8 text (YAML or JSON) of a few kilobytes. Binary files, other encodings and files of many
megabytes are answered without an attempt to read them."""

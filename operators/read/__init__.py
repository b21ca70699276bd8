"""Readers: the `read.*` operators declare how the files of an input are read."""

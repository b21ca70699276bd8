"""Fingerprints of public test sets, kept as hashes only, and the search for them in other texts."""

from datamill.services.benchmarks.fingerprint import Fingerprint, Match, build_fingerprint, strongest
from datamill.services.benchmarks.registry import find_benchmark, match_texts, names, register

__all__ = [
    "Fingerprint",
    "Match",
    "build_fingerprint",
    "find_benchmark",
    "match_texts",
    "names",
    "register",
    "strongest",
]

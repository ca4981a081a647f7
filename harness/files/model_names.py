"""How models are named that no encoder opens: by what the name looks like, nothing is read."""

from __future__ import annotations

from pathlib import Path

from harness.files.imports import names_code

UNKNOWN = "unknown"  # how an outside model pools, cuts and was trained
OBJECT = "python:"  # before the name of an object of this process
_FILES = (".parquet", ".npz")
MTEB = "mteb:"
MTEB_MODEL = "model of mteb"
_SCHEMES = ("embedded", "mteb", "python")
ENDPOINTS = ("http://", "https://")


def is_file(name: str) -> bool:
    """Return True for the name of a file of vectors, whether there is one or not."""
    return name.endswith(_FILES) and not name.startswith(ENDPOINTS)


def is_function(name: str) -> bool:
    """Return True for "module:function"."""
    return names_code(name) and name.partition(":")[0] not in _SCHEMES


def kind_of_model(name: str) -> str:
    """Return what kind of outside model a name is of; empty for what our encoder may open.

    >>> kind_of_model("vectors.npz"), kind_of_model("http://localhost:8080/v1#bge")
    ('vectors of a file', 'endpoint')
    >>> kind_of_model("encoders:embed"), kind_of_model("embedded:mini-bert")
    ('function', '')
    """
    if name.startswith(ENDPOINTS):
        return "endpoint"
    if is_file(name):
        return "vectors of a file"
    if name.startswith(MTEB):
        return MTEB_MODEL
    if name.startswith(OBJECT):
        return "object of Python"
    return "function" if is_function(name) else ""


def label_of(name: str) -> str:
    """Return what a row of a model is called: the name without place or kind.

    >>> label_of("sentence-transformers/all-MiniLM-L6-v2"), label_of("vectors/ada.parquet")
    ('all-MiniLM-L6-v2', 'ada')
    >>> label_of("http://localhost:8080/v1#bge"), label_of("encoders:embed")
    ('bge', 'embed')
    """
    if name.startswith(ENDPOINTS):
        return name.rpartition("#")[2]
    last = name.rstrip("/").rpartition("/")[2]
    last = last.rpartition(":")[2]
    if is_file(last):
        return Path(last).stem
    return last


def calls_others(name: str) -> str:
    """Return what code or machine of someone else a model is: "imports ..."; empty for none.

    >>> calls_others("encoders:embed"), calls_others("embedded:mini-bert")
    ('imports "encoders:embed"', '')
    """
    if is_function(name):
        return f'imports "{name}"'
    if name.startswith(ENDPOINTS):
        return f'sends its texts to "{name}"'
    return ""

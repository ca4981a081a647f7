"""The README of a saved model before any run has told its results: what the hub reads, and how it is opened."""

from __future__ import annotations

from harness.results.card_files import TAGS

_FRONT = "\n".join(("library_name: sentence-transformers", "pipeline_tag: sentence-similarity", "tags:"))
_PLAIN = """from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("PATH_TO_THIS_FOLDER").encode(["A sentence.", "Another one."])"""
_OURS = """from sentence_transformers import SentenceTransformer
from harness.modules import SavedMethod  # pip install sentence-harness

model = SentenceTransformer(modules=[SavedMethod.load("PATH_TO_THIS_FOLDER")])
vectors = model.encode(["A sentence.", "Another one."])"""
_OUR_MODULE = """from sentence_transformers import SentenceTransformer  # and: pip install sentence-harness

model = SentenceTransformer("PATH_TO_THIS_FOLDER", trust_remote_code=True)
vectors = model.encode(["A sentence.", "Another one."])"""
_WHY_MODULE = """
Its vectors are made of the second of two copies of a sentence. No module of sentence-transformers can tell it from the
first, so `modules.json` names a class of the package `sentence-harness`, which has to be installed.
sentence-transformers asks for the flag with every class that is not its own; this folder holds no code.
"""
_WHY = """
No module of sentence-transformers can express this method, so `modules.json` names a class of the package
`sentence-harness`, which has to be installed. `SentenceTransformer("PATH_TO_THIS_FOLDER", trust_remote_code=True)` does
the same: sentence-transformers asks for the flag with every class that is not its own; this folder holds no code.
"""


def card_text(text: str, *, ours: bool = False, second_copy: bool = False, after: str = "") -> str:
    """`text` (Markdown) with front matter and how the folder is used; `ours`: it needs `harness.modules`, and
    `second_copy`: that module alone among stock ones."""
    tags = "\n".join(f"- {tag}" for tag in TAGS)
    code, why = (_OUR_MODULE, _WHY_MODULE) if second_copy else (_OURS, _WHY) if ours else (_PLAIN, "")
    use = f"## Use\n\n```python\n{code}\n```\n{why}"
    return f"---\n{_FRONT}\n{tags}\n---\n\n{text.strip()}\n\n{use}{after}"

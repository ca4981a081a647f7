"""Promises of the fitted method: what `fit`, `encode`, `save` and `load` give."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch

from harness.conformance.subject import TEXTS, Subject, expect, gap, vectors

TOLERANCE = 1e-5  # of the largest value; rounding in float32 depends on the shape of a batch
ODD = [
    "",
    " \t\n",
    "🙂🙃👩‍👩‍👧‍👦",
    "word " * 3000,
    "x" * 5000,
    "line\nbreak\x00and\u200bzero width",
    "日本語 العربية हिन्दी",
    "lone surrogate \ud800",
    "[CLS] [MASK] </s>",
]


def fit(s: Subject) -> str:
    """`fit` returns the method itself, and reports what can be written to a record."""
    method, returned = s.first_fit
    expect(returned is method, f"fit returned {type(returned).__name__}, not self")
    report = method.fit_report
    json.dumps([report.training, report.cost], allow_nan=False)
    expect(isinstance(method.num_parameters(), int), "num_parameters() is not a whole number")
    if "steps" in report.training:
        steps = f"{report.training['steps']} steps, "
    else:
        steps = ""
    return f"{steps}{method.num_parameters():,} parameters"


def shapes(s: Subject) -> str:
    """(n, d) in float32, finite; (d,) for a string; (0, d) for none; tensors and unit length on
    request.
    """
    method = s.fitted
    seen = vectors(method)
    is_sound = seen.ndim == 2 and len(seen) == len(TEXTS)
    expect(is_sound, f"shape {seen.shape} for {len(TEXTS)} sentences")
    is_float = seen.dtype == np.float32
    expect(is_float, f"dtype {seen.dtype}, not float32")
    expect(bool(np.isfinite(seen).all()), "values that are not finite")
    d = seen.shape[1]
    if method.transductive:
        method = method.for_task(TEXTS)
    one = np.asarray(method.encode(TEXTS[0]))
    is_vector = one.shape == (d,)
    expect(is_vector, f"shape {one.shape} for one string, not ({d},)")
    empty = np.asarray(method.encode([]))
    is_empty = empty.shape == (0, d)
    expect(is_empty, f"shape {empty.shape} for no sentences, not (0, {d})")
    tensor = method.encode(TEXTS[:2], convert_to_tensor=True)
    expect(
        torch.is_tensor(tensor) and tensor.shape == (2, d),
        "convert_to_tensor does not give a tensor (2, d)",
    )
    unit = np.asarray(method.encode(TEXTS, normalize_embeddings=True))
    norms = np.linalg.norm(unit, axis=1)
    is_unit = bool(np.abs(norms - 1).max() < 1e-4)
    lengths = f"{norms.min():.4g} to {norms.max():.4g}"
    expect(is_unit, f"normalize_embeddings: lengths {lengths}")
    distinct = len(np.unique(seen, axis=0))
    expect(distinct == len(TEXTS), "different sentences have the same vector")
    return f"(n, {d}) float32"


def repeatable(s: Subject) -> str:
    """The same call gives the same bits, and a text has the same vector alone as in a batch, in any
    place of it.
    """
    first = vectors(s.fitted)
    second = vectors(s.fitted)
    expect(
        bool((first == second).all()),
        f"two calls differ by {gap(first, second):.1e}; is dropout off in encode?",
    )
    texts = [*TEXTS, "A short one.", *TEXTS[::-1]]
    one_by_one = [vectors(s.fitted, [text], batch_size=1) for text in texts]
    alone = np.concatenate(one_by_one)
    seen = gap(alone, vectors(s.fitted, texts, batch_size=64))
    expect(
        seen < TOLERANCE,
        f"vectors differ by {seen:.1e} between a batch and each text alone (at most {TOLERANCE:g}); is padding masked?",
    )
    return f"two calls are equal bit for bit; largest difference in a batch {seen:.1e}"


def odd_text(s: Subject) -> str:
    """Empty, very long, emoji, control characters, other scripts: a finite vector each."""
    for text in ODD:
        seen = vectors(s.fitted, [text, TEXTS[0]])
        is_finite = bool(np.isfinite(seen).all())
        expect(is_finite, f"not finite for {text[:20]!r}")
    return f"{len(ODD)} texts"


def save_and_load(s: Subject) -> str:
    """A saved and loaded method has the same settings and vectors; nothing is pickled."""
    method = s.fitted
    path = s.folder / "model"
    method.save(path)
    method.save(path)  # a second time replaces the first
    names = []
    for file in path.rglob("*"):
        if file.is_file():
            names.append(file.relative_to(path).as_posix())
    pickled = []
    for name in names:
        if name.endswith((".bin", ".pt", ".pth", ".pkl", ".pickle", ".joblib")):
            pickled.append(name)
    expect(not pickled, f"pickled files: {', '.join(pickled)}; write safetensors and JSON")
    expect("README.md" in names, "no README.md in the saved folder")
    again = type(method).load(path)
    expect(again.config == method.config, "the loaded config differs")
    expect(again.base_model == method.base_model, "the loaded base model differs")
    seen = gap(vectors(method), vectors(again))
    limit = f"(allowed: {TOLERANCE:g})"
    expect(seen < TOLERANCE, f"loaded vectors differ by {seen:.1e} {limit}")
    return f"{len(names)} files, largest difference {seen:.1e}"


def sentence_transformer(s: Subject) -> str:
    """`SentenceTransformer(path).encode` gives the same vectors.

    A method whose vectors stock modules cannot express has a class of `harness.modules` in its
    modules.json (`harness.encoder.layout`), or writes a layout of its own, without modules.json.
    """
    method = s.fitted
    path = s.folder / "model"
    if not path.exists():
        method.save(path)
    if not (path / "modules.json").exists():
        return "does not apply: a layout of its own (no modules.json), read by Method.load"
    from sentence_transformers import SentenceTransformer

    from harness.encoder.layout import is_whole_method, names_our_modules
    from harness.encoder.quiet import quiet_transformers

    with quiet_transformers():
        if is_whole_method(path):
            from harness.modules import SavedMethod

            module = SavedMethod.load(str(path))
            theirs: Any = SentenceTransformer(modules=[module], device="cpu")
        else:
            theirs = SentenceTransformer(
                str(path), device="cpu", trust_remote_code=names_our_modules(path)
            )
    texts = [*TEXTS, "", "🙂 emoji", "word " * 600]
    seen = gap(vectors(method, texts), theirs.encode(texts))
    expect(
        seen < TOLERANCE,
        f"SentenceTransformer's vectors differ by {seen:.1e} (allowed: {TOLERANCE:g})",
    )
    return f"largest difference {seen:.1e}"

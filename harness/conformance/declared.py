"""Promises that need no fit: configuration, card, and one clear line for wrong input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, get_args

from harness import registry
from harness.conformance.subject import BrokenPromiseError, Subject, expect
from harness.errors import InputError, NotFitted
from harness.method import Supervision, Text
from harness.recipes import iterate_presets


def refusal(call: Callable[[], Any], what: str, kind: type[Exception] = InputError) -> str:
    """The message of the one-line `kind` that `call` must raise."""
    try:
        call()
    except kind as error:
        expect(
            "\n" not in str(error) and str(error).strip() != "",
            f"{what}: the message is not one line: {error}",
        )
        return str(error)
    except Exception as error:
        said = " ".join(str(error).split())
        found = f"{type(error).__name__} ({said:.120})"
        raise BrokenPromiseError(f"{what}: {found}, expected {kind.__name__}") from error
    raise BrokenPromiseError(f"{what}: accepted, expected {kind.__name__}")


def configuration(s: Subject) -> str:
    """The config survives dict and JSON, an unknown key is refused by name, and each option has one
    line of help.
    """
    config = s.config
    kind = type(s.config)
    for what, values in (
        ("a dict", config.model_dump()),
        ("JSON", json.loads(config.model_dump_json())),
    ):
        again = kind.parse(values, what)
        changed = []
        for key in kind.model_fields:
            if getattr(again, key) != getattr(config, key):
                changed.append(key)
        keys = ", ".join(changed)
        expect(not changed, f"the config changes on its way through {what}: {keys}")
    message = refusal(
        lambda: kind.parse({**config.model_dump(), "no_such_option": 1}, "config"), "an unknown key"
    )
    expect(
        "no_such_option" in message, f"the message on an unknown key does not name it: {message}"
    )
    helps = {}
    for key, field in kind.model_fields.items():
        helps[key] = (field.description or "").strip()
    wrong = []
    for key, text in helps.items():
        if not text or "\n" in text:
            wrong.append(key)
    expect(
        not wrong,
        f"not one line of help: {', '.join(wrong)}; declare options with harness.config.option",
    )
    return f"{len(helps)} options"


def presets_and_sweeps(s: Subject) -> str:
    """Every preset is a valid configuration, every value that a study may try is allowed."""
    for preset, family in iterate_presets(s.method.presets):
        config = s.method.configure(s.values, preset=preset, family=family)
        written = json.loads(config.model_dump_json())
        again = s.method.Config.parse(written, "JSON")
        expect(again == config, f'preset "{preset}" changes on its way through JSON')

    config = s.method.configure(s.values, preset=s.preset, base_model=s.base_model)
    plain = config.model_dump()
    sweeps = s.method.Config.sweeps()
    for key, sweep in sweeps.items():
        values = sweep.get("choices") or (sweep["low"], sweep["high"])
        for value in values:
            changed = {**plain, key: value}
            s.method.Config.parse(changed, f"sweep of {key}")
    return (
        f"presets: {', '.join(s.method.presets) or 'none'}; to sweep: {', '.join(sweeps) or 'none'}"
    )


def card(s: Subject) -> str:
    """Title, source, kind of text, supervision and cost are given; published rows exist."""
    method = s.method
    about = s.method.card
    is_path = method.name.startswith(registry.LOSS)  # of a class that no package registers
    expect(
        is_path or bool(re.fullmatch(r"[a-z][a-z0-9_]*", method.name)),
        f'name "{method.name}" is not lower_case',
    )
    expect(
        s.entry in (None, method.name), f'installed as "{s.entry}", but its name is "{method.name}"'
    )
    expect(
        bool(about.title.strip() and about.paper.strip()),
        "card: title and paper must say something",
    )
    expect(
        about.text in get_args(Text),
        f'card: text "{about.text}" is not one of {", ".join(get_args(Text))}',
    )
    expect(
        about.supervision in get_args(Supervision),
        f'card: supervision "{about.supervision}" is not one of {", ".join(get_args(Supervision))}',
    )
    texts = get_args(Text)
    expect(s.text in texts, f'text: "{s.text}" is not one of {", ".join(texts)}')
    learns = s.text != "none"
    supervision = method(s.config).supervision
    expect(
        not learns or supervision != "untrained",
        f'learns from {s.text}, but its supervision is "untrained"',
    )
    expect(
        not learns or about.cost != "none",
        'learns, but card.cost is "none"; one phrase: what does training cost?',
    )
    from harness.results.published import folders, published_rows

    if folders():
        rows = [len(published_rows(key)) for key in about.published]
    else:
        rows = []
    return f"{about.title}; {supervision}; {sum(rows)} published numbers"


def before_fit(s: Subject) -> str:
    """`encode` and `save` before `fit` raise `NotFitted`."""
    for name, use in (
        ("encode", lambda m: m.encode("early")),
        ("save", lambda m: m.save(s.folder / "early")),
    ):
        refusal(lambda use=use: use(s.new()), f"{name} before fit", NotFitted)  # type: ignore[misc]
    expect(not (s.folder / "early").exists(), "save before fit wrote something")
    return "encode and save raise NotFitted"


def wrong_corpus(s: Subject) -> str:
    """No corpus, a corpus of another kind and a corpus of one item are each refused in one line."""
    if s.text == "none":
        return "does not apply: learns from no text"
    from harness.sources import load_corpus

    refusal(lambda: s.new().fit(None), "no corpus")
    for kind in ("sentences", "pairs", "documents"):
        if kind != s.text:
            other = load_corpus(f"embedded:{kind}", kind=kind, limit=4)
            refusal(lambda other=other: s.new().fit(other), f"a corpus of {kind}")  # type: ignore[misc]
    refusal(lambda: s.new().fit(_one_item(s)), "a corpus of one item")
    return "none, of another kind, of one item: one line each"


def _one_item(s: Subject) -> Any:
    from harness.sources.corpus.corpus import corpus_in_memory

    pair = ("Only one of its kind.", "There is no other.", "There are many.")
    given = pair if s.text == "pairs" else pair[0]
    return corpus_in_memory([given], s.text, "one.txt")  # type: ignore[arg-type]

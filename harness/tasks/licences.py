"""What the sources of data sets state of their licences, as tables of reports and pages show it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.files.reading import read_toml
from harness.sources.senteval.labelled import PROBING
from harness.sources.senteval.prepared import PREPARED
from harness.tasks.mteb.benchmarks import EMBEDDED, PREFIX

NOT_STATED = "not stated"
_TABLES = (
    Path(__file__).parents[1] / "sources" / "licences.toml",
    Path(__file__).parent / "mteb" / "licences.toml",
)
_EMBEDDED = "CC0 1.0", "https://creativecommons.org/publicdomain/zero/1.0/"
# mteb's names of data sets that have another name here.
_SAME_DATA = {"STSBenchmark": "STS-B"}
_TRANSLATED = "STS-B-"  # under the terms of STS-B, as their licence says
_PREPARED = {"SNLI": "snli", "COCO": "coco"}


@dataclass(frozen=True)
class Licence:
    """A data set's licence in words, `NOT_STATED` where its source states none, and a link to where
    more is said.
    """

    text: str
    link: str


@cache
def stated_licences() -> dict[str, Licence]:
    """Return the licence of every public data set that is known, by name.

    >>> stated_licences()["SICK-R"].text, stated_licences()["MR"].text
    ('CC BY-NC-SA 3.0', 'not stated')
    """
    found = {}
    for file in reversed(_TABLES):
        for name, entry in read_toml(file).items():
            found[name] = Licence(entry["licence"] or NOT_STATED, entry["link"])
    for name, key in _PREPARED.items():
        data = PREPARED[key]
        found[name] = Licence(data.licence, data.address)
    probing = PREPARED["probing"]
    for name in PROBING:
        found[name] = Licence(probing.licence, probing.address)
    return found


def find_licence(source: str, task: str) -> Licence | None:
    """Return the licence of a task's data; None where nothing is known of it, as of own files.

        >>> find_licence("embedded", "Embedded-STS-natural").text
        'CC0 1.0'

    Args:
        source, task: as in a score.
    """
    name = task.removeprefix(PREFIX).partition(":")[0]
    if source == "embedded" or name.startswith(EMBEDDED):
        return Licence(*_EMBEDDED)
    if source not in ("senteval", "mteb", "stsb-multi-mt"):
        return None
    name = _SAME_DATA.get(name, name)
    if name.startswith(_TRANSLATED):
        name = _TRANSLATED.rstrip("-")
    return stated_licences().get(name)

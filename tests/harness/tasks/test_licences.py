"""The licences of data sets: what their sources state, and nothing where they state nothing."""

from __future__ import annotations

import mteb
import pytest

from harness.sources.pair_sets import MTEB_SETS, TRANSLATED
from harness.sources.senteval.labelled import PROBING
from harness.tasks.licences import NOT_STATED, find_licence, stated_licences
from harness.tasks.mteb.benchmarks import MTEB_SUITES, names_of
from harness.tasks.senteval.transfer import TRANSFER


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("senteval", [*MTEB_SETS, *TRANSFER, *PROBING, "SNLI"]),
        ("mteb", [*MTEB_SETS]),
        ("stsb-multi-mt", [*TRANSLATED]),
        ("mteb", [f"mteb:{name}" for suite in MTEB_SUITES.values() for name in names_of(suite)]),
    ],
)
def test_every_task_on_public_data_has_a_line(source: str, names: list[str]) -> None:
    assert [name for name in names if find_licence(source, name) is None] == []


def test_what_mteb_states_is_shown_as_it_states_it() -> None:
    for name in ("ArguAna", "TwentyNewsgroupsClustering", "MassiveIntentClassification"):
        stated = mteb.get_task(name).metadata.license
        found = find_licence("mteb", f"mteb:{name}")
        assert found is not None
        assert found.text == (NOT_STATED if stated in (None, "not specified") else stated)


def test_own_files_have_none_and_the_embedded_suite_is_free() -> None:
    assert find_licence("file", "pairs.csv") is None
    found = find_licence("embedded", "Embedded-STS-natural")
    assert found is not None
    assert found.text == "CC0 1.0"


def test_links_are_of_the_web_or_missing() -> None:
    links = [licence.link for licence in stated_licences().values()]
    assert all(link == "" or link.startswith(("http://", "https://")) for link in links)

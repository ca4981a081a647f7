"""A comparison whose seeds are those of one stream alone: its runs, their records, and what they share with others."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import api
from harness.results.manifest import read_manifest
from harness.results.run_folder import RunFolder
from harness.seeds import PartSeed, seed_of
from tests.support import short_runs

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("few_pairs")]

EXPERIMENT = {
    "name": "small", "seeds": [1, 2], "suites": ["Embedded-STS-natural"], "max_steps": 2, "precision": "fp32",
    "corpus": {"uri": "embedded:sentences", "limit": 40}, "dev": {"task": "Embedded-STS-natural"},
    "methods": [{"method": "simcse", "preset": "mini", "config": {"batch_size": 8, "train_length": 12}}],
}  # fmt: skip


def test_records_and_manifest_say_what_varied_and_the_first_run_is_that_of_the_plain_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_runs.no_report(monkeypatch)
    views = api.compare({**EXPERIMENT, "vary": ["views"]}, workdir=tmp_path, tracked=False).records
    *views, start = views
    assert start.row == "untrained (cls)"
    assert [record.drawn for record in views] == [1, PartSeed(2, ("views",), 1)]
    assert [record.seed for record in views] == [1, 2]
    manifest = read_manifest(tmp_path, "small")
    assert manifest is not None
    assert [seed_of(cell) for cell in manifest["cells"]] == [record.drawn for record in (*views, start)]
    assert "--set" not in views[0].command or "vary" not in views[0].command
    assert "held_seed" in views[1].command
    # SimCSE draws nothing for its views, so the second run is the first in all but its id.
    first, second = (RunFolder(tmp_path, record.id).path / "model" / "model.safetensors" for record in views)
    assert views[0].id != views[1].id
    assert first.read_bytes() == second.read_bytes()
    plain = api.compare({**EXPERIMENT, "seeds": [1]}, workdir=tmp_path, tracked=False).records
    assert [record.id for record in plain] == [views[0].id, start.id]
    assert plain[0].finished == views[0].finished  # kept, not made again

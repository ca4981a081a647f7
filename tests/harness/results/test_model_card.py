"""The README of a saved model: what the hub's own loader reads from it, and what it must not claim."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from harness.results.model_card import write_card
from harness.results.record import Missing, Record, Score
from harness.results.spec import RunSpec

HOSTILE = (
    "a: [b] \x1b[31m<script>alert(1)</script>\n---\nx: 'y' \"z\" # | `c` \u202e # \\ &amp; {{ }} %"
)


def score(
    task: str,
    value: float,
    *,
    source: str = "senteval",
    split: str = "test",
    metric: str = "spearman",
) -> Score:
    return Score(
        task=task,
        suite="sts",
        source=source,
        split=split,
        metric=metric,
        aggregation="all",
        value=value,
        n=7,
        protocol=f"p{task}",
        comparable=f"c{task}",
    )


def record(**changes: Any) -> Record:
    about: dict[str, Any] = {
        "comparison": "c",
        "status": "finished",
        "row": "SimCSE",
        "supervision": "unsupervised",
        "scores": [
            score("STS12", 0.5),
            score("STS-B", 0.9, split="dev"),
            score("Embedded-STS-natural", 0.7, source="embedded"),
            score("alignment", 0.2, metric="alignment"),
        ],
        "missing": {"STS13": Missing("data", "the hub cannot be reached")},
        "protocols": {"cSTS12": {"data": "0f" * 32}},
        "cost": {"train_seconds": 12.5, "peak_memory_bytes": 2e9},
    }
    spec = RunSpec(
        **{
            "method": "simcse",
            "config": {},
            "base_model": "bert-base-uncased",
            "seed": 3,
            "corpus": {
                "uri": "embedded:sentences",
                "kind": "sentences",
                "count": 7100,
                "sha256": "ab" * 32,
            },
            "dev": {"task": "STS-B", "source": "senteval", "split": "dev", "sha256": "cd" * 32},
            **{
                key: changes.pop(key)
                for key in list(changes)
                if key in RunSpec.model_fields and key != "missing"
            },
        }
    )
    return Record(id="0123456789abcdef", spec=spec, **(about | changes))


def card(folder: Path, made: Record) -> ModelCard:
    folder.mkdir(exist_ok=True)
    write_card(folder, made)
    return ModelCard.load(folder / "README.md")


def test_the_hub_reads_results_protocols_seed_and_cost(tmp_path: Path) -> None:
    read = card(tmp_path, record())
    assert read.data.base_model == "bert-base-uncased"
    by_dataset = {r.dataset_name: r for r in read.data.eval_results}
    assert set(by_dataset) == {
        "STS12 (senteval copy)",
        "Embedded-STS-natural (ships with the harness, no public benchmark)",
    }
    result = by_dataset["STS12 (senteval copy)"]
    assert (result.metric_type, result.metric_value, result.dataset_split) == (
        "spearmanr",
        0.5,
        "test",
    )
    assert result.dataset_args == {"fingerprint": "0f" * 32}
    about = json.loads((tmp_path / "harness_scores.json").read_text())
    assert (about["seed"], about["cost"]["train_seconds"], about["record"]) == (
        3,
        12.5,
        "0123456789abcdef",
    )
    for said in ("| STS12 | senteval |", "| alignment |", "STS13: the hub cannot be reached"):
        assert said in read.text


def test_the_embedded_suite_is_never_passed_off_as_a_benchmark(tmp_path: Path) -> None:
    read = card(tmp_path, record())
    (own,) = [r for r in read.data.eval_results if "Embedded" in r.dataset_name]
    assert own.dataset_type == "embedded-embedded-sts-natural"
    assert "STS-B" not in own.dataset_name
    assert "no public benchmark" in read.text


@pytest.mark.parametrize(
    ("supervision", "dev", "tag"),
    [
        ("unsupervised", False, "unsupervised"),
        ("unsupervised", True, None),
        ("supervised", True, "supervised"),
        ("transductive", False, "transductive"),
    ],
)
def test_unsupervised_only_where_no_label_was_used(
    tmp_path: Path, supervision: str, dev: bool, tag: str | None
) -> None:
    made = record(supervision=supervision, **({} if dev else {"dev": None}))
    tags = set(card(tmp_path, made).data.tags) & {"unsupervised", "supervised", "transductive"}
    assert tags == ({tag} if tag else set())
    assert ("labelled dev part of STS-B" in (tmp_path / "README.md").read_text()) == dev


def test_a_folder_or_our_own_model_is_no_base_model_of_the_hub(tmp_path: Path) -> None:
    for base in ("embedded:mini-bert", str(tmp_path), "../x"):
        assert card(tmp_path, record(base_model=base)).data.base_model is None


@pytest.mark.parametrize("form", ["folder", "folder that is gone", "folder of Windows"])
def test_a_folder_is_named_without_the_paths_of_a_machine(tmp_path: Path, form: str) -> None:
    home = tmp_path / "ann"
    tuned = home / "tuned-model"
    if form == "folder":
        tuned.mkdir(parents=True)
    base = r"C:\Users\ann\tuned-model" if form == "folder of Windows" else str(tuned)
    text = {"uri": str(home / "domain.csv"), "kind": "sentences", "count": 2, "sha256": "ab"}
    read = card(tmp_path / "saved", record(base_model=base, corpus=text))
    assert "| base model | tuned-model, a folder " in read.content.replace("\\-", "-")
    assert "| text | domain.csv (2 sentences" in read.content
    assert "ann" not in re.split(r"\W", read.content)
    assert read.data.base_model is None


def test_a_model_that_ships_and_one_of_the_hub_are_named_in_words(tmp_path: Path) -> None:
    ours = card(tmp_path, record(base_model="embedded:mini-bert"))
    assert "mini-bert, the model that ships with sentence-harness" in ours.content
    assert ours.data.base_model is None
    theirs = card(tmp_path, record(base_model="google-bert/bert-base-uncased"))
    assert "| base model | google-bert/bert-base-uncased |" in theirs.content
    assert theirs.data.base_model == "google-bert/bert-base-uncased"


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    made = record(
        row=HOSTILE,
        base_model=HOSTILE,
        missing={HOSTILE: Missing("data", HOSTILE)},
        scores=[score(HOSTILE, 0.5, source="s")],
        corpus={"uri": HOSTILE, "kind": "sentences", "count": 2, "sha256": "ab"},
    )
    read = card(tmp_path, made)
    (result,) = read.data.eval_results
    assert "<script>" in result.dataset_name  # in YAML it is a string like any other
    assert "<script" not in read.text
    assert "\x1b" not in (tmp_path / "README.md").read_text()
    assert "\u202e" not in (tmp_path / "README.md").read_text()
    rows = [line for line in read.text.splitlines() if line.startswith("| ")]
    assert all(line.replace("\\|", "").count("|") in (3, 7) for line in rows)


def test_what_else_the_readme_says_stays_and_a_second_call_replaces(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\ntags: [x]\n---\n\n# Mine\n\n## Use\n\nThus.\n")
    card(tmp_path, record())
    read = card(tmp_path, record(scores=[score("STS14", 0.25)]))
    assert read.text.count("## Results") == 1
    assert "STS12" not in read.content
    assert read.text.index("# Mine") < read.text.index("## Results") < read.text.index("## Use")
    before = (tmp_path / "README.md").read_bytes()
    write_card(tmp_path, record(scores=[score("STS14", 0.25)]))
    assert (tmp_path / "README.md").read_bytes() == before


def test_without_scores_there_is_no_model_index(tmp_path: Path) -> None:
    read = card(tmp_path, record(scores=[]))
    assert read.data.eval_results is None
    assert "model-index" not in read.content


def test_one_number_for_a_task_and_metric_and_all_of_them_beside_it(tmp_path: Path) -> None:
    scores = [
        score("STS12", 0.512345678).model_copy(update={"aggregation": how})
        for how in ("mean", "all", "wmean")
    ]
    scores.append(score("STS12", 0.4, metric="pearson"))
    read = card(tmp_path, record(scores=scores))
    shown = [(r.metric_type, r.metric_value, r.metric_name) for r in read.data.eval_results]
    assert shown == [("spearmanr", 0.5123, "Spearman, all"), ("pearsonr", 0.4, "Pearson, all")]
    kept = json.loads((tmp_path / "harness_scores.json").read_text())
    assert [one["aggregation"] for one in kept["scores"]] == ["mean", "all", "wmean", "all"]
    assert (kept["scores"][0]["protocol"], kept["protocols"]["cSTS12"]["data"]) == (
        "pSTS12",
        "0f" * 32,
    )
    assert "pSTS12" not in read.content


# What the hub asks of a card's front matter (its page on model cards): ids of repositories, its own
# words elsewhere.
TASKS = {"semantic-similarity", "text-classification", "information-retrieval"}


@pytest.mark.parametrize(
    ("base", "language"),
    [
        ("bert-base-uncased", "en"),
        ("google-bert/bert-base-multilingual-cased", "multilingual"),
        ("FacebookAI/xlm-roberta-base", "multilingual"),
        ("embedded:mini-bert", "en"),
    ],
)
def test_front_matter_is_what_the_hub_takes(tmp_path: Path, base: str, language: str) -> None:
    from huggingface_hub.utils import validate_repo_id

    corpus = {
        "uri": "simcse-wiki",
        "source": "hf://datasets/princeton-nlp/datasets-for-simcse/wiki1m_for_simcse.txt",
        "kind": "sentences",
        "count": 9,
        "sha256": "ab" * 32,
    }
    data = card(tmp_path, record(base_model=base, corpus=corpus)).data
    assert (data.language, data.pipeline_tag) == (language, "sentence-similarity")
    assert data.library_name == "sentence-transformers"
    assert data.datasets == ["princeton-nlp/datasets-for-simcse"]
    for name in [*data.datasets, *([data.base_model] if data.base_model else [])]:
        validate_repo_id(name)
    assert all(isinstance(tag, str) and tag == tag.strip() for tag in data.tags)
    for result in data.eval_results:
        assert result.task_type in TASKS
        assert isinstance(result.metric_value, float)
        assert result.dataset_type == result.dataset_type.lower()


def test_scores_on_data_of_the_hub_are_community_results(tmp_path: Path) -> None:
    of_hub = {"pSTSBenchmark": {"data": {"mteb/stsbenchmark-sts": "b0fd"}}}
    both = [score("STSBenchmark", 0.7612, source="mteb"), score("STS12", 0.5)]
    write_card(
        tmp_path, record(scores=both, protocols=of_hub, finished="2026-11-24T01:02:03+00:00")
    )
    (file,) = (tmp_path / ".eval_results").iterdir()
    (entry,) = parse_eval_result_entries(yaml.safe_load(file.read_text()))
    assert (file.name, entry.dataset_id, entry.dataset_revision) == (
        "STSBenchmark.yaml",
        "mteb/stsbenchmark-sts",
        "b0fd",
    )
    assert (entry.task_id, entry.value, entry.date) == ("STSBenchmark", 76.12, "2026-11-24")

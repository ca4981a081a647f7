"""Verdicts on scores that others made: against textbook tests, from each source, and what is said
of bad input.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import mteb
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import harness
from harness.cli import main
from reports.read.score_tables import read_scores
from tests.support.bases import narrow_bert
from tests.support.errors import raises_input_error


def seeds_table(rows: dict[str, Sequence[float]]) -> pd.DataFrame:
    lines = [(row, seed, score) for row, runs in rows.items() for seed, score in enumerate(runs)]
    return pd.DataFrame(lines, columns=["row", "seed", "score"])


def test_runs_alone_give_about_welchs_test() -> None:
    generator = np.random.default_rng(1)
    a, b = generator.normal(75, 1, 40), generator.normal(74.4, 1.2, 40)
    found = harness.verdict(seeds_table({"a": list(a), "b": list(b)}), "a", "b").data
    welch = stats.ttest_ind(a, b, equal_var=False)
    assert found["p"] == pytest.approx(welch.pvalue, rel=0.3)
    assert found["difference"] == pytest.approx(a.mean() - b.mean())
    assert "holds for these test sets alone" in found["text"]


def test_examples_alone_give_about_the_paired_test() -> None:
    generator = np.random.default_rng(2)
    common = generator.uniform(0.3, 0.9, 400)
    scores = {
        "a": common + 0.02 + generator.normal(0, 0.1, 400),
        "b": common + generator.normal(0, 0.1, 400),
    }
    lines = [
        (row, "t", n, x)
        for row, values in scores.items()
        for n, x in enumerate(np.clip(values, 0, 1))
    ]
    found = harness.verdict(
        pd.DataFrame(lines, columns=["row", "task", "example", "score"]), "a", "b"
    ).data
    paired = stats.ttest_rel(np.clip(scores["a"], 0, 1), np.clip(scores["b"], 0, 1))
    assert found["p"] == pytest.approx(paired.pvalue, rel=0.1)
    assert found["difference"] == pytest.approx(
        100 * (np.clip(scores["a"], 0, 1) - np.clip(scores["b"], 0, 1)).mean()
    )
    assert "only one run" in found["text"]


def test_seeds_and_examples_are_wider_than_either() -> None:
    generator = np.random.default_rng(3)
    of_row = {
        "a": 0.02 + generator.normal(0, 0.1, 200),
        "b": generator.normal(0, 0.1, 200),
    }  # also of each example
    lines = [
        (row, seed, n, float(np.clip(0.5 + shifts[n] + level + generator.normal(0, 0.05), 0, 1)))
        for row, shifts in of_row.items()
        for seed, level in enumerate(generator.normal(0, 0.01, 5))
        for n in range(200)
    ]
    frame = pd.DataFrame(lines, columns=["row", "seed", "example", "score"])
    both = harness.verdict(frame, "a", "b").data
    means = frame.groupby(["row", "seed"], as_index=False)["score"].mean()
    seeds = harness.verdict(means, "a", "b").data
    assert both["high"] - both["low"] > 1.05 * (seeds["high"] - seeds["low"])
    assert both["difference"] == pytest.approx(seeds["difference"])
    assert "so this holds" not in both["text"]


def correlated(rows: dict[str, float], count: int = 300) -> pd.DataFrame:
    """Cosines of pairs with gold scores; the lower the noise of a row, the higher its correlation."""
    generator = np.random.default_rng(4)
    gold = generator.uniform(0, 5, count)
    lines = [
        (row, n, gold[n] + x, gold[n])
        for row, sd in rows.items()
        for n, x in enumerate(generator.normal(0, sd, count))
    ]
    return pd.DataFrame(lines, columns=["row", "example", "score", "target"])


def test_scores_with_gold_values_are_a_rank_correlation() -> None:
    frame = correlated({"a": 1.0, "b": 2.0})
    found = harness.verdict(frame, "a", "b").data
    ranks = {
        row: stats.spearmanr(part["score"], part["target"]).statistic
        for row, part in frame.groupby("row")
    }
    assert found["means"] == pytest.approx([100 * ranks["a"], 100 * ranks["b"]])
    assert found["verdict"] == "better"


def test_interval_of_a_correlation_is_that_of_a_bootstrap() -> None:
    frame = correlated({"a": 1.0, "b": 1.1})
    found = harness.verdict(frame, "a", "b").data
    sides = {row: part.reset_index(drop=True) for row, part in frame.groupby("row")}
    generator, drawn = np.random.default_rng(5), []
    for _ in range(500):
        some = generator.integers(0, 300, 300)
        of = {
            row: stats.spearmanr(side["score"][some], side["target"][some]).statistic
            for row, side in sides.items()
        }
        drawn.append(100 * (of["a"] - of["b"]))
    assert (found["high"] - found["low"]) / 2 == pytest.approx(
        1.96 * float(np.std(drawn)), rel=0.15
    )


def test_one_run_without_examples_is_not_judged() -> None:
    found = harness.verdict(pd.DataFrame({"row": ["a", "b"], "score": [71.0, 70.0]}), "a", "b").data
    assert (found["verdict"], found["p"]) == ("fewer than 3 seeds: not judged", None)
    assert "only one run" in found["text"]


def test_power_reads_the_spread_of_the_runs() -> None:
    generator = np.random.default_rng(4)
    frame = seeds_table({row: list(generator.normal(70, 1, 30)) for row in "abc"})
    (one,) = harness.power(frame, difference=2).data
    assert one["sd"] == pytest.approx(1, abs=0.15)
    assert one["rows"] == 3
    with raises_input_error(file="frame"):
        harness.power(pd.DataFrame({"row": ["a", "b"], "score": [71.0, 72.0]}))


def test_command_on_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scores.csv"
    seeds_table({"new": [81.2, 81.9, 81.4], "old": [70.1, 70.3, 70.0]}).to_csv(file, index=False)
    assert main(["verdict", "new", "old", "--scores", str(file)]) == 0
    assert "new is better than old" in capsys.readouterr().out
    assert main(["verdict", "--scores", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["pairs"][0]["verdict"] == "better"


def test_results_of_mteb(tmp_path: Path) -> None:
    for model, score in (("org__a", 0.7), ("org__b", 0.6)):
        folder = tmp_path / model / "revision"
        folder.mkdir(parents=True)
        (folder / "model_meta.json").write_text("{}")
        scores = {"test": [{"main_score": score, "hf_subset": "default"}]}
        (folder / "STS12.json").write_text(json.dumps({"task_name": "STS12", "scores": scores}))
    frame = read_scores(tmp_path)
    assert frame[["row", "task", "score"]].to_numpy().tolist() == [
        ["org/a", "STS12", 0.7],
        ["org/b", "STS12", 0.6],
    ]


def test_sample_logs_of_lm_evaluation_harness(tmp_path: Path) -> None:
    for model, right in (("org__a", [1, 1, 0]), ("org__b", [0, 1, 0])):
        (tmp_path / model).mkdir()
        lines = [
            {"doc_id": n, "target": "x", "metrics": ["acc"], "acc": float(x)}
            for n, x in enumerate(right)
        ]
        log = tmp_path / model / "samples_arc_easy_2026-01-01T00-00-00.jsonl"
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    frame = read_scores(tmp_path)
    assert frame["task"].unique().tolist() == ["arc_easy"]
    assert frame.groupby("row")["score"].sum().to_dict() == {"org/a": 2.0, "org/b": 1.0}


def test_logs_of_inspect_in_both_formats(tmp_path: Path) -> None:
    header = {"model": "org/a", "task": "qa"}
    samples = [{"id": n, "epoch": 1, "scores": {"match": {"value": "CI"[n % 2]}}} for n in range(4)]
    (tmp_path / "log.json").write_text(
        json.dumps({"eval": {**header, "model": "org/b"}, "samples": samples})
    )
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": header}))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    frame = read_scores(tmp_path)
    assert frame.groupby("row")["score"].mean().to_dict() == {"org/a": 0.5, "org/b": 0.5}


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("row,score\na,1\nb,x\n", 3, "score"),
        ("row,score\n,1\n", 2, "row"),
        ("row,scor\na,1\n", None, "scor"),
        ("row,seed\na,1\n", None, "score"),
        ("row,score\na,1\na,2\n", 3, None),
        ("row,score\na,1\n", None, None),
        ("row,seed,example,score\na,1,x,1\na,1,y,0\nb,1,x,1\n", None, None),
    ],
)
def test_bad_input_names_file_line_and_column(
    tmp_path: Path, text: str, line: int | None, key: str | None
) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(text)
    with raises_input_error(file=file, line=line, key=key):
        harness.verdict(file)


def test_a_folder_without_runs_or_results_is_a_work_directory_without_runs(tmp_path: Path) -> None:
    with raises_input_error(file=tmp_path):
        harness.verdict(tmp_path)


def test_a_folder_without_scores_says_what_is_expected(tmp_path: Path) -> None:
    with raises_input_error(file=tmp_path):
        read_scores(tmp_path)


@pytest.mark.hub
def test_predictions_of_mteb_are_scored_as_mteb_scores_them(tmp_path: Path) -> None:
    from mteb.models import SentenceTransformerEncoderWrapper
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    found = {}
    for pooling in ("mean", "cls"):
        part = Transformer(narrow_bert(), max_seq_length=64)
        model = SentenceTransformerEncoderWrapper(
            SentenceTransformer(modules=[part, Pooling(64, pooling)])
        )
        model.mteb_model_meta = model.mteb_model_meta.model_copy(
            update={"name": f"org/{pooling}", "revision": "1"}
        )
        scored = mteb.evaluate(
            model,
            mteb.get_tasks(tasks=["BIOSSES"]),
            cache=None,
            prediction_folder=tmp_path / pooling,
            show_progress_bar=False,
        )
        found[f"org/{pooling}"] = 100 * scored.task_results[0].get_score()
    answer = harness.verdict(tmp_path, "org/mean", "org/cls").data
    assert answer["means"] == pytest.approx([found["org/mean"], found["org/cls"]], abs=0.01)


def test_report_of_scores_has_answer_table_figure_and_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {"a <b>": [71.0, 71.2, 70.9], "b": [69.0, 69.3, 69.1], "c": [69.1, 69.0, 69.2]}
    seeds_table(rows).to_csv(tmp_path / "own.csv", index=False)
    assert main(["report", "build", str(tmp_path / "own.csv"), "--workdir", str(tmp_path)]) == 0
    folder = tmp_path / "reports" / "own"
    assert str(folder / "index.html") in capsys.readouterr().out
    data = json.loads((folder / "data.json").read_text())
    assert data["answer"].startswith("a <b> (71.03, 3 seeds) is the best of 3 rows")
    assert {"scores", "all-pairs"} <= data["tables"].keys()
    assert "a <b>" not in (folder / "index.html").read_text().split("<script")[0]
    assert (folder / "figures" / "overview.svg").exists()
    text = (folder / "report.md").read_text()
    assert "95 % interval over seeds;" in text
    assert "nothing follows for others" in text


def test_report_of_scores_marks_nothing_where_nothing_was_tested(tmp_path: Path) -> None:
    ranks = {}
    for count in (2, 3):
        rows = {"a": [71.0, 71.2, 70.9][:count], "b": [69.0, 69.3, 69.1][:count]}
        seeds_table(rows).to_csv(tmp_path / f"of {count}.csv", index=False)
        written = harness.report(tmp_path / f"of {count}.csv", tmp_path / "work", formats=["md"])
        data = json.loads(written["md"].with_name("data.json").read_text())
        cells = [cell for row in data["tables"]["scores"]["rows"] for cell in row["cells"].values()]
        ranks[count] = {cell["rank"] for cell in cells if cell.get("rank")}
        assert "significantly: ." not in written["md"].read_text()
    assert ranks == {2: set(), 3: {1, 2}}


def test_a_row_that_alone_has_enough_seeds_is_not_called_best() -> None:
    seeds = [71.0, 71.2, 70.9, 71.1]
    for count, is_judged in ((4, True), (2, False)):
        rows = {"a": seeds, "b": [score - 2 for score in seeds[:count]]}
        found = harness.verdict(seeds_table(rows))
        assert ("may be the best" in found.text) == is_judged
        assert (found.data[0]["ranks"]["a"] is not None) == is_judged


def test_the_best_of_the_judged_rows_is_not_called_the_best_of_all(tmp_path: Path) -> None:
    """A row of one run may have the highest score: it is not judged, and listed last."""
    file = tmp_path / "scores.csv"
    seeds_table({"a": [71.0, 71.2, 70.9], "b": [69.0, 69.3, 69.1]}).to_csv(file, index=False)
    assert "may be the best (95 %): a\n" in harness.verdict(file).text
    page = harness.report(file, tmp_path / "work", formats=["md"])["md"]
    assert "*All rows, best first.*" in page.read_text()

    rows = {"a": [71.0, 71.2, 70.9], "b": [69.0, 69.3, 69.1], "once": [80.0]}
    seeds_table(rows).to_csv(file, index=False)
    found = harness.verdict(file).text
    assert "may be the best (95 %) of the 2 rows that can be judged: a\n" in found
    page = harness.report(file, tmp_path / "work", formats=["md"])["md"]
    assert "best first; those with too few seeds last" in page.read_text()
    assert "not judged, with fewer than three seeds: once (80.00)" in page.read_text()


def test_report_of_errors_says_why_its_scores_are_negative(tmp_path: Path) -> None:
    rows = {"a": [21.0, 21.2, 20.9], "b": [31.0, 31.3, 31.1]}
    seeds_table(rows).assign(metric="perplexity").to_csv(tmp_path / "own.csv", index=False)
    written = harness.report(tmp_path / "own.csv", tmp_path / "work", formats=["md"])
    data = json.loads(written["md"].with_name("data.json").read_text())
    assert data["answer"].startswith("a (")
    assert "negative" in data["answer"]


def test_report_of_several_files_says_where_each_row_is_from(tmp_path: Path) -> None:
    for row in "ab":
        seeds_table({row: [71.0, 71.2, 70.9]}).to_csv(tmp_path / f"of-{row}.csv", index=False)
    written = harness.report(str(tmp_path), tmp_path / "work", formats=["md"])
    text = written["md"].read_text()
    assert "of-a.csv" in text
    assert "of-b.csv" in text


def test_where_neither_seeds_nor_examples_are_known_nothing_is_said_to_hold() -> None:
    found = harness.verdict(pd.DataFrame({"row": ["a", "b"], "score": [71.0, 70.0]}), "a", "b").data
    assert "nothing can be concluded" in found["text"]
    assert "so this holds" not in found["text"]


def test_seeds_that_tie_are_no_certainty() -> None:
    """56 of 60 three times against 55 of 60 three times: the step of the scores is 1/60."""
    found = harness.verdict(seeds_table({"a": [56 / 60] * 3, "b": [55 / 60] * 3}), "a", "b").data
    assert 0.005 < found["p"] < 1
    assert found["low"] < found["difference"] < found["high"]
    tenths = harness.verdict(seeds_table({"a": [81.3] * 3, "b": [81.2] * 3}), "a", "b").data
    assert tenths["p"] > 0.005


def test_an_answer_names_what_is_found_between_these_two_rows() -> None:
    """Rows that vary by 3 and by 0.1: power is that of the pair, not of the table."""
    wide = [70.0, 76.0, 73.0, 79.0, 72.0]
    calm = [75.0, 75.1, 74.9, 75.05, 74.95]
    table = seeds_table({"wide": wide, "a": calm, "b": [x + 1 for x in calm]})
    near = harness.verdict(table, "b", "a").data["text"]
    far = harness.verdict(table, "wide", "a").data
    least = [
        float(text.split("differences of ")[1].split(" points")[0]) for text in (near, far["text"])
    ]
    assert least[0] < least[1] / 1.8
    assert least[1] > (far["high"] - far["low"]) / 2


def test_a_small_significant_difference_is_better_by_less_than_what_matters() -> None:
    runs = [75.0, 75.01, 74.99, 75.02, 74.98]
    found = harness.verdict(seeds_table({"a": [x + 0.2 for x in runs], "b": runs}), "a", "b").data
    assert found["verdict"] == "no difference that matters"
    assert found["p"] <= 0.05
    assert "a is better than b on the score, by less than 0.5 points" in found["text"]


def test_of_many_pairs_a_q_is_named_q_and_without_a_verdict_nothing_holds() -> None:
    generator = np.random.default_rng(0)
    table = {f"r{n}": list(generator.normal(75, 1, 3)) for n in range(12)}
    assert "; q = " in harness.verdict(seeds_table(table), "r0", "r1").data["text"]
    text = harness.verdict(seeds_table({"a": [75.0], "b": [76.0]}), "a", "b").data["text"]
    assert "cannot be judged" in text
    assert "this holds for" not in text

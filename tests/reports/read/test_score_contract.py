"""What scores of others must fulfil: one scale, split, revision and metric a task, each run once."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import harness
from harness.cli import main
from harness.errors import InputError
from harness.sources import load_corpus
from reports.read.score_logs import tell_models_apart
from reports.read.score_tables import read_scores
from tests.support.errors import raises_input_error


def write(folder: Path, text: str, name: str = "scores.csv") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def table(**rows: list[float]) -> str:
    lines = [f"{row},{seed},{x}" for row, scores in rows.items() for seed, x in enumerate(scores)]
    return "\n".join(["row,seed,score", *lines]) + "\n"


def refused(source: Any) -> InputError:
    with raises_input_error() as caught:
        harness.verdict(source)
    return caught.value


def note_of(source: Any) -> str:
    return " ".join(read_scores(source).attrs["notes"])


# ------------------------------------------------------------------------------------- scale


def test_each_task_has_its_own_scale(tmp_path: Path) -> None:
    text = "row,seed,task,score\n"
    for row, first, second in (("a", 0.71, 80.0), ("b", 0.61, 70.0)):
        for seed in range(3):
            text += f"{row},{seed},S,{first + seed / 1000}\n{row},{seed},T,{second + seed / 10}\n"
    answer = harness.verdict(write(tmp_path, text), "a", "b").data
    assert answer["means"] == pytest.approx([(71.1 + 80.1) / 2, (61.1 + 70.1) / 2])
    assert answer["difference"] == pytest.approx(10)


@pytest.mark.parametrize(
    "scores",
    [
        {"a": [0.81, 0.82, 0.8], "b": [76.0, 76.2, 75.9]},  # two rows
        {"a": [0.81, 82.0, 80.0], "b": [76.0, 76.2, 75.9]},  # a run of a row
        {"a": [-0.31, -0.3, -0.29], "b": [40.0, 41.0, 42.0]},  # below zero
        {"a": [0.95, 0.96, 0.94], "b": [15.0, 16.0, 17.0]},  # a factor of 16
    ],
)
def test_two_scales_in_one_task_are_refused_with_both_rows(
    tmp_path: Path, scores: dict[str, list[float]]
) -> None:
    error = refused(write(tmp_path, table(**scores)))
    assert error.key == "score"
    assert "row a has" in str(error)
    assert "while row" in str(error)
    assert error.file is not None
    assert error.file.endswith("scores.csv")
    assert error.line == 2


def test_a_scale_that_is_stated_holds(tmp_path: Path) -> None:
    text = "row,seed,score,scale\n" + "".join(
        f"{row},{seed},{score + seed / 10},100\n"
        for row, score in (("a", 0.5), ("b", 76.0))
        for seed in range(3)
    )
    means = harness.verdict(write(tmp_path, text), "b", "a").data["means"]
    assert means == pytest.approx([76.1, 0.6])


def test_scores_beyond_their_scale_are_refused(tmp_path: Path) -> None:
    assert "780" in str(refused(write(tmp_path, table(a=[78, 780, 79], b=[70, 71, 72]))))
    assert "neither" in str(refused(write(tmp_path, table(a=[0.9, 1.0, 1.21], b=[0.9, 0.8, 1]))))


def test_lower_is_better_turns_the_verdict_round(tmp_path: Path) -> None:
    text = "row,seed,task,score,scale,lower_is_better\n" + "".join(
        f"{row},{seed},perplexity,{score + seed / 10},none,True\n"
        for row, score in (("a", 131.0), ("b", 121.0))
        for seed in range(3)
    )
    answer = harness.verdict(write(tmp_path, text), "b", "a").data
    assert answer["verdict"] == "better"
    assert answer["difference"] == pytest.approx(10)


def test_a_mean_over_scores_without_bounds_is_refused(tmp_path: Path) -> None:
    text = "row,seed,task,score,scale\n" + "".join(
        f"{row},{seed},P,{121 + seed},none\n{row},{seed},A,{71 + seed},\n"
        for row in "ab"
        for seed in range(3)
    )
    assert "no bounds" in str(refused(write(tmp_path, text)))
    assert read_scores(write(tmp_path, text))["task"].nunique() == 2


def test_each_file_has_its_own_scale_which_is_noted(tmp_path: Path) -> None:
    one = write(tmp_path, table(a=[0.81, 0.82, 0.83]), "one.csv")
    two = write(tmp_path, table(b=[70.1, 70.2, 70.3]), "two.csv")
    answer = harness.verdict([one, two], "a", "b").data
    assert answer["means"] == pytest.approx([82, 70.2])
    assert "one.csv: scores read as 0 to 1" in answer["text"]


def test_scores_in_percent_stand_beside_results_of_mteb(tmp_path: Path) -> None:
    write_mteb(tmp_path, "a")
    write(tmp_path, "row,task,score\nb,STS12,65.5\n")
    assert harness.verdict(tmp_path, "org/a", "b").data["means"] == pytest.approx([70, 65.5])


def test_an_error_rate_is_known_by_its_name(tmp_path: Path) -> None:
    text = "row,seed,score,metric\n" + "".join(
        f"{row},{seed},{score + seed / 1000},WER\n"
        for row, score in (("a", 0.31), ("b", 0.21))
        for seed in range(3)
    )
    answer = harness.verdict(write(tmp_path, text), "b", "a").data
    assert (answer["verdict"], answer["difference"]) == ("better", pytest.approx(10))


@pytest.mark.parametrize("metric", ["perplexity", "loss", "RMSE"])
def test_a_metric_without_bounds_is_known_by_its_name(tmp_path: Path, metric: str) -> None:
    text = "row,seed,score,metric\n" + "".join(
        f"{row},{seed},{score + seed / 10},{metric}\n"
        for row, score in (("a", 131.0), ("b", 0.5))
        for seed in range(3)
    )
    answer = harness.verdict(write(tmp_path, text), "b", "a").data
    assert answer["verdict"] == "better"
    assert answer["difference"] == pytest.approx(130.5)


def test_tasks_of_unlike_directions_have_no_mean(tmp_path: Path) -> None:
    text = "row,seed,task,score,lower_is_better\n" + "".join(
        f"{row},{seed},E,{21 + seed},true\n{row},{seed},A,{71 + seed},false\n"
        for row in "ab"
        for seed in range(3)
    )
    assert 'lower is better on task "E"' in str(refused(write(tmp_path, text)))
    assert harness.verdict(write(tmp_path, text), "a", "b", on="A").data["means"] == pytest.approx(
        [72, 72]
    )


@pytest.mark.parametrize("column", ["split", "revision", "metric"])
def test_a_table_may_say_what_was_scored(tmp_path: Path, column: str) -> None:
    error = refused(write(tmp_path, f"row,score,{column}\na,81,x\nb,80,y\n"))
    assert error.line == 3
    assert read_scores(write(tmp_path, f"row,score,{column}\na,81,x\nb,80,\n")).shape[0] == 2


def test_gold_values_are_those_of_one_test_set(tmp_path: Path) -> None:
    def gold(first: str, second: str, score: float = 0.5) -> InputError:
        lines = f"a,1,0.5,{first},ap\na,2,0.5,0,ap\nb,1,{score},{second},ap\nb,2,0.5,0,ap\n"
        return refused(write(tmp_path, f"row,example,score,target,metric\n{lines}"))

    assert "not 7" in str(gold("7", "7"))
    assert "some examples have a target" in str(gold("1", ""))
    assert "0, but 1" in str(gold("1", "0"))


# ------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    "other", ["new ", " new", "new\u00a0", "\ufeffnew", "ne\u200bw", "new\u00ad"]
)
def test_blanks_around_a_name_are_no_part_of_it(tmp_path: Path, other: str) -> None:
    text = f"row,seed,score\nnew,1,80\nold,1,70\n{other},2,81\nold,2,71\n"
    assert read_scores(write(tmp_path, text))["row"].unique().tolist() == ["new", "old"]


@pytest.mark.parametrize("name", ["null", "NA", "nan", "None", "n/a", "", "01"])
def test_no_word_is_taken_for_nothing(tmp_path: Path, name: str) -> None:
    text = f"row,seed,score\n{name},1,80\nold,1,70\n"
    if name:
        assert read_scores(write(tmp_path, text))["row"].tolist() == [name, "old"]
    else:
        assert refused(write(tmp_path, text)).key == "row"


def test_a_missing_score_is_refused_with_its_line(tmp_path: Path) -> None:
    for text in ("NA", "null", "", "nan", "1_000"):
        error = refused(write(tmp_path, f'row,seed,score\n"a\nb",1,80\nold,1,{text}\n'))
        assert error.file is not None
        assert error.file.endswith("scores.csv")
        assert error.line == 4  # a name may have a line break


def test_seeds_of_a_spreadsheet_are_the_same_seeds(tmp_path: Path) -> None:
    text = "row,seed,score\na,1,80\na,1.0,81\nb,1,70\n"
    assert "a second score of row a, seed 1" in str(refused(write(tmp_path, text)))
    for seed in ("01", "+1", "1.00"):
        text = f"row,seed,score\na,1,80\na,{seed},81\nb,1,70\n"
        assert "a second score of row a, seed 1" in str(refused(write(tmp_path, text)))
    frame = pd.DataFrame({"row": ["a", "b"], "seed": [1.0, float("nan")], "score": [80, 70.5]})
    assert read_scores(frame)["seed"].tolist() == ["1", ""]


def test_rows_that_differ_in_case_alone_are_noted(tmp_path: Path) -> None:
    assert '"Beta" and "beta"' in note_of(write(tmp_path, table(Beta=[70.5], beta=[71.5])))


# ----------------------------------------------------------------------------------- sources


def test_several_sources_are_one_table(tmp_path: Path) -> None:
    one = write(tmp_path, table(a=[80.1, 80.2, 80.3]), "one.csv")
    two = write(tmp_path, table(b=[70.1, 70.2, 70.3]).replace(",", ";"), "two.csv")
    assert harness.verdict([one, two], "a", "b").data["difference"] == pytest.approx(10)
    assert harness.verdict(tmp_path, "a", "b").data["difference"] == pytest.approx(10)
    error = refused([one, two, write(tmp_path, table(a=[80.1]), "three.csv")])
    assert "one.csv, line 2" in str(error)
    assert error.file is not None
    assert error.file.endswith("three.csv")
    assert error.line == 2


def test_a_source_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verdict", "--scores", ""]) == 2
    assert "--scores" in capsys.readouterr().err


def test_a_comparison_goes_before_a_folder_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, table(a=[80.1], b=[70.2]), "mine/scores.csv")
    write(tmp_path, "{}", "work/comparisons/mine.json")
    monkeypatch.chdir(tmp_path)
    with raises_input_error(file="work/comparisons/mine.json"):  # it is empty
        harness.report("mine", "work")


def test_true_and_false_of_a_typed_table_are_1_and_0(tmp_path: Path) -> None:
    lines = [(row, n, n % 4 < right) for row, right in (("a", 3), ("b", 2)) for n in range(40)]
    frame = pd.DataFrame(lines, columns=["row", "example", "score"])
    frame.to_parquet(tmp_path / "scores.parquet")
    for source in (frame, tmp_path / "scores.parquet"):
        assert harness.verdict(source, "a", "b").data["means"] == pytest.approx([75, 50])


def test_files_without_scores_in_a_folder_are_named(tmp_path: Path) -> None:
    write(tmp_path, table(a=[80.1], b=[70.2]))
    write(tmp_path, "x,y\n1,2\n", "other.csv")
    write(tmp_path, "{", "odd.json")
    write(tmp_path, "[1, 2]", "list.json")
    write(tmp_path, "", "gate.jsonl")
    note = note_of(tmp_path)
    assert "other.csv is not read" in note
    assert "odd.json is not read" in note
    assert "list.json" not in note


def test_a_damaged_table_of_scores_in_a_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path, table(a=[80.1], b=[70.2]))
    write(tmp_path, "row,score\nc,1,2\n", "more.csv")
    error = refused(tmp_path)
    assert error.file is not None
    assert error.file.endswith("more.csv")
    assert error.line == 2


def test_all_scores_of_a_report_are_read(tmp_path: Path) -> None:
    text = "record,row,base_model,seed,status,task,suite,metric,aggregation,value,n\n"
    for row, value in (("a", 0.8), ("b", 0.7)):
        for seed in (1, 2, 3):
            about = f"r,{row},mini,{seed},finished,STS-B,sts"
            text += f"{about},spearman,all,{value + seed / 1000},9\n{about},pearson,all,0.1,9\n"
    answer = harness.verdict(write(tmp_path, text, "all-scores.csv"), "a", "b").data
    assert answer["means"] == pytest.approx([80.2, 70.2])


def test_the_scores_of_a_report_are_those_that_its_tables_show(tmp_path: Path) -> None:
    text = "record,row,base_model,seed,status,task,suite,source,split,metric,aggregation,value,n\n"
    for row, base, value in (("a", "mini", 0.8), ("a", "large", 0.9), ("b", "mini", 0.7)):
        about = f"r,{row},{base},1"
        text += f"{about},finished,MR,transfer,s,dev,accuracy,,0.1,9\n"
        text += f"{about},finished,MR,transfer,s,test,f1,,0.2,9\n"
        text += f"{about},finished,MR,transfer,s,test,accuracy,,{value},9\n"
        text += f"{about},finished,uniformity,geometry,s,test,uniformity,,-2.5,9\n"
        text += f"{about},failed,CR,transfer,s,test,accuracy,,0.3,9\n"
    frame = read_scores(write(tmp_path, text, "all-scores.csv"))
    assert frame[["row", "task", "score"]].to_numpy().tolist() == [
        ["a · mini", "MR", 0.8],
        ["a · large", "MR", 0.9],
        ["b", "MR", 0.7],
    ]


@pytest.mark.parametrize(
    ("head", "dropped", "names", "ids"),
    [
        ("model,STS-B,SICK-R", [], {"model": "row"}, ["row"]),
        ("row,STS-B,SICK-R", [], {}, ["row"]),
        ("Model,Rank,STS-B,SICK-R,Avg.", ["Rank", "Avg."], {"Model": "row"}, ["row"]),
        ("Seed,System,STS-B,SICK-R", [], {"Seed": "seed", "System": "row"}, ["row", "seed"]),
    ],
)
def test_a_wide_table_says_how_to_make_it_long(
    tmp_path: Path, head: str, dropped: list[str], names: dict[str, str], ids: list[str]
) -> None:
    lines = {"Rank": "9", "Avg.": "1.5", "STS-B": "1", "SICK-R": "", "Seed": "7"}
    values = [lines.get(name, "a") for name in head.split(",")]
    file = write(tmp_path, f"{head}\n{','.join(values)}\n")
    advice = str(refused(file).remedy)
    assert (f"drop(columns={dropped})" in advice) == bool(dropped)
    assert (f"rename(columns={names})" in advice) == bool(names)
    assert f"melt({ids}, var_name='task', value_name='score').dropna()" in advice

    wide = pd.read_csv(file).drop(columns=dropped).rename(columns=names)
    found = read_scores(wide.melt(ids, var_name="task", value_name="score").dropna())
    assert found[["row", "task", "score"]].to_numpy().tolist() == [["a", "STS-B", 1.0]]


def test_a_workbook_is_to_be_saved_as_a_table(tmp_path: Path) -> None:
    book = write(tmp_path, "PK", "scores.xlsx")
    assert "CSV" in str(refused(book).remedy)
    with raises_input_error() as caught:
        harness.evaluate("embedded:mini-bert", str(book))
    assert "CSV" in str(caught.value.remedy)
    with raises_input_error(file=book) as caught:
        load_corpus(str(book))
    assert "CSV" in str(caught.value.remedy)


def test_runs_that_are_copies_are_noted(tmp_path: Path) -> None:
    copies = table(a=[80.123, 80.123, 80.123], b=[70.1, 70.2, 70.3])
    assert "0 and 1, 0 and 2 of a" in note_of(write(tmp_path, copies))
    to_four_digits = table(a=[80.1231, 80.1234, 80.3], b=[70.1, 70.2, 70.3])
    assert "0 and 1 of a" in note_of(write(tmp_path, to_four_digits))
    rounded = table(a=[80.1, 80.1, 80.2], b=[70.1, 70.2, 70.3])
    assert "copies" not in note_of(write(tmp_path, rounded))


def test_a_row_with_one_run_costs_the_others_nothing(tmp_path: Path) -> None:
    rows: dict[str, list[float]] = {"a": [80.1, 80.2, 80.4], "b": [70.1, 70.5, 70.3]}
    alone = harness.verdict(write(tmp_path, table(**rows)), "a", "b").data
    file = write(tmp_path, table(**rows, c=[75.0]))
    beside = harness.verdict(file, "a", "b").data
    assert beside["verdict"] == alone["verdict"] == "better"
    assert beside["seeds"] == alone["seeds"]
    assert harness.verdict(file, "a", "c").data["verdict"] != "better"


# -------------------------------------------------------------------------------------- mteb


def write_mteb(folder: Path, model: str, **changes: Any) -> None:
    part = {"cosine_spearman": 0.7, "cosine_pearson": 0.6, "main_score": 0.7}
    tree = {
        "dataset_revision": "r1",
        "task_name": "STS12",
        "mteb_version": "2.26.1",
        "scores": {changes.pop("split", "test"): [part | changes.pop("part", {})]},
        **changes,
    }
    write(folder, json.dumps(tree), f"org__{model}/revision/STS12.json")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"split": "dev"}, "splits"),
        ({"dataset_revision": "deadbeef"}, "revisions"),
        ({"part": {"main_score": 0.6}}, "cosine_pearson"),
        ({"part": {"main_score": 5.3}}, "5.3"),
        ({"part": {"main_score": 10**400}}, "1000"),
        ({"part": {"hf_subset": "de"}}, "de"),
        ({"part": {"main_score": None}}, "None"),
    ],
)
def test_a_result_that_cannot_be_compared_is_refused_with_its_file(
    tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    write_mteb(tmp_path, "a")
    write_mteb(tmp_path, "b", **changes)
    error = refused(tmp_path)
    assert named in str(error)
    assert error.file is not None
    assert "org__b" in error.file


def test_versions_of_mteb_are_noted(tmp_path: Path) -> None:
    write_mteb(tmp_path, "a")
    write_mteb(tmp_path, "b", mteb_version="1.0.0")
    assert "1.0.0, 2.26.1" in note_of(tmp_path)


def test_two_revisions_of_a_model_are_two_rows(tmp_path: Path) -> None:
    write_mteb(tmp_path, "a")
    result = tmp_path / "org__a" / "revision" / "STS12.json"
    write(tmp_path, result.read_text(), "org__a/second/STS12.json")
    assert read_scores(tmp_path)["row"].tolist() == ["org/a (revision)", "org/a (second)"]


def test_models_of_one_name_are_told_apart_by_folder() -> None:
    lines = [
        {"row": "no_model_name/available", "task": "T", "example": "1", "folder": folder}
        for folder in ("one/a", "two/a")
    ]
    assert tell_models_apart(lines) == []
    assert [line["row"] for line in lines] == ["one/a", "two/a"]


def test_local_models_of_one_name_in_two_sources_are_two_rows(tmp_path: Path) -> None:
    write_mteb(tmp_path, "a")
    result = (tmp_path / "org__a" / "revision" / "STS12.json").read_text()
    sources = [tmp_path / "lab one" / "results", tmp_path / "lab two" / "results"]
    for source in sources:
        write(source, result, "no_model_name__available/no_revision/STS12.json")
    rows = read_scores(list(sources))["row"].tolist()
    assert len(set(rows)) == 2
    assert "lab one" in rows[0]
    assert "lab two" in rows[1]


@pytest.mark.parametrize(
    ("sources", "results"),
    [
        (["one/x", "two/x"], ["one/x", "two/x"]),  # the last two names are equal
        (["."], ["out", "out/again/results"]),  # one in the other
        (["."], ["out", "out/results/no_model_name__available/no_revision/experiments/8-bit"]),
    ],
)
def test_local_models_are_rows_wherever_their_results_lie(
    tmp_path: Path, sources: list[str], results: list[str]
) -> None:
    write_mteb(tmp_path / "named", "a")
    result = (tmp_path / "named" / "org__a" / "revision" / "STS12.json").read_text()
    for place in results:
        inside = "" if "experiments" in place else "results/no_model_name__available/no_revision"
        write(tmp_path / "local" / place / inside, result, "STS12.json")
    given = [tmp_path / "local" / source for source in sources]
    assert len(set(read_scores(given)["row"])) == 2


# ------------------------------------------------------------------------------ other tools


def test_samples_that_stand_once_for_each_filter_are_two_tasks(tmp_path: Path) -> None:
    lines = [
        {"doc_id": n, "filter": name, "metrics": ["exact_match"], "exact_match": float(n % 2)}
        for name in ("strict-match", "flexible-extract")
        for n in range(4)
    ]
    lines[0]["resps"] = "a\u2028b\u0085c"
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    write(tmp_path, "\ufeff" + text, "org__a/samples_gsm8k_2026.jsonl")
    tasks = read_scores(tmp_path)["task"].unique().tolist()
    assert tasks == ["gsm8k (strict-match)", "gsm8k (flexible-extract)"]


def test_filters_are_told_apart_in_all_rows(tmp_path: Path) -> None:
    for row, names in (("a", ("strict", "flexible")), ("b", ("strict",))):
        lines = [
            {"doc_id": n, "filter": name, "metrics": ["exact_match"], "exact_match": float(n % 2)}
            for name in names
            for n in range(4)
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        write(tmp_path, text, f"org__{row}/samples_gsm8k_2026.jsonl")
    answer = harness.verdict(tmp_path, "org/a", "org/b").data
    assert answer["tasks"] == ["scores:gsm8k (strict)"]


@pytest.mark.parametrize(
    "sample",
    [
        {"id": 1, "scores": {"s": {"value": float("nan")}}},
        {"id": 1, "scores": {"s": {"value": {"a": 1}}}},
        {"id": 1, "scores": {"s": 3}},
        {"id": 1, "scores": ["s"]},
        {"scores": {"s": {"value": 1}}},
        ["s"],
    ],
)
def test_an_odd_sample_of_inspect_is_refused(tmp_path: Path, sample: Any) -> None:
    tree = {"eval": {"model": "m", "task": "t"}, "samples": [sample]}
    error = refused(write(tmp_path, json.dumps(tree), "log.json"))
    assert error.file is not None
    assert error.file.endswith("log.json")


@pytest.mark.parametrize("value", ["NaN", '"x"', "[1]", "1" + "0" * 400])
def test_an_odd_sample_of_lm_eval_is_refused(tmp_path: Path, value: str) -> None:
    text = f'{{"doc_id": 0, "acc": 1}}\n{{"doc_id": 1, "acc": {value}}}\n'
    write(tmp_path, text, "org__a/samples_t_2026.jsonl")
    error = refused(tmp_path)
    assert error.file is not None
    assert error.file.endswith("samples_t_2026.jsonl")
    assert error.line == 2


def test_a_log_that_claims_to_be_huge_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.read.score_logs.LARGEST", 1 << 20)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"model": "m", "task": "t"}}))
        for number in range(3):
            archive.writestr(f"samples/{number}.json", " " * (1 << 19))
    file = tmp_path / "log.eval"
    file.write_bytes(packed.getvalue())
    assert "MiB" in str(refused(file))


def test_a_folder_of_very_many_files_is_no_folder_of_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.read.score_tables._MOST_FILES", 3)
    (tmp_path / "deep").mkdir()
    for number in range(4):
        (tmp_path / "deep" / f"{number}.txt").write_text("")
    with raises_input_error(file=tmp_path):
        read_scores(tmp_path)


@pytest.mark.timeout(30)
def test_a_pipe_in_place_of_scores_is_not_called_missing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "scores.csv")
    with raises_input_error(file=tmp_path / "scores.csv") as refused:
        harness.verdict(tmp_path / "scores.csv")
    assert "no such" not in refused.value.message


@pytest.mark.parametrize("points", [-1.0, 101.0, float("nan"), float("inf")])
def test_what_is_no_number_of_points_is_refused(tmp_path: Path, points: float) -> None:
    (tmp_path / "s.csv").write_text("row,seed,score\na,1,3\na,2,4\na,3,5\nb,1,3\nb,2,4\nb,3,5\n")
    with raises_input_error(key="--equivalence"):
        harness.verdict(tmp_path / "s.csv", equivalence=points)


@pytest.mark.parametrize("metric", ["spearman", "pearson", "ap"])
def test_gold_values_that_rank_nothing_are_refused(tmp_path: Path, metric: str) -> None:
    text = "row,seed,example,score,target,metric\n" + "".join(
        f"{row},1,{n},0.{n},1,{metric}\n" for row in "ab" for n in range(5)
    )
    assert refused(write(tmp_path, text)).key == "target"


def test_runs_without_any_spread_promise_no_difference_that_is_found(tmp_path: Path) -> None:
    equal = harness.verdict(write(tmp_path, table(a=[70, 70, 70], b=[70, 70, 70])), "a", "b").data
    assert (equal["difference"], equal["low"], equal["high"]) == (0, 0, 0)
    assert "are found in" not in equal["text"]


def test_a_row_whose_name_is_a_list_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, '{"row": ["a"], "score": 1}\n', "scores.jsonl")
    assert (refused(file).key, refused(file).line) == ("row", 1)

"""A comparison and its records: what is reused, scored again or trained again, and how runs that go
wrong end.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import harness
from harness.api.result import Comparison
from harness.commands.doctor import check_run
from harness.files.atomic import refusal
from harness.results.record import Missing, Record
from harness.results.store import RunFolder, read_comparison_file, read_records
from harness.runs.due import find_finished
from harness.runs.execute import execute
from harness.training import TrainedMethod
from methods.pooling import PoolingMethod
from methods.simcse import SimCSE
from tests.support import small_runs
from tests.support.errors import raises_input_error
from tests.support.small_runs import CLS, CONTRAST, NATURAL, SIMCSE, STEPS, job_of


def never(*_: object, **__: object) -> Any:
    raise AssertionError("trained again")


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrainedMethod, "fit", never)


def test_records_hold_what_a_reader_needs(small: Comparison) -> None:
    assert [(r.row, r.seed) for r in small.records] == [
        ("cls", 1),
        ("SimCSE", 1),
        ("SimCSE", 2),
    ]  # cls: deterministic
    start, simcse = small.records[:2]
    assert (simcse.status, simcse.supervision, simcse.training["steps"]) == (
        "finished",
        "unsupervised",
        STEPS,
    )
    assert simcse.training["best_step"] in (0, 2, 4)
    assert simcse.architecture == start.architecture != ""
    cost = simcse.cost
    assert {"train_cpu_seconds", "evaluate_seconds"} <= cost.keys()
    assert (
        2 * STEPS * 8 * 3 <= cost["train_tokens"] <= 2 * STEPS * 8 * 12
    )  # two views of 8 sentences of at most 12 tokens
    assert simcse.corpus is not None
    assert (simcse.corpus["count"], len(simcse.corpus["sha256"])) == (64, 64)
    assert {s.protocol for s in simcse.scores} <= set(simcse.protocols)
    pairs = RunFolder(small.workdir, simcse.id).pairs()
    score = simcse.score(NATURAL)
    assert pairs["score"].corr(pairs["gold"], method="spearman") == pytest.approx(score, abs=1e-6)
    file = read_comparison_file(small.workdir, "small")
    assert file is not None
    assert [(run.id, run.row, run.seed) for run in file.runs] == [
        (r.id, r.row, r.seed) for r in small.records
    ]
    assert [run.start for run in file.runs] == ["", start.id, start.id]
    assert read_records(small.workdir, "small") == small.records


def test_further_suites_are_scored_without_training_and_both_comparisons_see_their_own(
    small: Comparison, work: Path, no_training: None
) -> None:
    other = small_runs.compare(
        work, name="other", suites=[CONTRAST], methods=[CLS, {**SIMCSE, "name": "theirs"}]
    )
    assert [r.id for r in other.records] == [r.id for r in small.records]
    assert {(r.row, s.task) for r in other.records for s in r.scores} == {
        ("cls", CONTRAST),
        ("theirs", CONTRAST),
    }
    first = read_records(work, "small")
    assert [r.scores for r in first] == [r.scores for r in small.records]
    whole = RunFolder(work, first[1].id)
    assert {s.task for s in whole.read().scores} == {NATURAL, CONTRAST}  # type: ignore[union-attr]
    assert set(whole.pairs()["task"]) == {NATURAL, CONTRAST}
    assert check_run(whole) == []


def test_scores_of_other_code_are_computed_again(
    small: Comparison, work: Path, no_training: None
) -> None:
    job = job_of()
    folder = RunFolder(work, job.id)
    record = folder.read()
    assert record is not None
    folder.write(
        record.model_copy(
            update={"evaluation": dict.fromkeys(record.evaluation, "0.0"), "scores": []}
        )
    )
    assert find_finished(job, work) is None
    assert execute(job, work).scores == record.scores


def test_another_setting_is_another_run_and_the_first_one_stays(
    small: Comparison, work: Path
) -> None:
    before = {r.id for r in read_records(work)}
    other = small_runs.compare(
        work, name="other", seeds=[1], overrides=["methods.SimCSE.temperature=0.2", "max_steps=1"]
    )
    assert other.records[0].id in before
    assert other.records[1].id not in before
    assert {r.id for r in read_records(work)} == before | {other.records[1].id}


def _change_weights(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if "word_embeddings" in name)
    weights[name] = weights[name].flip(0).contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_a_base_model_that_is_saved_again_is_another_one(tmp_path: Path) -> None:
    """In one process, as in a notebook: a cached identity gave the scores of the first weights."""
    folder = shutil.copytree(small_runs.BASE, tmp_path / "model")
    keys: dict[str, Any] = {"methods": [CLS], "base_models": [str(folder)], "seeds": [1]}
    first = small_runs.compare(tmp_path / "work", **keys).records[0]
    _change_weights(folder)
    second = small_runs.compare(tmp_path / "work", **keys).records[0]
    alone = harness.evaluate(str(folder), NATURAL, pooling="cls", cached=False)
    assert second.id != first.id
    assert second.score(NATURAL) == alone.scores()["value"][0] != first.score(NATURAL)


def test_two_names_of_one_base_model_are_refused(tmp_path: Path) -> None:
    """The second one was in no table, and nothing said so."""
    copy = shutil.copytree(small_runs.BASE, tmp_path / "copy")
    models = [small_runs.BASE, str(copy)]
    with raises_input_error(key="base_models"):
        small_runs.compare(tmp_path / "work", methods=[CLS], base_models=models, seeds=[1])
    _change_weights(copy)
    found = small_runs.compare(tmp_path / "work", methods=[CLS], base_models=models, seeds=[1])
    assert [record.base_model for record in found.records] == models


def test_a_run_starts_from_the_base_model_that_was_planned(tmp_path: Path) -> None:
    """Jobs wait for hours in the queue of a cluster."""
    folder = shutil.copytree(small_runs.BASE, tmp_path / "model")
    keys: dict[str, Any] = {"base_models": [str(folder)], "seeds": [1]}
    jobs = [job_of(row, **keys) for row in ("cls", "SimCSE")]
    _change_weights(folder)
    for job in jobs:
        record = execute(job, tmp_path / "work")
        assert (record.status, record.scores) == ("failed", [])
        assert str(folder) in record.reason
        assert not RunFolder(tmp_path / "work", job.id).model.exists()


def test_runs_that_collapse_or_fail_are_results_and_failed_ones_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        CLS,
        SIMCSE,
        {**SIMCSE, "name": "flat", "config": {**SIMCSE["config"], "min_rank": 1000}},
    ]

    def broken(*_: object, **__: object) -> None:
        raise ValueError("no luck")

    with monkeypatch.context() as patch:
        patch.setattr(SimCSE, "loss", broken)
        found = small_runs.compare(tmp_path, seeds=[1], methods=rows[:2])
    failed = found.records[1]
    assert ([r.row for r in found.failed], found.status) == (["SimCSE"], "failed")
    assert failed.reason.startswith(f"ValueError: no luck ({__file__}, line ")
    assert failed.scores == []
    assert "no luck" in RunFolder(tmp_path, failed.id).details()["traceback"]
    again = small_runs.compare(tmp_path, seeds=[1], methods=rows)
    assert {r.row: r.status for r in again.records} == {
        "cls": "finished",
        "SimCSE": "finished",
        "flat": "collapsed",
    }
    assert again.status == "finished"
    flat = again.records[2]
    assert flat.reason
    assert flat.scores == []
    assert not RunFolder(tmp_path, flat.id).checkpoint.exists()
    monkeypatch.setattr("harness.runs.runner.execute", never)
    assert (
        small_runs.compare(tmp_path, seeds=[1], methods=rows).records == again.records
    )  # a collapse is final


def test_a_row_that_is_not_available_costs_only_itself_in_a_file_with_blocks(
    tmp_path: Path,
) -> None:
    theirs = {"name": "theirs", "method": "pooling", "base_models": ["no/folder"]}
    found = small_runs.compare(tmp_path, seeds=[1], methods=[CLS, theirs], blocks={"table": {}})
    ours, other = found.records
    assert (ours.status, other.status, other.unavailable) == ("finished", "failed", True)
    assert "no/folder" in other.reason
    assert ours.id != other.id


def test_rows_of_one_run_have_the_scores_of_their_own_blocks_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second row had none until the next call, and nothing said so."""
    fits = []
    fit = PoolingMethod.fit

    def count(self: PoolingMethod, *args: Any, **options: Any) -> Any:
        fits.append(self)
        return fit(self, *args, **options)

    monkeypatch.setattr(PoolingMethod, "fit", count)
    rows = [{**CLS, "blocks": ["one"]}, {**CLS, "name": "same", "blocks": ["two"]}]
    found = small_runs.compare(
        tmp_path / "work",
        methods=rows,
        blocks={"one": {"suites": [CONTRAST]}, "two": {"suites": [NATURAL]}},
        seeds=[1],
    )
    first, second = found.records
    assert first.id == second.id
    assert len(fits) == 1
    for record, task in ((first, CONTRAST), (second, NATURAL)):
        assert {score.task for score in record.scores} == {task}
        alone = harness.evaluate(small_runs.BASE, task, pooling="cls", cached=False)
        assert record.score(task) == alone.scores()["value"][0]


def test_weights_that_are_not_kept_are_removed_once_scored(
    small: Comparison, tmp_path: Path
) -> None:
    done = [r for r in small_runs.compare(tmp_path, keep=[]).records if r.spec.trained]
    for record in done:
        assert not RunFolder(tmp_path, record.id).model.exists()
        assert "model/model.safetensors" in record.removed
        assert not any(name.startswith("model/") for name in record.files)
        assert check_run(RunFolder(tmp_path, record.id)) == []
    assert [r.scores for r in done] == [r.scores for r in small.records if r.spec.trained]


def test_new_scores_of_removed_weights_train_the_same_weights_again(tmp_path: Path) -> None:
    first = small_runs.compare(tmp_path, keep=[], seeds=[1]).records[1]
    again = small_runs.compare(tmp_path, keep=[], seeds=[1], suites=[CONTRAST]).records[1]
    assert again.id == first.id
    whole = RunFolder(tmp_path, first.id).read()
    assert whole is not None
    assert {s.task for s in whole.scores} == {NATURAL, CONTRAST}
    assert whole.removed == first.removed


def test_vectors_that_are_not_kept_are_encoded_again(
    small: Comparison, work: Path, no_training: None
) -> None:
    from shutil import rmtree

    rmtree(work / "cache")
    small_runs.compare(
        work, name="other", suites=[NATURAL, CONTRAST], overrides=['keep=["weights"]']
    )
    assert not list((work / "cache" / "embeddings").glob("*/*"))
    assert {s.task for s in read_records(work, "other")[1].scores} == {NATURAL, CONTRAST}


def encoding(monkeypatch: pytest.MonkeyPatch, damage: Any) -> None:
    encode = PoolingMethod.encode
    monkeypatch.setattr(
        PoolingMethod, "encode", lambda self, texts, **how: damage(encode(self, texts, **how))
    )


def change_the_process(x: Any) -> Any:
    os.chdir("/")
    os.environ["HF_HUB_OFFLINE"] = "x"
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.set_float32_matmul_precision("medium")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.nn.functional.normalize = np.mean = lambda x, *_, **__: x
    sys.stdout = io.StringIO()
    warnings.simplefilter("error")
    np.seterr(all="raise")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return x


def observe_the_process() -> list[Any]:
    functions = torch.nn.functional.normalize, np.mean
    modes = (
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_float32_matmul_precision(),
        torch.get_deterministic_debug_mode(),
        np.geterr(),
    )
    python = (
        Path.cwd(),
        dict(os.environ),
        sys.stdout,
        warnings.filters[:],
        signal.getsignal(signal.SIGTERM),
    )
    return [*functions, *modes, *python]


def test_what_a_method_changes_of_its_process_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, before = job_of("cls"), observe_the_process()
    encoding(monkeypatch, change_the_process)
    assert execute(job, tmp_path).status == "finished"
    assert observe_the_process() == before


def test_streams_that_a_method_closes_are_open_again(tmp_path: Path) -> None:
    code = (
        "import os, sys; from harness.machine.process_state import preserve_process_state as undo\n"
    )
    code += "with undo(): sys.stdout.close(); os.close(1); os.close(2)\n"
    code += "print('out', flush=True); print('err', file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


class Silent(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError("no words")


def end(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("deed", "named"),
    [
        (lambda: sys.exit(0), "SystemExit"),
        (lambda: os._exit(0), r"os._exit\(0\)"),
        (lambda: end(BaseException("why")), "BaseException: why"),
        (lambda: end(GeneratorExit()), "GeneratorExit"),
        (lambda: end(Silent()), "Silent"),
    ],
)
def test_a_method_that_exits_is_a_failed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: Any, named: str
) -> None:
    encoding(monkeypatch, lambda _: deed())
    record = execute(job_of("cls"), tmp_path)
    assert (record.status, record.scores) == ("failed", [])
    assert re.search(named, record.reason)


def test_vectors_of_the_wrong_shape_fail_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of("cls")
    with monkeypatch.context() as patch:
        encoding(patch, lambda x: x[:-1])
        record = execute(job, tmp_path)
    assert (record.status, record.scores) == ("failed", [])
    assert "shape" in record.reason
    assert execute(job, tmp_path).status == "finished"


def test_vectors_that_are_not_finite_are_scored_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding(monkeypatch, lambda x: np.where(np.arange(len(x))[:, None] % 5 == 0, np.nan, x))
    record = execute(job_of("cls"), tmp_path)
    assert record.status == "finished"
    assert all(np.isfinite(score.value) for score in record.scores)
    assert [note.partition(":")[0] for note in record.training["notes"]] == [NATURAL]


def test_a_task_that_fails_is_scored_by_the_next_call(
    small: Comparison, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.tasks.sts import STSTask

    evaluate = STSTask.evaluate

    def broken(self: Any, *arguments: Any, **more: Any) -> Any:
        if self.name == CONTRAST:
            raise ValueError("a fault\nof the program")
        return evaluate(self, *arguments, **more)

    job = job_of("cls", suites=[NATURAL, CONTRAST])
    with monkeypatch.context() as patch:
        patch.setattr(STSTask, "evaluate", broken)
        record = execute(job, work)
    assert record.status == "finished"
    assert record.missing == {CONTRAST: Missing("failed", "failed: ValueError: a fault")}
    assert {s.task for s in record.scores} == {NATURAL}
    assert "a fault" in RunFolder(work, job.id).details()["errors"][CONTRAST]
    again = execute(job, work)
    assert (again.missing, {s.task for s in again.scores}) == ({}, {NATURAL, CONTRAST})
    assert "errors" not in RunFolder(work, job.id).details()


def test_a_task_whose_data_is_missing_is_scored_once_it_has_come(
    work: Path, small: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.runs.inputs import forget_loaded

    monkeypatch.setenv("HARNESS_SENTEVAL", str(tmp_path / "senteval"))
    (tmp_path / "senteval" / "downstream").mkdir(parents=True)
    job = job_of("cls", suites=[NATURAL, "CR"])
    first = execute(job, work)
    assert (first.status, first.missing["CR"].kind) == ("finished", "data")
    assert find_finished(job, work) == first  # it is not tried again before the data has come
    folder = tmp_path / "senteval" / "downstream" / "CR"
    folder.mkdir()
    for name, word in (("custrev.pos", "good"), ("custrev.neg", "bad")):
        (folder / name).write_text(
            "".join(f"{word} thing number {n}\n" for n in range(30)), encoding="latin-1"
        )
    forget_loaded()
    assert find_finished(job, work) is None


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_ends_the_comparison_and_loses_nothing(
    small: Comparison, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(OSError) as error:
            small_runs.compare(work, name="other", suites=[CONTRAST])
    assert refusal(error.value) is not None
    assert [RunFolder(work, r.id).read() for r in small.records] == small.records
    assert {
        r.status for r in small_runs.compare(work, name="other", suites=[CONTRAST]).records
    } == {"finished"}


def test_a_disk_that_fails_after_the_training_does_not_lose_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, write = job_of(max_steps=1, dev=None), RunFolder.write

    def fails(folder: RunFolder, record: Record) -> None:
        if record.status == "finished":
            full_disk()
        write(folder, record)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write", fails)
        with pytest.raises(OSError):
            execute(job, tmp_path)
    monkeypatch.setattr(TrainedMethod, "fit", never)
    assert execute(job, tmp_path).status == "finished"

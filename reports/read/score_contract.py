"""The contract of scores that others made: what the lines of a task have in common.

Each task has one scale a file, one split, revision and metric, and each run one score of it. What
breaks that is refused with both places; what only casts doubt is a note of the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.files.printable import join_some
from reports.read.score_logs import LARGEST_SCORE

if TYPE_CHECKING:
    import pandas as pd

SCALES = {"1": 1.0, "100": 100.0, "none": float("inf")}
# Of these lower is better, and there are no bounds, whether or not a table says so.
_WITHOUT_BOUNDS = {
    "perplexity",
    "ppl",
    "word_perplexity",
    "byte_perplexity",
    "bits_per_byte",
    "loss",
    "nll",
    "mse",
    "rmse",
    "mae",
}
_LOWER_IS_BETTER = _WITHOUT_BOUNDS | {
    "wer",
    "cer",
    "ter",
    "error",
    "error_rate",
    "brier_score",
    "ece",
}
# columns of a metric that hold 0 and 1 alone
_BINARY = {
    "f1": ("target", "score"),
    "ap": ("target",),
}
_RANKED = ("", "spearman", "pearson", "ap")  # metrics of the order of gold values
SHOWN_NEGATIVE = "shown negative, since lower is better"
_DIGITS = 4  # runs with equal scores of so many digits may be copies
_MANY = 20  # scores of examples: runs that are equal in all of them may be copies


def apply_contract(frame: pd.DataFrame) -> list[str]:
    """Check scores, and divide them by their scale.

    Args:
        frame: as `reports.read.score_tables.read_scores` returns it, which is changed: "score" is
            then at most 1, higher is better, and "scale" is the number that it was divided by.

    Returns:
        What a reader of the scores should know, a clause each.

    Raises:
        InputError: what cannot be compared, with both places.
    """
    notes: list[str] = []
    _check_duplicates(frame)
    for task in frame["task"].unique():
        _fill_statements(frame, task)
        _check_task(task, frame[frame["task"] == task], notes)
    _apply_scale(frame, notes)
    notes += _find_copies(frame)
    notes += _find_names_alike(frame)
    return notes


def _check_duplicates(frame: pd.DataFrame) -> None:
    """Check that a run has one score of a task or example.

    Raises:
        InputError: it has two, with both places.
    """
    keys = ["row", "seed", "task", "example"]
    repeated = frame.duplicated(keys)
    if not repeated.any():
        return
    second = frame[repeated].iloc[0]
    same = (frame[keys] == second[keys]).all(axis=1)
    first_place = frame[same].iloc[0]["place"]
    words = [f"{name} {second[name]}" for name in keys if second[name]]
    message = f"a second score of {', '.join(words)}; expected one (the first: {first_place})"
    raise InputError(message, file=second["place"])


def _check_task(task: str, part: pd.DataFrame, notes: list[str]) -> None:
    """Check that the scores of a task can be compared.

    Raises:
        InputError: they are of two splits, revisions or metrics, or out of the range of a metric.
    """
    if task:
        name = f'task "{task}"'
    else:
        name = "the scores"
    for column, what in (("split", "splits"), ("revision", "revisions of the data")):
        groups = part[part[column] != ""].drop_duplicates(column)
        if len(groups) > 1:
            one = groups.iloc[0]
            two = groups.iloc[1]
            raise InputError(
                f"{name} has scores of two {what}: {one['row']} of {one[column]} "
                f"({one['place']}), {two['row']} of {two[column]}",
                file=two["place"],
                remedy="score both on the same one, or leave one out",
            )
    versions = sorted(set(part["version"]) - {""})
    if len(versions) > 1:
        notes.append(f"{name} was scored by several versions of mteb: {', '.join(versions)}")

    shared: set[str] | None = None
    for _, line in part[part["metrics"] != ""].iterrows():
        metrics = set(line["metrics"].split())
        if shared is None:
            shared = metrics
            continue
        if not shared & metrics:
            own = " or ".join(sorted(metrics))
            others = " or ".join(sorted(shared))
            raise InputError(
                f"{name}: the main score of {line['row']} equals {own}, "
                f"and that of other rows {others}",
                file=line["place"],
                remedy="score all rows by the same metric",
            )
        shared = shared & metrics

    for column in ("metric", "lower_is_better"):
        _check_one_word(column, part)
    for _, of_file in part.groupby("file", sort=False):
        _check_one_word("scale", of_file)
    if part["target"].notna().any():
        _check_targets(name, part)


def _check_one_word(column: str, part: pd.DataFrame) -> None:
    """Check that lines which state something of a task state the same.

    Raises:
        InputError: two lines differ, with both places.
    """
    words = part[part[column] != ""].drop_duplicates(column)
    if len(words) > 1:
        one = words.iloc[0]
        two = words.iloc[1]
        message = (
            f"a task has two values, {one[column]} for row {one['row']} ({one['place']}) and "
            f"{two[column]} for row {two['row']}"
        )
        raise InputError(message, file=two["place"], key=f'column "{column}"')


def _fill_statements(frame: pd.DataFrame, task: str) -> None:
    """Let what some lines of a task state hold for all of them, and what a metric's name says.

    A scale holds for the lines of its file.
    """
    here = frame["task"] == task
    parts = [("metric", here), ("lower_is_better", here)]
    for file in frame.loc[here, "file"].unique():
        of_file = frame["file"] == file
        parts.append(("scale", here & of_file))
    for column, lines in parts:
        is_stated = frame[column] != ""
        stated = frame.loc[lines & is_stated, column].unique()
        if len(stated) == 1:
            frame.loc[lines, column] = stated[0]
    metrics = set(frame.loc[here, "metric"].str.lower())
    if metrics & _WITHOUT_BOUNDS:
        unstated = here & (frame["scale"] == "")
        frame.loc[unstated, "scale"] = "none"
    if metrics & _LOWER_IS_BETTER:
        unstated = here & (frame["lower_is_better"] == "")
        frame.loc[unstated, "lower_is_better"] = "true"


def _check_targets(name: str, part: pd.DataFrame) -> None:
    """Check that the gold values of a task are those of one test set.

    Raises:
        InputError: an example has none or two, or one that its metric does not know.
    """
    without = part[part["target"].isna()]
    if len(without):
        line = without.iloc[0]
        message = f"{name}: some examples have a target, this one has none"
        raise InputError(message, file=line["place"], key='column "target"')
    by_example = part.groupby("example", sort=False)
    first = by_example["target"].transform("first")
    other = part[first != part["target"]]
    if len(other):
        line = other.iloc[0]
        before = float(first[other.index].iloc[0])
        example = f"{name}, example {line['example']}"
        message = f"{example}: {line['target']:g}, but {before:g} in a line before"
        raise InputError(message, file=line["place"], key='column "target"')
    metric = part["metric"].iloc[0]
    if metric in _RANKED and part["target"].nunique() == 1:
        line = part.iloc[0]
        message = f"{name}: all gold values are {line['target']:g}, which rank nothing"
        raise InputError(message, file=line["place"], key='column "target"')
    for column in _BINARY.get(metric, ()):
        is_known = part[column].isin([0.0, 1.0])
        wrong = part[~is_known]
        if len(wrong):
            line = wrong.iloc[0]
            message = f'metric "{metric}" needs values of 0 and 1, not {line[column]:g}'
            raise InputError(message, file=line["place"], key=f'column "{column}"')


def _apply_scale(frame: pd.DataFrame, notes: list[str]) -> None:
    """Divide scores by the scale of their task and file, and turn those of which lower is better."""
    found: dict[str, float] = {}
    several = frame["file"].nunique() > 1
    plain = frame[frame["target"].isna()]
    for (task, file), part in plain.groupby(["task", "file"], sort=False):
        if task:
            name = f'task "{task}"'
        else:
            name = "the scores"
        scale = _find_scale(name, part)
        is_stated = bool(part["scale"].iloc[0])
        if not is_stated:
            place = name
            if several:
                place = f"{name} in {file}"
            found[place] = scale
        divisor = scale
        if scale == float("inf"):
            divisor = 100.0
        score = part["score"] / divisor
        is_error = part["lower_is_better"].iloc[0] == "true"
        if is_error:
            score = -score
        frame.loc[part.index, "score"] = score
        frame.loc[part.index, "scale"] = f"{scale:g}"
        note = f"scores of {name} are {SHOWN_NEGATIVE}"
        if is_error and note not in notes:
            notes.append(note)
    if len(set(found.values())) > 1:
        small = [name for name, scale in found.items() if scale == 1.0]
        notes.append(f"{join_some(small, 4)}: scores read as 0 to 1, others as 0 to 100")


def _find_scale(name: str, part: pd.DataFrame) -> float:
    """Return the best score of a task: 1, 100, or infinity where scores have no bounds.

    Raises:
        InputError: rows have scores on two scales, or a score is out of range.
    """
    stated = part["scale"].iloc[0]
    size = part["score"].abs()
    if stated:
        scale = SCALES[stated]
    else:
        scale = 100.0
        if size.max() <= 1:
            scale = 1.0
        _check_one_scale(name, part)
    limit = scale
    if scale == float("inf"):
        limit = LARGEST_SCORE
    beyond = part[size > limit * (1 + 1e-9)]
    if len(beyond):
        worst = beyond.iloc[0]
        score = f"row {worst['row']} has {worst['score']:g}"
        raise InputError(
            f"{name}: {score}, expected -{limit:g} to {limit:g}",
            file=worst["place"],
            key='column "score"',
            remedy='correct it, or state "none" in a column "scale" if scores have no bounds',
        )
    return scale


def _check_one_scale(name: str, part: pd.DataFrame) -> None:
    """Check that no run of a task has 0 to 1 where another one has 0 to 100.

    A run at most 1 beside one above it is either that or a score near nothing in percent, which
    cannot be told apart: one of them would be wrong by a factor of 100.

    Raises:
        InputError: such runs, with both rows.
    """
    sizes = part["score"].abs()
    of_runs = sizes.groupby([part["row"], part["seed"]], sort=False)
    largest = part.loc[of_runs.idxmax()]
    size = largest["score"].abs()
    large = largest[size > 1]
    is_small = (size > 0) & (size <= 1)
    small = largest[is_small]
    if small.empty or large.empty:
        return
    highest = large["score"].abs().max()
    if highest <= 2:
        raise InputError(
            f"{name}: scores up to {highest:g} are neither on a scale of 0 to 1 nor, it seems, of 0 "
            "to 100",
            file=large.iloc[0]["place"],
            key='column "score"',
            remedy='state it in a column "scale": 1, 100 or none',
        )
    one = small.iloc[0]
    other = large.iloc[0]
    if len(large) < len(small):
        one, other = other, one
    first = f"row {one['row']} has {one['score']:g}"
    second = f"row {other['row']} has {other['score']:g} ({other['place']})"
    raise InputError(
        f"{name}: {first}, while {second}",
        file=one["place"],
        key='column "score"',
        remedy='give all in one scale, 0 to 1 or 0 to 100, or state it in a column "scale"',
    )


def _find_copies(frame: pd.DataFrame) -> list[str]:
    """Return a note for each row with runs whose scores are equal to four digits.

    Scores of fewer digits are equal by chance too often to be marked.
    """
    notes = []
    for row, part in frame.groupby("row", sort=False):
        first: dict[tuple[float, ...], str] = {}
        copies = []
        for seed, run in part.groupby("seed", sort=False):
            values = run.sort_values(["task", "example"])["score"]
            are_short = all(_digits(score) < _DIGITS for score in values)
            if are_short and len(run) < _MANY:
                continue
            scores = tuple(float(f"{score:.{_DIGITS}g}") for score in values)
            if scores in first:
                copies.append(f"{first[scores]} and {seed}")
            first.setdefault(scores, str(seed))
        if copies:
            runs = join_some(copies, 4)
            notes.append(f"runs {runs} of {row} are equal in every score, so they may be copies")
    return notes


def _find_names_alike(frame: pd.DataFrame) -> list[str]:
    """Return a note for each two rows whose names differ in upper and lower case alone."""
    notes = []
    first: dict[str, str] = {}
    for row in frame["row"].unique():
        other = first.setdefault(row.casefold(), row)
        if other != row:
            notes.append(f'rows "{other}" and "{row}" differ in upper and lower case alone')
    return notes


def _digits(score: float) -> int:
    """Return the number of significant digits of a score."""
    text = f"{abs(score):.12g}"
    digits = text.replace(".", "").strip("0")
    return len(digits)

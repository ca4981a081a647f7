"""`harness verdict`, `power`, `gate` and `examples`: which row is better, how sure that is, and
where rows differ.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from harness.commands.options import (
    COMPARISON,
    EQUIVALENCE,
    JSON,
    ON,
    ROW_BASE_MODEL,
    SCORES,
    WORKDIR,
    Commands,
    add_command,
    one_name,
    reading,
)
from harness.errors import InputError
from harness.files.printable import tell_json, tell_lines

if TYPE_CHECKING:
    from harness.results.answer import Answer

_SHARED = ("on", "block", "comparison", "base_model")


def register(commands: Commands) -> None:
    """Add `harness verdict`, `power` and `examples`. Imports nothing slow."""
    target = argparse.ArgumentParser(add_help=False, parents=[ON, SCORES])
    target.add_argument(
        "--block",
        default="",
        metavar="NAME",
        help="only the rows and suites of this block of the file",
    )
    rows = argparse.ArgumentParser(add_help=False, parents=[ROW_BASE_MODEL])
    rows.add_argument(
        "rows", nargs="*", metavar="A B", help="labels of two rows (default: all rows)"
    )

    verdict = add_command(
        commands,
        "verdict",
        run_verdict,
        WORKDIR,
        COMPARISON,
        target,
        rows,
        EQUIVALENCE,
        JSON,
        help="say which of two rows is better and how sure that is; or all pairs of rows",
        description="Print which of two rows is better, with the 95 % interval of their difference over seeds and test "
        "examples. The answer is better, worse, no difference that matters, or cannot tell yet. It is corrected for "
        "all pairs that are judged together: the planned ones, the rows against their untrained starts, or all pairs. "
        "Without A and B: all differences, the rows that may be the best, and groups of rows that are not "
        "significantly different.",
        example="harness verdict SimCSE SCD --on STS --workdir work/demo",
    )
    verdict.add_argument(
        "--without-overlap",
        action="store_true",
        help="leave out test examples that occur in the training data of a row",
    )

    power = add_command(
        commands,
        "power",
        run_power,
        WORKDIR,
        COMPARISON,
        target,
        ROW_BASE_MODEL,
        JSON,
        help="say what differences a number of seeds can detect, and how many seeds a difference takes",
        description="Simulate the verdicts of `harness verdict` with the spread of seeds and examples that the records "
        "of a work directory have, or with --sd. Print the smallest difference that is found in 80 % of comparisons, "
        "by the number of seeds and of test examples.",
        example="harness power --difference 1.5 --workdir work/demo; harness power --sd 0.84 --rows 6 --difference 2",
    )
    power.add_argument(
        "--difference",
        type=float,
        metavar="POINTS",
        help="print how many seeds this difference takes",
    )
    power.add_argument(
        "--sd",
        type=float,
        metavar="POINTS",
        help="standard deviation over seeds, in place of records",
    )
    power.add_argument(
        "--pairs-sd",
        type=float,
        metavar="POINTS",
        help="standard deviation of a difference by the "
        "choice of test pairs (default: that of the records, or 0.7)",
    )
    power.add_argument(
        "pair",
        nargs="*",
        metavar="A B",
        help="labels of two rows: by their own spread, with the number of test examples that finds "
        "their difference (default: all rows)",
    )
    power.add_argument(
        "--rows", type=int, metavar="K", help="number of rows compared (default: as recorded, or 2)"
    )

    gate = add_command(
        commands,
        "gate",
        run_gate,
        WORKDIR,
        COMPARISON,
        ON,
        SCORES,
        JSON,
        help="keep a proposed change or drop it, for scripts that try many",
        description="Exit code 0: the candidate is better; 1: it is not; 3: undecided, add seeds and run this again. "
        "Every candidate is written to a history: of all that are ever accepted, at most 5 % are wrong in expectation.",
        example="harness gate --baseline SimCSE --candidate mine --workdir work/demo",
    )
    gate.add_argument(
        "--baseline", required=True, metavar="ROW", help="label of the row to be improved on"
    )
    gate.add_argument("--candidate", required=True, metavar="ROW", help="label of the proposed row")
    gate.add_argument(
        "--most",
        type=int,
        default=20,
        metavar="N",
        help="seeds after which nothing remains undecided; fixed at the first decision (default: 20)",
    )
    gate.add_argument(
        "--not-worse-by",
        type=float,
        default=0.0,
        metavar="POINTS",
        help="keep the candidate if it is not worse by as much (default: only if it is better)",
    )
    gate.add_argument(
        "--all-tasks", action="store_true", help="a task that only one of the rows has is an error"
    )
    gate.add_argument(
        "--history",
        default="",
        metavar="FILE",
        help="all candidates so far (default: gate.jsonl in the "
        "work directory, or next to the scores)",
    )

    examples = add_command(
        commands,
        "examples",
        run_examples,
        WORKDIR,
        COMPARISON,
        rows,
        JSON,
        help="show the examples on which two rows differ most, or that most rows get wrong",
        description="Compare the errors of rows on single examples: of a pair, the distance between its rank by "
        "cosine and its rank by gold score; of a classified text, right or wrong; of a query, its score. Texts are "
        "read from the data of the tasks; if it cannot be read, their ids are printed.",
        example="harness examples SimCSE SCD --task Embedded-STS-natural --workdir work/demo",
    )
    examples.add_argument(
        "--task",
        action="append",
        type=one_name,
        default=[],
        metavar="NAME",
        help="only this task; may be repeated (default: all)",
    )
    examples.add_argument(
        "--top",
        type=int,
        default=10,
        metavar="N",
        help="examples per task (default: 10)",
    )
    examples.add_argument(
        "--text", default="", metavar="WORDS", help="only examples that contain these words"
    )


def _scores_of(args: argparse.Namespace) -> Any:
    """Return the source that `--scores` names, or a list of several.

    Raises:
        InputError: one is empty, as of a variable of the shell that is not set.
    """
    if "" in args.scores:
        raise InputError("--scores: expected a file or folder, not an empty text", key="--scores")
    if len(args.scores) == 1:
        return args.scores[0]
    return args.scores


@reading
def run_verdict(args: argparse.Namespace) -> int:
    """Print the verdict."""
    from reports.decide.verdict_answer import verdict

    options = (*_SHARED, "equivalence", "without_overlap")
    found = _scores_of(args) or args.workdir
    return _show(
        args, verdict(found, *two_rows(args), **{name: getattr(args, name) for name in options})
    )


@reading
def run_power(args: argparse.Namespace) -> int:
    """Print the table of seeds and differences for each base model."""
    from reports.decide.power_answer import power

    options = (*_SHARED, "difference", "sd", "pairs_sd", "rows")
    found = _scores_of(args) or (args.workdir if args.sd is None else None)
    chosen = {name: getattr(args, name) for name in options}
    labels = _check_two(args.pair)
    if labels:
        chosen |= {"a": labels[0], "b": labels[1]}
    return _show(args, power(found, **chosen))


def run_gate(args: argparse.Namespace) -> int:
    """Print the decision; its exit code says it to a script."""
    from reports.decide.gate_answer import MAY_BE_WORSE, NOT_WORSE, gate
    from reports.stats.online import BETTER, NOT_BETTER

    options = ["baseline", "candidate", "on", "comparison", "most", "history"]
    options += ["not_worse_by", "all_tasks"]
    answer = gate(
        _scores_of(args) or args.workdir, **{name: getattr(args, name) for name in options}
    )
    _show(args, answer)
    codes = {BETTER: 0, NOT_WORSE: 0, NOT_BETTER: 1, MAY_BE_WORSE: 1}
    return codes.get(answer.data["decision"], 3)


def two_rows(args: argparse.Namespace) -> list[str]:
    """The labels of two rows, or none.

    Raises:
        InputError: another number of rows.
    """
    return _check_two(args.rows)


def _check_two(labels: list[str]) -> list[str]:
    if len(labels) not in (0, 2):
        raise InputError(
            f"rows: name two or none, not {len(labels)}; a work directory is given as --workdir DIR",
            key="rows",
        )
    return list(labels)


def _show(args: argparse.Namespace, answer: Answer) -> int:
    if args.json:
        tell_json(answer.data)
    else:
        tell_lines(answer.text)
    return 0


@reading
def run_examples(args: argparse.Namespace) -> int:
    """Print the examples."""
    from reports.decide.examples_answer import examples

    options = ("task", "top", "text", "comparison", "base_model")
    chosen = {name: getattr(args, name) for name in options}
    return _show(args, examples(args.workdir, *two_rows(args), **chosen))

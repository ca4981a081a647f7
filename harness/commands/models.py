"""`harness train` and `harness evaluate`: one method or model at a time."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from harness.commands import options
from harness.commands.terminal import print_columns
from harness.errors import InputError, TrainingStopped
from harness.files.printable import tell, tell_error, tell_json, tell_lines
from harness.machine.progress import Reporter

if TYPE_CHECKING:
    from harness.results.record import Score

_DEVICE = "auto, cpu, cuda, cuda:N or mps; or several, as cuda:0,cuda:1 (default: auto)"
_SETTINGS = (
    "source",
    "mteb_results",
    "model_name",
    "pooling",
    "max_length",
    "batch_size",
    "device",
    "dtype",
    "prompts",
    "version",
    "trust_remote_code",
    "backend",
    "revision",
)
_NOT_WITH_SENSITIVITY = {
    "--backend": "torch",
    "--model-version": "",
    "--trust-remote-code": False,
    "--mteb-results": None,
    "--model-name": None,
    "--revision": None,
}
"""Options of a single evaluation alone, with their defaults."""


def register(commands: options.Commands) -> None:
    """Add the commands to the command line."""
    score = options.add_command(
        commands,
        "evaluate",
        evaluate,
        options.JSON,
        options.QUIET,
        help="score a model on suites or tasks",
        description="Score a model of the hub, a SentenceTransformer folder, a saved method, vectors "
        "in a file, a function, an endpoint or a model of mteb.",
        example="harness evaluate sentence-transformers/all-MiniLM-L6-v2 --suite sts --suite transfer",
    )
    score.add_argument(
        "model",
        help="hub id, folder, embedded:NAME, a file of vectors (.parquet, .npz), module:function, "
        "http(s)://HOST/v1#NAME or mteb:NAME",
    )
    score.add_argument(
        "--pooling", help="of a plain transformer (default: what the model says, else mean)"
    )
    score.add_argument(
        "--max-length", type=int, metavar="N", help="longest text in tokens (default: the model's)"
    )
    score.add_argument(
        "--batch-size",
        type=int,
        default=64,
        metavar="N",
        help="sentences per batch (default: 64)",
    )
    score.add_argument(
        "--dtype",
        default="fp32",
        choices=["fp32", "bf16", "fp16"],
        help="what sentences are encoded in (default: fp32)",
    )
    score.add_argument(
        "--suite",
        action="append",
        type=options.one_suite,
        metavar="NAME|FILE",
        help="a suite, a task or a file, or '{ task = \"FILE\", columns = { ... } }'; may be repeated "
        "(default: sts; see: harness list suites)",
    )
    score.add_argument(
        "--source",
        default="senteval",
        choices=["senteval", "mteb"],
        help="copy of the STS sets (default: %(default)s)",
    )
    score.add_argument(
        "--no-cache",
        action="store_true",
        help="neither read nor write vectors of earlier evaluations",
    )
    score.add_argument(
        "--prompts",
        metavar="own|FILE",
        help="prompts before the texts: the model's own, or a JSON file by kind of task",
    )
    score.add_argument(
        "--model-version",
        default="",
        dest="version",
        metavar="TEXT",
        help="of what is behind an endpoint; its vectors are stored under it",
    )
    score.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="a model of mteb may run the code of its repository",
    )
    score.add_argument(
        "--backend",
        default="torch",
        choices=["torch", "onnx", "openvino"],
        help="what sentence-transformers runs the model with (default: torch)",
    )
    score.add_argument(
        "--mteb-results", metavar="FOLDER", help="write the scores of mteb's tasks in mteb's layout"
    )
    score.add_argument(
        "--model-name",
        metavar="ORG/NAME",
        help="of the model in --mteb-results (default: the hub id)",
    )
    score.add_argument(
        "--revision",
        metavar="TEXT",
        help="of the model in --mteb-results (default: the hub's commit, or a hash of a folder)",
    )
    score.add_argument("--device", default="auto", help=_DEVICE)
    score.add_argument(
        "--sensitivity",
        action="store_true",
        help="show how much the scores move with dtype, batch size, padding and attention kernel",
    )
    score.add_argument(
        "--vary",
        action="append",
        metavar="KEY[=V,V]",
        help="with --sensitivity: dtype, batch_size, padding or attention, with values of your own; "
        "may be repeated (default: all)",
    )

    fit = options.add_command(
        commands,
        "train",
        train,
        options.CONFIG,
        options.QUIET,
        help="train one method and save it",
        description="Fit one method on a corpus and save it in the SentenceTransformer layout. "
        "The same command resumes an interrupted run.",
        example="harness train simcse --out models/simcse --corpus embedded:sentences --preset mini",
    )
    fit.add_argument("method", help="see: harness list methods")
    fit.add_argument(
        "--family",
        metavar="NAME",
        help="whose values of the preset (default: the family of the base model)",
    )
    fit.add_argument("--out", required=True, metavar="FOLDER", help="folder of the saved model")
    fit.add_argument(
        "--corpus",
        type=options.name_or_table,
        default="embedded:sentences",
        metavar="URI|FILE",
        help='the text (default: %(default)s); or \'{ uri = "FILE", columns = { text = "NAME" } }\'',
    )
    fit.add_argument("--limit", type=int, metavar="N", help="use the first N items of the text")
    fit.add_argument(
        "--device", default="auto", help="auto, cpu, cuda, cuda:N or mps (default: auto)"
    )
    fit.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="seed of all randomness (default: 1)",
    )
    fit.add_argument(
        "--dev",
        type=options.name_or_table,
        default="Embedded-STS-natural",
        metavar="TASK|FILE",
        help="task whose dev split selects the checkpoint, a file of scored pairs, or none "
        "(default: %(default)s)",
    )
    fit.add_argument(
        "--precision",
        default="fp32",
        choices=["fp32", "bf16", "fp16"],
        help="of the training (default: fp32; harness doctor measures what bf16 would save)",
    )


def train(args: argparse.Namespace) -> int:
    """Exit code 0 when the model was saved, 1 when training collapsed or diverged."""
    from harness import api

    names = ["out", "preset", "family", "base_model", "corpus", "limit", "dev"]
    names += ["seed", "device", "precision"]
    try:
        api.train(
            args.method,
            config=dict(args.config),
            progress=Reporter(quiet=args.quiet),
            **{name: getattr(args, name) for name in names},
        )
    except TrainingStopped:  # the reporter has shown the reason
        return 1
    return 0


def evaluate(args: argparse.Namespace) -> int:
    """Exit code 0 when every task was scored, 1 when the data of some is not available."""
    from harness import api

    suites = args.suite or ["sts"]
    if args.sensitivity:
        return _show_sensitivity(args, suites)
    if args.vary:
        raise InputError("goes with --sensitivity", key="--vary")
    evaluation = api.evaluate(
        args.model,
        suites,
        cached=not args.no_cache,
        progress=Reporter(quiet=args.quiet),
        **{name: getattr(args, name) for name in _SETTINGS},
    )
    result = evaluation.result
    if evaluation.remark:
        tell_error(evaluation.remark)
    for name, text in result.artifacts.items():
        if name.startswith("errors/"):
            tell_lines(text, error=True)
    if args.json:
        tell_json(evaluation.as_dict())
    else:
        _show(args.model, result, suites)
    return 1 if result.missing else 0


def _show_sensitivity(args: argparse.Namespace, suites: list[str]) -> int:
    """Print how much the scores of a model move; exit code 0.

    Raises:
        InputError: an option of a single evaluation is given.
    """
    from harness import api

    for option, usual in _NOT_WITH_SENSITIVITY.items():
        name = "version" if option == "--model-version" else option[2:].replace("-", "_")
        if getattr(args, name) != usual:
            raise InputError("does not go with --sensitivity", key=option)
    chosen: dict[str, Any] = {}
    if args.vary:
        chosen["vary"] = _parse_vary(args.vary, args.device)
    names = ("source", "pooling", "max_length", "batch_size", "dtype", "device", "prompts")
    found = api.sensitivity(
        args.model,
        suites,
        **{name: getattr(args, name) for name in names},
        **chosen,
    )
    if args.json:
        tell_json(found.as_dict())
        return 0
    tell(found.model)
    rows = [("setting", "value", "task", "metric", "score", "difference", "seconds")]
    for row in found.rows:
        numbers = (f"{row.score:.5f}", f"{row.difference:+.5f}", f"{row.seconds:.1f}")
        rows.append((row.setting, row.value, row.task, row.metric, *numbers))
    print_columns(rows, right=(4, 5, 6))
    tell(f"largest difference: {found.largest():.5f}")
    for note in found.notes:
        tell(note)
    return 0


def _parse_vary(given: list[str], device: str) -> dict[str, list[Any]]:
    """Return the settings of --vary with their values, those of one that is named twice together;
    one that names none has the usual ones.
    """
    from harness.evaluation.sensitivity import choose_settings
    from harness.machine.environment import pick_device

    chosen: dict[str, list[Any]] = {}
    for text in given:
        key, equals, listed = text.partition("=")
        if equals:
            values = listed.split(",")
        else:
            values = choose_settings([key], pick_device(device))[key]
        chosen.setdefault(key, []).extend(values)
    return chosen


def _show(title: str, result: Any, suites: list[str]) -> None:
    """Print a line per score, the averages of the suites, notes and the speed."""
    from harness.tasks.catalogue import is_suite, suite

    rows = [("task", "split", "metric", "aggregation", "value", "n", "protocol")]
    for s in result.scores:
        if _in_percent(s):
            value = f"{100 * s.value:.2f}"
        else:
            value = f"{s.value:.3f}"
        n = f"{s.n:,}"
        rows.append((s.task, s.split, s.metric, s.aggregation, value, n, s.protocol))
    tell(title)
    print_columns(rows, right=(4, 5))
    averages = {}
    for name in suites:
        if is_suite(name):
            for average in suite(name).averages:
                averages[average.title] = average
    for heading, average in averages.items():
        tell(f"{heading}: {average.of(result.scores).describe()}")
    for note in result.notes:
        tell(f"note: {note}")
    parts = [f"{result.cost['sentences']:,.0f} sentences"]
    if cached := result.cost.get("sentences_cached", 0.0):
        parts.append(f"{cached:,.0f} of them from the cache")
    if speed := result.cost.get("sentences_per_second"):
        parts.append(f"encoded {speed:,.0f} per second")
    tell(", ".join(parts))


def _in_percent(score: Score) -> bool:
    """Whether a score is printed times 100; the declaration of a third party's suite decides for
    its own metric.
    """
    from harness.tasks.catalogue import suites

    kind = score.metric.partition("_")[0]  # of spearman_first_128, of vectors that were cut
    if kind in ("spearman", "pearson", "accuracy", "f1"):
        return True
    if score.suite in ("mteb", "embedded-mteb") or score.suite.startswith("own-"):
        return True
    declared = suites().get(score.suite)
    return declared is not None and declared.metric == score.metric and declared.percent

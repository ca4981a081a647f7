"""The README of a saved model: its results, protocols, seed and cost, in the hub's model-index form
and as tables.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

from harness.files.atomic import write_atomic
from harness.files.printable import markdown_text, one_line
from harness.results.record import Record, Score
from harness.seeds import seed_text

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

SCORES_FILE = "harness_scores.json"
FOLDER_IN_CARD = "model"  # what the code of a card calls its folder
RESULTS_FOLDER = ".eval_results"  # the hub's community evaluations
_EMBEDDED = "embedded:"
_LICENCE = "apache-2.0"  # of the model that ships
TAGS = ("sentence-transformers", "sentence-similarity", "feature-extraction")
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_START = "<!-- harness: from the record of the run -->\n"
_END = "<!-- harness: end -->\n"
_METRICS = {
    "spearman": "spearmanr",
    "pearson": "pearsonr",
}  # the ids that the hub knows; others are spelt alike
_NAMES = {"spearman": "Spearman", "pearson": "Pearson", "f1": "F1"}


def is_card(file: Path) -> bool:
    """Whether a file of a saved model belongs to its card, which people may edit."""
    return file.name in ("README.md", SCORES_FILE) or file.parent.name == RESULTS_FOLDER


def write_card(model: Path, record: Record) -> None:
    """Put what `record` knows into the README of a saved model, and all its scores into
    `SCORES_FILE`; a second call replaces what the first put there. The card has a heading, the
    licence of the base model where that states one, and code that opens this folder.

    Raises:
        OSError: the folder cannot be written.
    """
    file = model / "README.md"
    if file.is_file():
        text = file.read_text("utf-8", errors="replace")
    else:
        text = f"\n{markdown_text(record.row)}\n"
    body = _FRONT.sub("", text, count=1)
    if _START in body and _END in body:
        before = body[: body.index(_START)]
        end = body.index(_END) + len(_END)
        after = body[end:]
        body = before + after.removeprefix("\n")
    body = _complete(body, _title(record.row, record.base_model), model.name)
    ours = f"{_START}{results(record)}{_END}"
    at = body.find("\n## Use\n") + 1
    if at:
        body = f"{body[:at]}{ours}\n{body[at:]}"
    else:
        body = f"{body.rstrip()}\n\n{ours}"
    write_atomic(file, f"---\n{front_matter(record)}\n---\n{body}")
    write_atomic(model / SCORES_FILE, scores_text(record))
    for task, text in community_results(record).items():
        write_atomic(model / RESULTS_FOLDER / f"{task}.yaml", text)


def complete_card(model: Path, name: str, base_model: str) -> None:
    """Give the README of a model that was trained alone a heading, the licence and the base model.

    Raises:
        OSError: the folder cannot be written.
    """
    from huggingface_hub import ModelCardData

    file = model / "README.md"
    body = _FRONT.sub("", file.read_text("utf-8", errors="replace"), count=1)
    body = _complete(body, _title(name, base_model), model.name)
    data = ModelCardData(
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=[*TAGS],
        license=licence_of(base_model),
        base_model=_hub_id(base_model),
    )
    front = data.to_yaml().rstrip("\n")
    write_atomic(file, f"---\n{front}\n---\n{body}")


def _complete(body: str, title: str, folder: str) -> str:
    """Return a README's text with a heading, and with the name of its folder in the code."""
    if not re.search("^# ", body, re.MULTILINE):
        body = f"\n# {markdown_text(title)}\n\n{body.lstrip()}"
    return body.replace(f'("{FOLDER_IN_CARD}"', f'("{folder}"')


def community_results(record: Record) -> dict[str, str]:
    """Task -> YAML of the hub's community evaluations (`.eval_results/`), of tasks whose data is
    one set of the hub.
    """
    import yaml
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    found: dict[str, str] = {}
    for score in _main_scores(record):
        protocol = record.protocols.get(score.protocol) or {}
        data = protocol.get("data")
        if (
            score.source == "mteb"
            and isinstance(data, dict)
            and len(data) == 1
            and math.isfinite(score.value)
        ):
            ((name, revision),) = data.items()
            seed = seed_text(record.random_seed)
            notes = f"{score.metric}; one run, seed {seed}; {SCORES_FILE} says how"
            value = round(100 * score.value, 2)
            date = record.finished[:10]
            entry = EvalResultEntry(
                name,
                score.task,
                value,
                revision,
                date=date,
                notes=notes,
            )
            text = yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False)
            file_name = re.sub(r"[^\w.-]", "-", score.task)
            found.setdefault(file_name, text)
    return found


def front_matter(record: Record) -> str:
    """The card's metadata as YAML, as `huggingface_hub.ModelCard` reads it."""
    from huggingface_hub import ModelCardData

    tags = [*TAGS]
    kind = _kind(record)
    if kind:
        tags.append(kind)
    evaluated = []
    for score in _main_scores(record):
        if (result := _result(score, record)) is not None:
            evaluated.append(result)
    data = ModelCardData(
        # A model of many languages says so in its name.
        language="multilingual"
        if re.search("multilingual|xlm", record.base_model, re.IGNORECASE)
        else "en",
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=tags,
        license=licence_of(record.base_model),
        base_model=_hub_id(record.base_model),
        datasets=_data_sets(record),
        model_name=(one_line(record.row) or record.method) if evaluated else None,
        eval_results=evaluated or None,
    )
    return data.to_yaml().rstrip("\n")


def scores_text(record: Record) -> str:
    """The content of `SCORES_FILE`: every score with all its digits and the protocols of its ids."""
    scores = [score.model_dump() for score in record.scores]
    about = {
        "record": record.id,
        "seed": record.seed,
        "cost": record.cost,
        "scores": scores,
    }
    about["protocols"] = record.protocols
    return json.dumps(about, indent=1, default=str) + "\n"


def _main_scores(record: Record) -> list[Score]:
    """One score for each task and metric: the first one, over all pairs where it is an aggregate."""
    main: dict[tuple[str, str], Score] = {}
    whole_first = sorted(record.scores, key=lambda score: score.aggregation not in ("", "all"))
    for score in whole_first:
        if score.split != "dev":
            main.setdefault((score.task, score.metric), score)
    chosen = []
    for score in record.scores:
        if main.get((score.task, score.metric)) is score:
            chosen.append(score)
    return chosen


def _data_sets(record: Record) -> list[str] | None:
    """The hub's ids of the text that was learnt from."""
    uris = []
    for key in ("source", "uri"):
        uri = (record.corpus or {}).get(key, "")
        uris.append(str(uri))
    ids = []
    for uri in uris:
        if found := re.match(r"hf://datasets/([\w.-]+/[\w.-]+)", uri):
            ids.append(found.group(1))
    return list(dict.fromkeys(ids)) or None


def _kind(record: Record) -> str:
    """The word that readers look for. "unsupervised" only where no label was used, selection of
    weights included.
    """
    if record.supervision == "unsupervised" and record.dev:
        return ""
    return record.supervision


def _title(name: str, base_model: str) -> str:
    """Return the heading: what was trained, from which model."""
    start = _last_part(base_model).removeprefix(_EMBEDDED)
    return f"{one_line(name)}, from {one_line(start)}"


def describe_base(base_model: str) -> str:
    """Return in words which model was trained. A folder has its name without its path, which is of one
    machine.

    >>> describe_base("embedded:mini-bert")
    'mini-bert, the model that ships with sentence-harness; it is not on the hub'
    >>> describe_base("/home/ann/models/tuned")
    'tuned, a folder of its author; it is not on the hub'
    >>> describe_base("google-bert/bert-base-uncased")
    'google-bert/bert-base-uncased'
    """
    name = one_line(_last_part(base_model))
    if base_model.startswith(_EMBEDDED):
        name = name.removeprefix(_EMBEDDED)
        return f"{name}, the model that ships with sentence-harness; it is not on the hub"
    if _is_of_this_disk(base_model):
        return f"{name}, a folder of its author; it is not on the hub"
    return base_model


def describe_text(uri: str) -> str:
    """Return the name of a corpus; of a file without its path.

    >>> describe_text("/home/ann/domain.csv"), describe_text("embedded:sentences")
    ('domain.csv', 'embedded:sentences')
    """
    path = uri.partition("?")[0]
    return one_line(_last_part(path)) if _is_of_this_disk(path) else uri


def _last_part(path: str) -> str:
    """Return the name of a file or folder, with the separators of any system."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def _is_of_this_disk(name: str) -> bool:
    """True if a name is a path: it is there, or begins at a root of any system."""
    if Path(name).is_absolute() or PureWindowsPath(name).is_absolute():
        return True
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def licence_of(base_model: str) -> str | None:
    """Return the licence that the card of a base model states; None where it states none that can be
    read without the hub.
    """
    from huggingface_hub import try_to_load_from_cache

    if base_model.startswith(_EMBEDDED):
        return _LICENCE
    file: Any = Path(base_model) / "README.md"
    if not file.is_file():
        try:
            file = try_to_load_from_cache(base_model, "README.md")
        except ValueError:  # no id of the hub
            return None
    if not isinstance(file, str | Path):
        return None
    text = Path(file).read_text("utf-8", errors="replace")
    front = _FRONT.match(text)
    if front:
        found = re.search(r"^license:[ \t]*([\w.+-]+)[ \t]*$", front[0], re.MULTILINE)
    else:
        found = None
    return found[1] if found else None


def _hub_id(base_model: str) -> str | None:
    """The base model where it is one of the hub."""
    is_id = re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", base_model, re.ASCII) is not None
    if is_id and not Path(base_model).exists():
        return base_model
    return None


def _result(score: Score, record: Record) -> EvalResult | None:
    """A score in the hub's form; geometry and the like have none there, and are only in the table."""
    from huggingface_hub import EvalResult

    if score.split == "dev" or not math.isfinite(score.value):
        return None
    if score.metric in ("spearman", "pearson"):
        task = ("semantic-similarity", "Semantic Similarity")
    elif score.metric in ("accuracy", "f1"):
        task = ("text-classification", "Text Classification")
    elif score.metric.startswith(("ndcg", "map", "mrr", "recall")):
        task = ("information-retrieval", "Information Retrieval")
    else:
        return None
    data = record.protocol_of(score).get("data")
    if score.aggregation:
        how = f", {score.aggregation}"
    else:
        how = ""
    name = f"{score.source}-{score.task}".lower()
    title = f"{score.task} ({_source(score)})"
    metric_name = _NAMES.get(score.metric, score.metric)
    return EvalResult(
        task_type=task[0],
        task_name=task[1],
        dataset_type=re.sub(r"[^a-z0-9.-]+", "-", name),
        dataset_name=one_line(title),
        dataset_split=one_line(score.split),
        dataset_args={"fingerprint": str(data)} if data else None,
        metric_type=_METRICS.get(score.metric, score.metric),
        metric_value=round(score.value, 4),
        metric_name=f"{metric_name}{how}",
    )


def _source(score: Score) -> str:
    """Where a set is from; the tasks that ship with the harness are nobody's benchmark."""
    if score.source == "embedded":
        return "ships with the harness, no public benchmark"
    return f"{score.source} copy"


def results(record: Record) -> str:
    """The sections of the README that the record fills."""
    lines = ["## Results", ""]
    scores = [score for score in record.scores if score.split != "dev"]
    if scores:
        lines += ["| task | from | split | metric | value | n |", "|---|---|---|---|---:|---:|"]
    for s in scores:
        if s.aggregation:
            metric = f"{s.metric}, {s.aggregation}"
        else:
            metric = s.metric
        words = [markdown_text(word) for word in (s.task, s.source, s.split, metric)]
        row = " | ".join(words)
        lines.append(f"| {row} | {s.value:.4f} | {s.n:,} |")
    if any(s.source == "embedded" for s in scores):
        lines += [
            "",
            "The embedded tasks ship with the harness: small, scored by one author, no public benchmark.",
        ]
    lines += [
        f"\nNot evaluated: {markdown_text(task)}: {markdown_text(why.text)}"
        for task, why in record.missing.items()
    ]
    lines += [
        "",
        f"One run with seed {seed_text(record.random_seed)}. How each number was measured: `{SCORES_FILE}`.",
        "",
    ]
    lines += ["## How it was made", "", "| | |", "|---|---|"]
    for name, text in _training_rows(record):
        lines.append(f"| {name} | {markdown_text(text)} |")
    return "\n".join(lines) + "\n"


def _training_rows(record: Record) -> list[tuple[str, str]]:
    rows = [
        ("method", record.method),
        ("base model", describe_base(record.base_model)),
        (
            "licence",
            licence_of(record.base_model) or "that of the base model, whose card states none here",
        ),
        ("labels", _labels(record)),
    ]
    if c := record.corpus:
        name = describe_text(str(c.get("uri")))
        digest = str(c.get("sha256"))[:16]
        size = f"{c.get('count')} {c.get('kind')}"
        rows.append(("text", f"{name} ({size}, sha256 {digest})"))
    rows += [("record", record.id), ("seed", seed_text(record.random_seed))]
    return rows


def _labels(record: Record) -> str:
    if record.dev:
        chosen = f"the weights were selected on the labelled dev part of {record.dev.get('task')}"
    else:
        chosen = ""
    if record.supervision == "supervised":
        return "trained with labels" + (f"; {chosen}" if chosen else "")
    if record.supervision == "transductive":
        return "none, but fitted to the text of the test sets"
    return f"none in training; {chosen}" if chosen else "none"

"""One comparison in one MLflow store: a parent run for each row of the table, below it one run for each seed."""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.files.printable import markdown_text
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.seeds import seed_text
from harness.tracking.client import connect
from harness.tracking.entities import METRICS_A_BATCH, delete_models, inputs_of, log_model
from harness.tracking.fields import description, last, means, numbers, row_name, row_params, seed_params
from harness.tracking.whole_rows import NewRun, database_of, write

if TYPE_CHECKING:
    from mlflow.entities import Run

LAYOUT = 3  # part of a run's content hash: raise it when what is sent changes, and `sync` sends everything anew
PARAMS_A_BATCH = 100  # MLflow's limit of one log_batch request
CONTENT = "harness.content"
LONGEST_PARAM = 6000  # MLflow's limit, in characters
REPORT = "harness.report"  # tag of a row's run: hash of the report that lies in its artifacts
KIND = {"mlflow.experimentKind": "custom_model_development"}  # opened for the training of models, not for chats
GROUPS = """

Scores stand in the group of their suite (sts, transfer), deviations over seeds in "sts sd", what else is known of a
task in "sts more", seconds and memory in "usage"."""
EXPERIMENT = f"Rows of a comparison's table: means over the seeds, which are the runs below a row.{GROUPS}"
STUDY = f"Trials of a search: means over the seeds, which are the runs below a trial.{GROUPS}"


class TrackedComparison:
    """The runs of a comparison, as the store has them. Every method may raise whatever MLflow raises."""

    def __init__(self, workdir: Path, comparison: str, uri: str, root: Mapping[str, Any] | None = None) -> None:
        self.workdir = workdir
        self.client = connect(uri)
        self.id = self._open(comparison, uri, EXPERIMENT if root is None else STUDY)
        self.root: str | None = None  # id of the run above all rows, where there is one
        # (record id, row) -> content hash (empty: sending was interrupted) and run id of each run that shows it
        self.runs: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        self.parents: dict[str, str] = {}  # parent key -> run id
        self.described: set[str] = set()  # run ids of the parents whose parameters were sent in this session
        self.open: set[str] = set()  # run ids of the parents that got a child since they were ended
        self.rows: dict[str, Record] = {}  # run id of a parent -> a record of the row
        earlier: list[Run] = []  # rows as an earlier version sent them
        for run in self._search(""):
            tags = run.data.tags
            if "harness.id" in tags:
                shown = (tags.get("harness.content", ""), run.info.run_id)
                self.runs[tags["harness.id"], tags["harness.row"]].append(shown)
            elif "harness.parent" in tags and tags.get("harness.layout") != str(LAYOUT):
                earlier.append(run)
                continue
            elif "harness.parent" in tags:
                self.parents[tags["harness.parent"]] = run.info.run_id
            elif "harness.root" in tags:
                self.root = run.info.run_id
            if run.info.status == "RUNNING" and "harness.parent" in tags:  # its session was killed
                self.open.add(run.info.run_id)
        self.earlier = [run.info.run_id for run in earlier]
        if root is not None and self.root is None:
            self.root = self.client.create_run(
                self.id, run_name=comparison, tags={"harness.root": comparison}
            ).info.run_id
            self._log(self.root, _texts(root))

    def _open(self, name: str, uri: str, about: str) -> str:
        experiment = self.client.get_experiment_by_name(name)
        if experiment is not None:
            if experiment.lifecycle_stage == "deleted":  # its name stays taken, so that it cannot be made anew
                self.client.restore_experiment(experiment.experiment_id)
            for tag, value in KIND.items():
                if tag not in experiment.tags:  # a reader may have chosen another
                    self.client.set_experiment_tag(experiment.experiment_id, tag, value)
            return str(experiment.experiment_id)
        # A server has a place of its own for artifacts; a bare database would put them into the current folder.
        is_server = urlsplit(uri).scheme in ("http", "https", "databricks")
        place = None if is_server else (self.workdir / "mlartifacts").resolve().as_uri()
        tags = {**KIND, "mlflow.note.content": about}
        return str(self.client.create_experiment(name, artifact_location=place, tags=tags))

    def _search(self, condition: str) -> Iterator[Run]:
        token: str | None = None
        while True:
            page = self.client.search_runs([self.id], condition, max_results=1000, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def send(self, record: Record) -> bool:
        """Make the store hold `record`; False when it does already. A run in another state is replaced."""
        folder = RunFolder(self.workdir, record.id)
        content = _content_hash(record, folder)
        earlier = self.runs[record.id, record.row]
        if [hash_ for hash_, _ in earlier] == [content]:
            return False
        for _, run_id in earlier:
            delete_models(self.client, run_id)
            self.client.delete_run(run_id)
        new = _seed_run(record, folder, self._parent(record))
        run = self.client.create_run(self.id, start_time=new.start, run_name=new.name, tags=new.tags)
        run_id = run.info.run_id
        self._log(run_id, new.params, new.metrics, new.end)
        for file in new.files:
            self.client.log_artifact(run_id, str(file))
        self.client.log_inputs(run_id, inputs_of(record))
        if folder.model.is_dir():
            log_model(self.client, self.id, run_id, record, folder.model, new.end)
        self.client.set_terminated(run_id, new.status, end_time=new.end)
        self.client.set_tag(run_id, CONTENT, content)  # last: a run without it was interrupted
        self.runs[record.id, record.row] = [(content, run_id)]
        return True

    def send_all(self, records: Iterable[Record]) -> int:
        """As `send` for each; returns how many the store lacked. New rows of a database are written whole, at once."""
        database, sent = database_of(self.client), 0
        rows = defaultdict[str, list[Record]](list)
        for record in records:
            key = _row_key(record)
            if database is None or key in self.parents or self.runs.get((record.id, record.row)):
                sent += self.send(record)
            else:
                rows[key].append(record)
        for key, seeds in rows.items():
            if database is None or key in self.parents:  # `send` has made it meanwhile
                sent += sum(self.send(record) for record in seeds)
                continue
            parent = NewRun(
                name=row_name(seeds[0]),
                tags=self._row_tags(key),
                params=_texts(row_params(seeds[0])),
                metrics={},
                status="FAILED",
                start=_milliseconds(seeds[0].started),
                end=0,
            )
            children = []
            for record in {record.id: record for record in seeds}.values():
                folder = RunFolder(self.workdir, record.id)
                child, content = _seed_run(record, folder, parent.id), _content_hash(record, folder)
                child.tags[CONTENT] = content
                children.append(child)
                self.runs[record.id, record.row] = [(content, child.id)]
            done = [last(child.metrics) for child in children if child.tags["harness.status"] == "finished"]
            parent.metrics, parent.end = means(done), max(child.end for child in children)
            parent.status = "FINISHED" if done else "FAILED"
            write(database, self.id, [parent, *children])
            self.parents[key] = parent.id
            self.described.add(parent.id)
            self._describe(parent.id, seeds[0], len(done), len(children))
            for record, child in zip({record.id: record for record in seeds}.values(), children, strict=True):
                self.client.log_inputs(child.id, inputs_of(record))
                model = RunFolder(self.workdir, record.id).model
                if model.is_dir():
                    log_model(self.client, self.id, child.id, record, model, child.end)
            sent += len(children)
        return sent

    def _parent(self, record: Record) -> str:
        """The run of the table row, made with its first seed. Another config under the same label is another row."""
        key = _row_key(record)
        if key not in self.parents:
            run = self.client.create_run(
                self.id,
                start_time=_milliseconds(record.started),
                run_name=row_name(record),
                tags=self._row_tags(key),
            )
            self.parents[key] = run.info.run_id
        parent = self.parents[key]
        self.rows[parent] = record
        if parent not in self.described:
            # Again where it has them: an interruption may have come before.
            self._log(parent, _texts(row_params(record)))
            self.described.add(parent)
        # Rows come one after the other: with the first run of the next one a row is complete, as far as one can know.
        for complete in self.open - {parent}:
            self._end(complete)
        self.open.add(parent)
        return parent

    def _row_tags(self, key: str) -> dict[str, str]:
        return {
            "harness.parent": key,
            "harness.layout": str(LAYOUT),
            **({"mlflow.parentRunId": self.root} if self.root else {}),
        }

    def _log(
        self,
        run_id: str,
        params: Mapping[str, str],
        values: Mapping[tuple[str, int], float] | None = None,
        milliseconds: int = 0,
    ) -> None:
        """Send parameters and numbers in as few requests as MLflow allows."""
        from mlflow.entities import Metric, Param

        entries = [Param(name, value) for name, value in params.items()]
        points = [Metric(name, value, milliseconds, step) for (name, step), value in (values or {}).items()]
        batches = zip_longest(_parts(points, METRICS_A_BATCH), _parts(entries, PARAMS_A_BATCH), fillvalue=())
        for metrics, some in batches:
            self.client.log_batch(run_id, metrics=metrics, params=some)

    def _end(self, parent: str) -> None:
        """End the run of a row."""
        children = list(self._search(f"tags.`mlflow.parentRunId` = '{parent}'"))
        done = [run.data.metrics for run in children if run.data.tags.get("harness.status") == "finished"]
        self._log(parent, {}, means(done), _milliseconds(""))
        if parent in self.rows:
            self._describe(parent, self.rows[parent], len(done), len(children))
        end = max((run.info.end_time for run in children if run.info.end_time), default=None)
        self.client.set_terminated(parent, "FINISHED" if done else "FAILED", end_time=end)
        self.open.discard(parent)

    def _describe(self, parent: str, record: Record, done: int, seeds: int) -> None:
        """Say of a row what it is, and which text it read."""
        said = f"{description(record)}\n\nseeds: {done} of {seeds} finished"
        self.client.set_tag(parent, "mlflow.note.content", said)
        self.client.log_inputs(parent, inputs_of(record))

    def attach(self, report: Path) -> None:
        """Put a report among the artifacts of every row that does not have it just so."""
        digest = hashlib.sha256(report.read_bytes()).hexdigest()[:16]
        for run in self._search("tags.`harness.parent` != ''"):
            ours = run.info.run_id in self.parents.values()
            if ours and run.data.tags.get(REPORT) != digest:
                self.client.log_artifact(run.info.run_id, str(report), "report")
                self.client.set_tag(run.info.run_id, REPORT, digest)

    def close(self) -> None:
        for parent in sorted(self.open):
            self._end(parent)
        for parent in self.earlier:  # whose seeds have been sent anew, below another
            if not list(self._search(f"tags.`mlflow.parentRunId` = '{parent}'")):
                self.client.delete_run(parent)
        if self.root is not None:
            self.client.set_terminated(self.root, "FINISHED")


def _row_key(record: Record) -> str:
    """What tells table rows apart. Another config under the same label is another row."""
    return hashlib.sha256(repr(sorted(row_params(record).items())).encode()).hexdigest()[:16]


def _seed_run(record: Record, folder: RunFolder, parent: str) -> NewRun:
    """What the store shows of one record, but its content hash."""
    tags = {
        "mlflow.parentRunId": parent,
        "mlflow.source.name": record.command,
        "mlflow.source.type": "LOCAL",
        "mlflow.note.content": "\n\n".join(filter(None, (markdown_text(record.reason), description(record)))),
        "harness.id": record.id,
        "harness.row": record.row,
        "harness.status": record.status,
        "harness.protocols": " ".join(sorted({score.protocol for score in record.scores})),
    }
    files = (
        folder.record_file,
        folder.curves_file,
        folder.pairs_file,
        folder.outcomes_file,  # the record holds its hash
        folder.figures_file,
    )
    return NewRun(
        name=f"{record.row} seed {seed_text(record.drawn)}",
        tags={name: value for name, value in tags.items() if value},
        params=_texts({**row_params(record), **seed_params(record)}),
        metrics=numbers(record, folder),
        status="FAILED" if record.status == "failed" else "FINISHED",
        start=_milliseconds(record.started),
        end=_milliseconds(record.finished),
        files=[file for file in files if file.exists()],
    )


def _texts(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value)[:LONGEST_PARAM] for name, value in params.items()}


def _parts(values: list[Any], size: int) -> Iterator[list[Any]]:
    for i in range(0, len(values), size):
        yield values[i : i + size]


def _content_hash(record: Record, folder: RunFolder) -> str:
    digest = hashlib.sha256(f"{LAYOUT}\n{record.model_dump_json()}\n".encode())
    for file in (folder.curves_file, folder.pairs_file, folder.figures_file):
        digest.update(hashlib.sha256(file.read_bytes() if file.exists() else b"").digest())
    return digest.hexdigest()


def _milliseconds(moment: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time; now, where there is none."""
    return int((datetime.fromisoformat(moment).timestamp() if moment else time.time()) * 1000)

"""One run: fit, save, evaluate, record. Idempotent, and resumable after a kill at any moment."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import registry
from harness.errors import HarnessError, InputError, RunError, StopRequested, TrainingStopped
from harness.evaluation.inference_cost import measure_inference
from harness.evaluation.scoring import each, evaluate, merge_results, record_missing, texts_of
from harness.evaluation.vector_cache import EmbeddingCache, StoredVectors, folder_hash
from harness.files.atomic import settle, storage_fault
from harness.files.locks import run_lock
from harness.files.printable import markdown_text, redacted
from harness.machine import environment, shared_code
from harness.machine.energy import EnergyMeter
from harness.machine.environment import pick_devices
from harness.machine.memory import ADVICE, is_out_of_memory
from harness.machine.process_state import preserve_process_state
from harness.machine.progress import watch_encoding
from harness.method import FitContext, FitReport, Method, own_line
from harness.results.code import Code, describe_change, method_code, task_code
from harness.results.model_card import describe_base, write_card
from harness.results.record import Record, is_amount
from harness.results.spec import NUMERICS, RunSpec, scoring_version
from harness.results.store import MODEL, RunFolder, join_examples, remove
from harness.runs.conditions import CorpusSettings, DevSettings
from harness.runs.due import find_due, find_finished
from harness.runs.inputs import (
    find_task,
    fingerprint_of_start,
    is_readable,
    load_dev,
    load_text,
    open_planned_files,
)
from harness.runs.merge import merge_examples, merge_records
from harness.runs.plan import Job
from harness.seeds import seed_text
from harness.sources import Corpus
from harness.tasks.base import Task, TaskResult, task_key
from harness.tasks.own.data import TaskFile
from harness.tasks.sts import DevSet

log = logging.getLogger(__name__)

_AGAIN = "give the same command again; --executor processes has a new process after such a run"

# Sentences of a task, in a rehearsal: a map of no more of them than a small model has dimensions
# cannot be fitted.
_FEW_TO_FIT = 512

_FIT = ("train_", "dev_", "corpus_sentences_seen")  # how the costs of training begin


def execute(job: Job, workdir: Path, **hooks: Any) -> Record:
    """Bring one run to its record and return it; a run that is finished already costs nothing.

    A method that collapses, diverges or fails gives a record with that status and the reason. Only
    a file system that refuses, the user's interrupt and `StopRequested` end the comparison; the
    next call resumes.

    Args:
        hooks: `progress`, `on_dev` and `stop`, as in `Execution`.
    """
    own = job.runs_plugin
    with run_lock(RunFolder(workdir, job.id).path):
        with preserve_process_state():
            open_planned_files(job.files)
            # Another process may have finished it in the meantime.
            done = find_finished(job, workdir)
            if done is not None:
                return done
            begins = (own or registry.uses_plugins()) and shared_code.remember()
            if own or begins:
                change = shared_code.find_change("code that this process imported")
            else:  # what it uses is checked at its end
                change = shared_code.get_change()
            if not own:
                change = change or shared_code.change_at_import()
            if change:
                return _record_failure(job, workdir, f"{change}; {_AGAIN}")
            record = Execution(job, workdir, **hooks).run()
        if own:
            change = shared_code.find_change(f'"{job.label}"')
            if change:
                log.warning("%s; later runs of this process are not recorded: %s", change, _AGAIN)
        return record


def record_failure(job: Job, workdir: Path, reason: str) -> Record:
    """The record of a job that no worker came to the end of; a finished record with earlier scores
    does not change.
    """
    with run_lock(RunFolder(workdir, job.id).path):
        return _record_failure(job, workdir, reason)


def _record_failure(job: Job, workdir: Path, reason: str) -> Record:
    folder = RunFolder(workdir, job.id)
    known = folder.read_if_sound()
    if known is not None and known.status == "finished":
        log.warning("run %s: not scored on further tasks: %s", job.id, reason)
        return known
    record = Execution(job, workdir).make_record("failed", reason)
    folder.write(
        record.model_copy(update={"files": folder.weight_hashes() if known is not None else {}})
    )
    return record


@dataclass
class _Outcome:
    """The outcome of an execution so far, of which the record is made.

    Attributes:
        earlier: the record of the weights that are saved.
        tasks: those that are due.
        method: as far as it came: new, or fitted.
        architecture: of its forward pass, as `measure_inference` returns it.
        details: what is written beside the record: the traceback, figures, errors of tasks.
    """

    earlier: Record | None
    tasks: list[Task]
    method: Method | None = None
    result: TaskResult = field(default_factory=TaskResult)
    status: str = "finished"
    reason: str = ""
    architecture: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def was_finished(self) -> bool:
        """True if the run had finished before, so that only scores are added."""
        return self.earlier is not None and self.earlier.status == "finished"


@dataclass
class Execution:
    """The execution of a job in a run folder whose lock is held.

    Attributes:
        progress: called as `progress(step, steps, text)`; steps is 0 while texts are encoded or
            scored.
        on_dev: as in `FitContext`.
        stop: as in `FitContext`; also called before texts are encoded.
    """

    job: Job
    workdir: Path
    progress: Callable[[int, int, str], None] | None = None
    on_dev: Callable[[int, float], None] | None = None
    stop: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        self.spec = self.job.spec
        self.folder = RunFolder(self.workdir, self.job.id)
        self.devices = pick_devices(self.job.device)
        self.device = self.devices[0]  # on which it is trained
        self.started = environment.now()
        self.encoding = EnergyMeter(self.device)
        self.must_stop = False  # a stop was requested

    def run(self) -> Record:
        self.folder.remove_leftovers()
        if damage := self.folder.rename_damaged_record():
            log.warning("%s: renamed, and the run is scored again", damage)
        earlier = self._usable_record()
        outcome = _Outcome(earlier, find_due(earlier, self.job))
        environment.reset_peak_memory(self.device)
        try:
            self._train_and_score(outcome)
        except TrainingStopped as stop:
            outcome.status = stop.status
            outcome.reason = stop.reason
        except BaseException as raised:  # of any kind that a method raises
            if self._is_request(raised):
                raise
            self._note_fault(outcome, raised)
        return self._store(outcome)

    def _train_and_score(self, outcome: _Outcome) -> None:
        """Load the method or train it, and score it on the tasks that are due."""
        if self.spec.missing:
            # The text of an error of the plan, which names its file and key itself.
            raise InputError(self.spec.missing)
        check_code(self.job)
        # Its report is recorded, also where the training is stopped.
        outcome.method = make_method(self.spec)
        method, outcome.earlier = self._load_or_train(outcome.method, outcome.earlier)
        outcome.method = method
        outcome.tasks = find_due(outcome.earlier, self.job)
        method.set_dtype(_dtype_of(self.spec))
        result = self._evaluate(method, outcome.tasks)
        outcome.result = result
        self._check_imports()
        result.cost |= self.encoding.costs("encode")
        outcome.architecture = self._measure(method, result)

    def _note_fault(self, outcome: _Outcome, raised: BaseException) -> None:
        """Note why a run failed; one that had finished earlier only lacks the scores that are due.

        Raises:
            OSError: the file system refuses, or another fault of the place where results are kept.
        """
        error = _readable(raised)
        if (fault := storage_fault(error, self.workdir)) is not None:
            raise fault from (error if fault is not error else None)
        outcome.details["traceback"] = redacted(traceback.format_exc())
        if not outcome.was_finished:
            line = redacted(str(error)).partition("\n")[0]
            if isinstance(error, HarnessError):
                kind = ""
            else:
                kind = f"{type(error).__name__}: "
            if outcome.method:
                place = own_line(error, type(outcome.method))
            else:
                place = ""
            outcome.status = "failed"
            outcome.reason = f"{kind}{line}{place}"
            if is_out_of_memory(error):
                outcome.reason += f"; {ADVICE}"
            return
        if isinstance(error, Exception):
            cause = error
        else:
            cause = RuntimeError(repr(error))
        unread: dict[str, Exception] = {}
        unscored: dict[str, Exception] = {}
        for task in outcome.tasks:
            if is_readable(task_key(task), self.spec.most_sentences):
                unscored[task.name] = cause
            else:
                unread[task.name] = cause
        record_missing(outcome.result, unread, unscored)

    def _store(self, outcome: _Outcome) -> Record:
        """Write the record of a run that ended, and remove what is not needed any more."""
        record = self.make_record(
            outcome.status,
            outcome.reason,
            outcome.method,
            outcome.result,
            outcome.tasks,
            outcome.architecture,
        )
        if outcome.status == "finished":
            record = self._merge(outcome, record)
            if self.spec.trained:
                write_card(self.folder.model, record)
        elif outcome.details:
            self.folder.write_details(outcome.details)
        hashes = {**self.folder.result_hashes(), **self.folder.weight_hashes()}
        if outcome.earlier is not None and outcome.was_finished:
            # The earlier record vouches for what this evaluation did not write.
            for name, digest in outcome.earlier.files.items():
                if name.startswith((MODEL, self.folder.curves_file.name)):
                    hashes[name] = digest
        record = record.model_copy(update={"files": hashes})
        self.folder.write(record)
        if outcome.status != "failed":  # a failed run is tried again, from its checkpoint
            remove(self.folder.checkpoint)
        if outcome.status == "finished":
            return self._remove_unneeded(record, outcome)
        return record

    def _measure(self, method: Method, result: TaskResult) -> str:
        """Count parameters and measure inference, where these are known here; the name of the
        architecture.
        """
        if method.has_weights:
            result.cost["parameters"] = float(method.num_parameters())
        if method.transductive or not method.timed:
            return ""
        return measure_inference(method, self.workdir, self.device)

    def _watch(self, done: int, total: int) -> None:
        """Show how many sentences are encoded.

        Raises:
            StopRequested: a stop is requested.
        """
        if self._ask_stop():
            raise StopRequested
        if self.progress is not None:
            if done:
                part = f"{min(done, total):,} of "
            else:
                part = ""
            self.progress(0, 0, f"encoding {part}{total:,} sentences")

    def _is_request(self, raised: BaseException) -> bool:
        """True if the user requested it; a plugin may raise `StopRequested` without a request."""
        is_stop = isinstance(raised, StopRequested) and self.must_stop
        return is_stop or isinstance(raised, KeyboardInterrupt)

    def _ask_stop(self) -> bool:
        """True if a stop is requested."""
        if self.stop is not None and not self.must_stop:
            self.must_stop = self.stop()
        return self.must_stop

    def _remove_unneeded(self, record: Record, outcome: _Outcome) -> Record:
        """Remove weights and vectors that the job does not keep; the record afterwards.

        Further scores train the same weights again. The weights of a run that had finished with
        them stay, as another comparison keeps them.
        """
        is_saved = any(name.startswith(MODEL) for name in record.files)
        earlier = outcome.earlier
        kept = earlier is not None and outcome.was_finished and not earlier.removed
        if "vectors" not in self.job.keep:
            remove(stored_vectors(self.spec, self.workdir, self.device).folder)
        if "weights" in self.job.keep or not is_saved or kept:
            return record
        return self.folder.remove_weights(record)

    def _usable_record(self) -> Record | None:
        """The record of the weights that are saved; None where the run has to be trained or scored
        from scratch.
        """
        record = self.folder.read_if_sound()
        if record is None or record.status not in ("trained", "finished", "failed"):
            return None
        if self.spec.trained and not self.folder.has_weights(record):
            return None
        if record.status == "failed" or self.folder.is_damaged(record):
            if self.spec.trained:
                return record.model_copy(update={"status": "trained"})
            return None
        return record

    def _load_or_train(
        self,
        method: Method,
        earlier: Record | None,
    ) -> tuple[Method, Record | None]:
        """The fitted method and the record that belongs to its weights; trained now unless they are
        saved.

        A trained method is always evaluated as it was saved, so a repeated evaluation sees the same
        weights.
        """
        if earlier is not None and self.spec.trained:
            method = type(method).load(self.folder.model)
            training = dict(earlier.training)
            training.pop("notes", None)
            costs = {key: value for key, value in earlier.cost.items() if key.startswith(_FIT)}
            method.fit_report = FitReport(training, costs)
            return method, earlier
        before = self.folder.read_if_sound()
        remove(self.folder.model)
        self._fit(method)
        if not self.spec.trained:
            return method, earlier
        self._check_imports()
        start = describe_base(self.spec.base_model)
        about = markdown_text(f"from {start}; seed {seed_text(self.spec.random_seed)}")
        method.save(
            self.folder.model,
            card=f"{markdown_text(self.job.row)}: trained by `{method.name}` {about}.\n",
        )
        settle(self.folder.model)
        weights = self.folder.weight_hashes()
        was_finished = before is not None and before.status == "finished"
        if before is not None and was_finished and before.removed == weights:
            # Its scores hold.
            trained = before.model_copy(update={"files": {**before.files, **weights}})
        else:
            trained = self.make_record("trained", "", method)
            trained = trained.model_copy(update={"files": weights})
        self.folder.write(trained)  # only now may the weights count as saved
        loaded = type(method).load(self.folder.model)
        loaded.fit_report = method.fit_report
        return loaded, trained

    def _check_imports(self) -> None:
        """Check the code again: modules may have been imported, and data files read, meanwhile.

        Raises:
            InputError: it is not the code of the plan; what it computed is removed.
            RunError: a thread of an earlier run has changed what this run uses; the same.
        """
        try:
            check_code(self.job)
            if not self.job.runs_plugin:
                change = shared_code.find_change("an earlier run")
                if change:
                    raise RunError(f"{change}; {_AGAIN}")
        except (InputError, RunError):
            remove(self.folder.checkpoint)
            if self.folder.model.exists() or not self.spec.trained:
                remove(stored_vectors(self.spec, self.workdir, self.device).folder)
            raise

    def _fit(self, method: Method) -> None:
        spec = self.spec
        check_start(spec, method)
        context = FitContext(
            seed=spec.random_seed,
            dev=read_dev(spec),
            device=self.device,
            precision=spec.precision or "fp32",
            folder=self.folder.path,
            max_steps=spec.max_steps,
            progress=self.progress,
            on_dev=self.on_dev,
            stop=None if self.stop is None else self._ask_stop,
        )
        started = time.perf_counter()
        worked = time.process_time()
        with EnergyMeter(self.device) as energy:
            method.fit(read_text(self.spec), context)
        if self.spec.trained:
            cost = method.fit_report.cost
            wall = time.perf_counter() - started
            cost.setdefault("train_seconds", wall)
            resumed = wall < cost["train_seconds"]
            if not resumed:  # of a resumed fit, processor time and energy are not known
                cost.setdefault("train_cpu_seconds", time.process_time() - worked)
                cost |= energy.costs("train")
            if self.device.startswith("cuda"):
                # Reserved for that long, busy or not, as clusters count it.
                cost["train_gpu_seconds"] = cost["train_seconds"]

    def _evaluate(self, method: Method, tasks: list[Task]) -> TaskResult:
        from harness.encoder.several_devices import encode_texts  # with it torch
        from harness.tasks.vectors import Origin

        def score(fitted: Method, tasks: list[Task], how: str, **settings: Any) -> TaskResult:
            def encode(texts: list[str]) -> Any:
                self._watch(0, len(texts))
                with self.encoding, watch_encoding(self._watch):
                    return encode_texts(fitted, texts, self.devices)

            return evaluate(
                encode,
                tasks,
                pooling=how,
                model=fitted,
                device=self.device,
                most=most,
                few=few,
                **settings,
            )

        pooling = method.config.pooling
        most = self.spec.most_sentences
        few = self.spec.encoded_sentences
        if not method.transductive:
            stored = stored_vectors(self.spec, self.workdir, self.device)
            origin = Origin(
                f"harness/{method.name}",
                stored.name,
                results=self.workdir / "cache" / "mteb" if few is None else None,
            )
            return score(
                method,
                tasks,
                pooling,
                cache=stored,
                origin=origin,
                prompts=method.prompts,
            )

        def texts_to_fit(texts: Sequence[str]) -> Sequence[str]:
            return texts if few is None else texts[: max(few, _FEW_TO_FIT)]

        def alone(task: Task) -> TaskResult:
            return score(
                method.for_task(texts_to_fit(task.texts())),
                [task],
                f"{pooling}, fitted to the task's text",
            )

        readable, unread = each(tasks, lambda task: texts_of(task, most))
        known = [task for task, _ in readable]
        parts, unscored = each(known, alone)
        result = merge_results([part for _, part in parts])
        record_missing(result, unread, unscored)
        return result

    def make_record(
        self,
        status: Any,
        reason: str,
        method: Method | None = None,
        result: TaskResult | None = None,
        tasks: Sequence[Task] = (),
        architecture: str = "",
    ) -> Record:
        """The present record of this execution."""
        spec = self.spec
        result = result or TaskResult()
        report = method.fit_report if method is not None else FitReport()
        dev_notes: list[str] = []
        with suppress(HarnessError):  # a run that could not read it says so as its reason
            dev = read_dev(spec)
            dev_notes = dev.notes if dev else []
        notes = [*report.training.get("notes", []), *dev_notes, *result.notes]
        precision = report.training.get("precision") or "fp32"
        peak = {"peak_memory_bytes": float(environment.peak_memory_bytes(self.device))}
        cost = {**report.cost, **result.cost, **peak}
        left_out = [name for name, value in cost.items() if not is_amount(value)]
        if left_out:
            notes.append(f"no amounts, so left out of the costs: {', '.join(left_out)}")
        codes = {task_key(task): task_code(task) for task in tasks}
        versions = {}
        for task in tasks:
            key = task_key(task)
            versions[key] = scoring_version(task, codes[key])
        training = dict(report.training)
        if notes:
            training["notes"] = notes
        return Record(
            id=spec.id,
            spec=spec,
            comparison=self.job.comparison,
            status=status,
            reason=reason,
            row=self.job.row,
            supervision=_new_method(spec).supervision,
            scores=result.scores,
            missing=result.missing,
            protocols=result.protocols,
            evaluation=versions,
            task_code={key: dict(code.files) for key, code in codes.items() if code.files},
            training=training,
            architecture=architecture,
            cost={name: value for name, value in cost.items() if name not in left_out},
            environment=environment.describe(self.device, precision),
            command=self.job.command,
            started=self.started,
            finished=environment.now(),
        )

    def _merge(self, outcome: _Outcome, record: Record) -> Record:
        """Store the examples and details of an evaluation with those of earlier ones; the complete
        record.
        """
        result = outcome.result
        details = outcome.details
        examples = join_examples(result.pairs, result.outcomes)
        before = dict[str, Any]()
        if outcome.earlier is not None and outcome.was_finished:
            record = merge_records(outcome.earlier, record, outcome.tasks)
            examples = merge_examples(self.folder.examples(), examples, outcome.tasks)
            before = self.folder.details()
        names = {task.name for task in outcome.tasks}
        for kind in ("figures", "errors", "artifacts"):
            merged = {}
            for name, value in before.get(kind, {}).items():
                if name not in names:
                    merged[name] = value
            merged |= getattr(result, kind)
            if merged:
                details[kind] = merged
        if examples is not None:
            self.folder.write_examples(examples)
        if details:
            self.folder.write_details(details)
        else:
            remove(self.folder.details_file)
        return record


def make_method(spec: RunSpec) -> Method:
    """The method of a specification, not fitted.

    Raises:
        InputError: no such method is installed, its code is not that of the specification, or its
            configuration is invalid.
    """
    _check_method(spec)
    return _new_method(spec)


def _new_method(spec: RunSpec) -> Method:
    kind: type[Method] = registry.load(registry.METHODS, spec.method)
    return kind(
        kind.Config.parse(spec.config, f'method "{spec.method}"'), base_model=spec.base_model
    )


def check_code(job: Job) -> None:
    """Compare the code that this process has imported with that of the plan.

    Raises:
        InputError: the code of the method or of a task is another.
    """
    _check_method(job.spec)
    for key, planned in job.scoring.items():
        present = task_code(find_task(key))
        _check_same(f'task "{key}"', planned, present)


def _check_method(spec: RunSpec) -> None:
    present = method_code(registry.load(registry.METHODS, spec.method))
    planned = Code(spec.version, spec.code)
    _check_same(f'method "{spec.method}"', planned, present)


def _check_same(what: str, planned: Code, present: Code) -> None:
    if planned.version != present.version:
        raise InputError(
            f"{describe_change(planned, present)} since the run was planned",
            file=what,
            remedy="give the same command again, or the class a `version` if it changes that itself",
        )


def check_start(spec: RunSpec, method: Method) -> None:
    """Compare what a method starts from with that of the plan.

    Raises:
        InputError: the base model, or something else that its configuration names, is another.
    """
    changed = []
    starts_here = spec.model not in ("", spec.base_model)  # else the method names what it reads
    if starts_here and fingerprint_of_start(spec.base_model) != spec.model:
        changed.append(f'the base model "{spec.base_model}"')
    present = method.inputs
    for name in sorted(present.keys() | spec.inputs.keys()):
        if present.get(name) != spec.inputs.get(name):
            changed.append(f'"{name}"')
    if changed:
        raise InputError(
            f"{', '.join(changed)}: changed since the run was planned",
            file=f'method "{spec.method}"',
            remedy="give the same command again",
        )


def read_text(spec: RunSpec) -> Corpus | None:
    """The training text of a specification.

    Raises:
        InputError: it is not available here, or has changed since it was planned.
    """
    if spec.corpus is None:
        return None
    corpus = load_text(
        CorpusSettings(**{k: v for k, v in spec.corpus.items() if k in CorpusSettings.model_fields})
    )
    if corpus.sha256 != spec.corpus["sha256"]:
        raise InputError(
            "its text is not the one that was planned",
            file=corpus.uri,
            remedy="give the same command again",
        )
    return corpus


def read_dev(spec: RunSpec) -> DevSet | None:
    """The selection set of a specification; None where it has none.

    Raises:
        InputError: it is not available here, or has changed since it was planned.
    """
    if spec.dev is None:
        return None
    settings: dict[str, Any] = {"pairs": spec.dev.get("pairs")}
    if "file" in spec.dev:
        file = TaskFile(**spec.dev["file"])
        place = str(file.path)
        settings |= {"task": file.task, "columns": file.columns, "share": file.share}
    else:
        place = spec.dev["task"]
        settings |= {"task": place, "source": spec.dev["source"]}
    dev = load_dev(DevSettings(**settings))
    if dev.sha256 != spec.dev["sha256"]:
        message = "the dev set has changed since the comparison was planned"
        raise InputError(message, file=place, remedy="give the same command again")
    return dev


def stored_vectors(spec: RunSpec, workdir: Path, device: str) -> StoredVectors:
    """The cached vectors of a run, whose weights are saved."""
    if spec.trained:
        key = folder_hash(RunFolder(workdir, spec.id).model)
    else:
        key = spec.id
    code = f"{NUMERICS}.{spec.version}"
    where = environment.device_name(device)
    cache = EmbeddingCache(workdir / "cache" / "embeddings")
    if _dtype_of(spec) == "fp32":
        apart = {}
    else:
        apart = {"dtype": _dtype_of(spec)}
    pooling = str(spec.config.get("pooling"))
    return cache.of(key, pooling, code=code, device=where, **apart)


def _dtype_of(spec: RunSpec) -> str:
    """Return what a run encodes in."""
    return str(spec.config.get("dtype", "fp32"))


def _readable(error: BaseException) -> BaseException:
    """The error, or one that names it where its message itself fails."""
    try:
        str(error)
    except Exception:
        return RuntimeError(f"{type(error).__name__}, whose message cannot be read")
    return error

# ruff: noqa: E501 - literals of invented records read best one field a line
"""Invented records, pairs and curves of a comparison, for tests and for looking at reports. Nothing
in them is real.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from harness.results.comparison import ComparisonFile
from harness.results.record import Missing, Record, Score, Status, Supervision
from harness.results.spec import RunSpec
from harness.results.store import RunFolder, join_examples, write_comparison_file

STS = {
    "STS12": 3108,
    "STS13": 1500,
    "STS14": 3750,
    "STS15": 3000,
    "STS16": 1186,
    "STS-B": 1379,
    "SICK-R": 4927,
}
EMBEDDED = {"Embedded-STS-natural": 240, "Embedded-STS-contrast": 300}


def spearman(a: Any, b: Any) -> float:
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


class Invented:
    """A work directory to which runs are added one by one."""

    def __init__(self, workdir: Path, comparison: str = "invented", scale: float = 1.0) -> None:
        self.workdir = workdir
        self.comparison = comparison
        self.scale = scale
        self.count = 0
        generator = np.random.default_rng(5)
        self.gold: dict[str, Any] = {}
        for task, n in (STS | EMBEDDED).items():
            count = max(30, int(n * scale))
            self.gold[task] = np.round(generator.uniform(0, 5, count) * 5) / 5
        # What every model finds easy or hard about a pair: makes models correlate, as real ones do.
        self.common = {task: generator.normal(size=len(gold)) for task, gold in self.gold.items()}

    def add(
        self,
        row: str,
        seed: int = 1,
        *,
        noise: float = 1.5,
        status: Status = "finished",
        reason: str = "",
        base: str = "embedded:mini-bert",
        supervision: Supervision = "unsupervised",
        pooling: str | None = "mean",
        tasks: tuple[str, ...] = (*STS, *EMBEDDED),
        source: str = "senteval",
        curves: bool = True,
        data: str = "d",
        finished: str = "",
        config: dict[str, Any] | None = None,
        geometry: bool = True,
        spec: dict[str, Any] | None = None,
    ) -> Record:
        import pandas as pd

        self.count += 1
        generator = np.random.default_rng(
            [seed if supervision == "unsupervised" else 0, len(row), int(noise * 1000)]
        )
        scores: list[Score] = []
        frames = []
        protocols = {}
        for task in tasks if status == "finished" else ():
            gold = self.gold[task]
            cosine = self._cosines(task, noise, generator)
            suite, where = ("sts", source) if task in STS else ("embedded", "embedded")
            comparable = f"{data}{task}"[:12]
            protocols[comparable] = {
                "task": task,
                "source": where,
                "data": "0123abcd" * 8,
                "similarity": "cosine",
                "version": "v1",
            }
            pearson = float(np.corrcoef(gold, cosine)[0, 1])
            for metric, value in (("spearman", spearman(gold, cosine)), ("pearson", pearson)):
                scores.append(
                    Score(
                        task=task,
                        suite=suite,
                        source=where,
                        split="test",
                        metric=metric,
                        aggregation="all",
                        value=value,
                        n=len(gold),
                        protocol=f"p{task}",
                        comparable=comparable,
                    )
                )
            frames.append(
                pd.DataFrame(
                    {
                        "task": task,
                        "source": where,
                        "split": "test",
                        "subset": "x",
                        "pair": np.arange(len(gold)),
                        "gold": gold,
                        "score": cosine,
                        "text1": 2 * np.arange(len(gold)),
                        "text2": 2 * np.arange(len(gold)) + 1,
                    }
                )
            )
        if status == "finished" and geometry:
            scores += _geometry_scores(noise, generator)

        trained = supervision == "unsupervised"
        run_spec = RunSpec(
            method=row.split()[0].lower(),
            version=f"{self.comparison} {self.count}",  # so that no two runs are one
            config={
                **({"pooling": pooling} if pooling else {}),
                "learning_rate": 3e-5,
                "seed": seed,
                **(config or {}),
            },
            base_model=base,
            model=base,
            seed=seed,
            deterministic=not trained,
            corpus={
                "uri": "embedded:sentences",
                "kind": "sentences",
                "count": 2100,
                "sha256": "ab" * 32,
            }
            if trained
            else None,
            dev={
                "task": "Embedded-STS-natural",
                "source": "embedded",
                "split": "dev",
                "sha256": "cd" * 32,
            }
            if trained
            else None,
            **(spec or {}),
        )
        record = Record(
            id=run_spec.id,
            spec=run_spec,
            comparison=self.comparison,
            status=status,
            reason=reason,
            row=row,
            supervision=supervision,
            scores=scores,
            protocols=protocols,
            training={"steps": 250, "best_step": 200, "best_dev": 0.61, "initial_dev": 0.52}
            if trained
            else {},
            cost={
                "train_seconds": 40.0 + seed,
                "encode_seconds": 3.2,
                "evaluate_seconds": 0.5,
                "sentences_per_second": 1500.0 + 11 * seed,
                "peak_memory_bytes": 9e8,
                "parameters": 4.4e6,
                "corpus_sentences_seen": 2100.0 if trained else 0.0,
            },
            environment={
                "python": "3.11.9",
                "platform": "Linux",
                "device": "cpu",
                "precision": "fp32",
                "versions": {"torch": "2.6.0", "numpy": "2.1"},
            },
            command=f"harness train {row.split()[0].lower()} --seed {seed} --base-model {base} --set learning_rate=3e-5",
            started="2025-01-01T10:00:00Z",
            finished=finished or f"2025-01-01T11:{self.count % 60:02d}:00Z",
        )
        folder = RunFolder(self.workdir, record.id)
        folder.write(record)
        if frames:
            examples = join_examples(pd.concat(frames, ignore_index=True), None)
            assert examples is not None
            folder.write_examples(examples)
        if trained and curves:
            lines = [json.dumps(line) + "\n" for line in _curve_lines(noise, generator)]
            folder.curves_file.write_text("".join(lines))
        return record

    def _cosines(self, task: str, noise: float, generator: np.random.Generator) -> Any:
        """Draw the cosines of a task's pairs, with seed noise in two parts: a shared shift of quality
        and the model's own view of each pair.
        """
        gold = self.gold[task]
        level = noise * (1 + 0.03 * generator.normal())
        own = generator.normal(size=len(gold))
        return gold / 5 + level * (0.35 * self.common[task] + 0.25 * own)

    def extend(
        self,
        record: Record,
        scores: list[Score],
        *,
        missing: dict[str, str] | None = None,
        protocols: dict[str, dict[str, Any]] | None = None,
        figures: dict[str, dict[str, Any]] | None = None,
        cost: dict[str, float] | None = None,
    ) -> Record:
        """Add to what a run has on disk."""
        more = record.model_copy(
            update={
                "scores": [*record.scores, *scores],
                "missing": record.missing
                | {task: Missing("data", why) for task, why in (missing or {}).items()},
                "protocols": {**record.protocols, **(protocols or {})},
                "cost": {**record.cost, **(cost or {})},
            }
        )
        folder = RunFolder(self.workdir, record.id)
        folder.write(more)
        if figures is not None:
            folder.write_details({"figures": figures})
        return more


def _geometry_scores(noise: float, generator: np.random.Generator) -> list[Score]:
    values = {
        "alignment": 0.2 + 0.25 / noise,
        "uniformity": -1 - 2 / (0.5 + noise),
        "effective_rank": 80 / noise,
        "mean_cosine": noise / 8,
        "std": 1 - noise / 8,
    }
    scores: list[Score] = []
    for metric, value in values.items():
        made = Score(
            task="geometry:Embedded-STS-natural",
            suite="geometry",
            source="embedded",
            split="all",
            metric=metric,
            aggregation="",
            value=value + 0.01 * generator.normal(),
            n=90 if metric == "alignment" else 480,
            protocol="g",
            comparable=f"g{metric}",
        )
        scores.append(made)
    return scores


def _curve_lines(noise: float, generator: np.random.Generator) -> list[dict[str, Any]]:
    """Draw a training curve of 250 steps, with a dev score every 50."""
    lines: list[dict[str, Any]] = []
    for step in range(0, 251, 10):
        fall = float(np.exp(-step / 80))
        lines.append(
            {
                "step": step,
                "kind": "train",
                "loss": 1 + 3 * fall + 0.1 * generator.normal(),
                "invariance": fall,
                "redundancy": 1 - fall,
                "lr": 3e-5,
            }
        )
        if step % 50 == 0:
            level = 0.65 - 0.13 * fall - 0.05 * noise
            lines.append(
                {
                    "step": step,
                    "kind": "dev",
                    "spearman": level + 0.01 * generator.normal(),
                    "std": 0.9,
                    "effective_rank": 60 - 20 * fall,
                }
            )
    return lines


def score(
    task: str,
    suite: str,
    source: str,
    metric: str,
    value: float,
    *,
    aggregation: str = "",
    n: int = 100,
    split: str = "test",
    comparable: str = "",
) -> Score:
    """Make a score; one protocol for each task and metric where none is given."""
    comparable = comparable or f"{task}/{metric}"
    return Score(
        task=task,
        suite=suite,
        source=source,
        split=split,
        metric=metric,
        aggregation=aggregation,
        value=value,
        n=n,
        protocol=comparable,
        comparable=comparable,
    )


def write_comparison(
    workdir: Path,
    records: Iterable[Record],
    runs: dict[str, dict[str, Any]] | None = None,
    name: str = "invented",
    **more: Any,
) -> None:
    """Write the file of a comparison of these records.

    Args:
        runs: row -> further keys of its runs.
        more: further keys of the file.
    """
    records = list(records)
    keys = {s.task_key for r in records for s in r.scores} | {
        f"senteval:{task}" for r in records for task in r.missing
    }
    own = []
    for r in records:
        further = (runs or {}).get(r.row, {})
        run = {"id": r.id, "row": r.row, "base_model": r.base_model, "seed": r.seed, **further}
        own.append(run)
    content = {"name": name, "tasks": sorted(keys), "runs": own, **more}
    write_comparison_file(workdir, ComparisonFile.model_validate(content))


def full(workdir: Path, scale: float = 1.0, seeds: tuple[int, ...] = (1, 2, 3)) -> Invented:
    """Invent one comparison with everything that a report has to cope with."""
    made = Invented(workdir, scale=scale)
    for label, noise, pooling in (
        ("mean", 1.3, "mean"),
        ("cls", 2.1, "cls"),
        ("first_last_avg", 1.25, "first_last_avg"),
    ):
        made.add(label, 0, noise=noise, supervision="untrained", pooling=pooling)
    made.add("random", 0, noise=40, supervision="untrained", pooling=None)
    made.add("whitening", 0, noise=1.1, supervision="transductive")
    for seed in seeds:
        made.add("SimCSE", seed, noise=0.98, pooling="cls")
        made.add("SimCSE (paper)", seed, noise=1.0, pooling="cls")
        made.add("SCD", seed, noise=1.27)
        made.add(
            "Barlow Twins",
            seed,
            noise=1.5,
            status="diverged" if seed == 3 else "finished",
            reason="loss is NaN at step 120" if seed == 3 else "",
        )
        made.add(
            "SCD, L_C only",
            seed,
            noise=9,
            status="collapsed",
            reason="std of the embeddings 0.0003 below 0.01 at step 50",
        )
        made.add(
            "SCD, L_S only",
            seed,
            noise=1.6,
            tasks=("STS12", "STS13", "STS-B", "Embedded-STS-natural"),
        )
    made.add(
        "all-MiniLM-L6-v2",
        0,
        noise=0.5,
        supervision="supervised",
        base="sentence-transformers/all-MiniLM-L6-v2",
    )
    return made

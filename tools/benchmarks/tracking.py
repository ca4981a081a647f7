"""Shows processor milliseconds of `harness track sync` a run, beside the least that MLflow's own
client takes for the same parameters and numbers: `create_run`, one `log_batch`, `set_terminated`.

    python -m tools.benchmarks.tracking WORKDIR [--runs 40]

Some runs of a work directory are copied to a temporary folder, with new stores there.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from harness.mlflow_tracker import connect, own_settings, sqlite_uri
from harness.results.flat import curve_points, record_numbers, row_params
from harness.results.record import Record
from harness.results.store import RunFolder, read_records
from harness.tracking import default_uri, sync


def time_client(workdir: Path, records: list[Record]) -> float:
    """Return the processor seconds that MLflow's client takes to store records by itself."""
    from mlflow.entities import Metric, Param

    client = connect(sqlite_uri(workdir / "least.db"))
    experiment = client.create_experiment("least", artifact_location=workdir.as_uri())
    calls = []
    for record in records:
        numbers = {(name, 0): value for name, value in record_numbers(record).items()}
        points = {**curve_points(RunFolder(workdir, record.id)), **numbers}
        metrics = [Metric(name, value, 1, step) for (name, step), value in points.items()]
        params = [Param(name, str(value)) for name, value in row_params(record).items()]
        calls.append((metrics, params))
    tags = {f"tag {number}": "value" for number in range(10)}
    began = time.process_time()
    for metrics, params in calls:
        run = client.create_run(experiment, 1, tags, "run")
        client.log_batch(run.info.run_id, metrics, params)
        client.set_terminated(run.info.run_id, "FINISHED", 2)
    return time.process_time() - began


def main() -> None:
    """Print both, and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workdir", type=Path)
    parser.add_argument("--runs", type=int, default=40)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        workdir = Path(name)
        for source in sorted((args.workdir / "runs").iterdir())[: args.runs]:
            shutil.copytree(source, workdir / "runs" / source.name)
        with own_settings():
            least = time_client(workdir, read_records(workdir))
            connect(default_uri(workdir))  # creates the store
        began = time.process_time()
        count = sync(workdir)
        spent = time.process_time() - began
    a, b = (1000 * seconds / count for seconds in (least, spent))
    print(f"{count} runs: MLflow alone {a:.1f} ms a run, track sync {b:.1f} ms, ratio {b / a:.2f}")


if __name__ == "__main__":
    main()

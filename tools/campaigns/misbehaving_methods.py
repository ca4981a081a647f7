"""Shows that a method that misbehaves changes no other row, hides no failure and does not hang the
comparison.

    python -m tools.campaigns.misbehaving_methods [--executor serial] [--executor processes]
        [--only PART_OF_A_NAME] [--cases N] [--seed 0] [--log FILE]

Each case is a comparison of three rows: a method of a package made for this purpose, which does
something to its process before it trains, and after it two rows that behave. It passes if the
command ends within three minutes with exit code 0 or 1, every run has a record, and the two rows
have the scores that they have without the first one.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import time
from pathlib import Path

from tools.campaigns.counted import Log, add_sampling, sample, save_count

DEEDS = {
    "exits with 0": "sys.exit(0)",
    "exits with a text": "sys.exit('enough')",
    "ends its process": "os._exit(0)",
    "kills its process": "os.kill(os.getpid(), 9)",
    "raises BaseException": "raise BaseException('why')",
    "raises KeyboardInterrupt": "raise KeyboardInterrupt",
    "raises GeneratorExit": "raise GeneratorExit",
    "raises an exception without words": "raise Silent",
    "sets an alarm": "signal.setitimer(signal.ITIMER_REAL, 0.5)",
    "ignores signals": "[signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]",
    "changes the folder": "os.chdir('/')",
    "removes its folder": "os.chdir(t := tempfile.mkdtemp()); os.rmdir(t)",
    "clears the environment": "os.environ.clear()",
    "changes the environment": "os.environ.update(HF_HUB_OFFLINE='1', HOME='/none', OMP_NUM_THREADS='x')",
    "closes its streams": "sys.stdout.close(); sys.stderr.close()",
    "replaces its streams": "sys.stdout = sys.stderr = io.StringIO()",
    "closes file descriptors": "os.close(1); os.close(2)",
    "prints a lot": "print('x' * 20_000_000); print('y' * 20_000_000, file=sys.stderr)",
    "seeds global generators": "torch.manual_seed(0); random.seed(0); np.random.seed(0)",
    "another default dtype": "torch.set_default_dtype(torch.float64)",
    "another default device": "torch.set_default_device('meta')",
    "no gradients": "torch.set_grad_enabled(False)",
    "inference mode": "torch.inference_mode().__enter__()",
    "autocast": "torch.autocast('cpu', torch.bfloat16).__enter__()",
    "threads of torch": "torch.set_num_threads(2)",
    "deterministic algorithms": "torch.use_deterministic_algorithms(True)",
    "precision of products": "torch.set_float32_matmul_precision('medium'); torch.backends.mkldnn.enabled = False",
    "numbers near zero": "torch.set_flush_denormal(True)",
    "errors of numpy": "np.seterr(all='raise')",
    "warnings are errors": "warnings.simplefilter('error')",
    "no log": "logging.disable(); logging.getLogger().handlers.clear()",
    "another locale": "locale.setlocale(locale.LC_ALL, 'C'); locale._override_localeconv = {'decimal_point': ','}",
    "few recursions": "sys.setrecursionlimit(150)",
    "no garbage collection": "gc.disable()",
    "no import path": "sys.path.clear()",
    "leaves a thread": "threading.Thread(target=time.sleep, args=(10_000,)).start()",
    "leaves a process": "subprocess.Popen(['sleep', '1000'])",
    "replaces functions of torch": "torch.nn.functional.normalize = torch.cosine_similarity = lambda x, *_, **__: x",
    "replaces functions of numpy": "np.argsort = np.mean = np.corrcoef = lambda x, *_, **__: x",
    "files for its owner alone": "os.umask(0o777)",
}
MODULE = """\
import gc, io, locale, logging, os, random, signal, subprocess, sys, tempfile, threading, time, warnings
import numpy as np
import torch
from methods.simcse import SimCSE

class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no words")

class Misbehaving(SimCSE):
    name = "misbehaving"

    def fit(self, corpus, context):
        {deed}
        return super().fit(corpus, context)
"""
EXPERIMENT = """\
name = "campaign"
base_models = ["embedded:mini-bert"]
seeds = [1]
suites = ["Embedded-STS-contrast"]
max_steps = 3
precision = "fp32"
device = "cpu"
corpus = {{ uri = "embedded:sentences", limit = 64 }}
dev = {{ task = "Embedded-STS-contrast" }}
shared = {{ batch_size = 8, eval_every = 3, train_length = 12 }}
methods = [{first} {{ method = "simcse", preset = "mini" }}, {{ method = "pooling" }}]
"""
FIRST = '{ method = "misbehaving", preset = "mini" },'


def fault_of(folder: Path, executor: str, truth: dict[tuple[str, int], float]) -> str:
    """Run the comparison with the misbehaving method; return what is wrong with its end, or ""."""
    from harness.results.store import read_comparison_file, read_records
    from tools.campaigns import forked

    file = folder / "campaign.toml"
    work = folder / "work"
    file.write_text(EXPERIMENT.format(first=FIRST))
    ended = forked.run(command(file, work, executor), seconds=180)
    if executor == "serial" and ended.code < 0:  # a signal: nobody is left who could say it
        ended = ended._replace(code=1)
    if fault := ended.fault((0, 1)):
        return fault
    listed = read_comparison_file(work, "campaign")
    records = read_records(work, "campaign") if listed is not None else []
    if ended.code == 0 and (listed is None or len(records) != len(listed.runs)):
        return f"exit code 0, and {len(records)} records"
    found = scores(work)
    wrong = {key: value for key, value in found.items() if key in truth and value != truth[key]}
    if wrong:
        return f"other scores: {wrong}, not {truth}"
    if executor == "processes" and (missing := truth.keys() - found.keys()):
        return f"no scores of {sorted(missing)}"
    bad = [r.status for r in records if r.row == "misbehaving"]
    if ended.code == 0 and {*bad} - {"finished"}:
        return "exit code 0 though runs failed"
    return ""


def command(file: Path, work: Path, executor: str) -> list[str]:
    more = ["--executor", executor, "--workers", "1"] if executor == "processes" else []
    options = ["--tracking-uri", "none", "--quiet", "--format", "csv", *more]
    return ["compare", str(file), "--workdir", str(work), *options]


def scores(work: Path) -> dict[tuple[str, int], float]:
    """Return row and seed -> score, of the rows that behave."""
    from harness.results.store import read_records

    found: dict[tuple[str, int], float] = {}
    for record in read_records(work):
        value = record.score("Embedded-STS-contrast")
        behaves = record.row != "misbehaving" and record.status == "finished"
        if behaves and value is not None:
            found[record.row, record.seed] = value
    return found


def main() -> int:
    """Prints the failures and the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--executor", action="append", choices=("serial", "processes"))
    parser.add_argument("--only", default="", help="cases with this in their name")
    add_sampling(parser)
    args = parser.parse_args()
    executors = args.executor or ["serial", "processes"]
    deeds = sample([deed for deed in DEEDS if args.only in deed], args.cases, args.seed)
    started = time.monotonic()
    log = Log(args.log)
    names: list[str] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        about = folder / "plugins" / "misbehaving-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: misbehaving\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(
            "[harness.methods]\nmisbehaving = misbehaving:Misbehaving\n"
        )
        paths = [str(about.parent), str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        sys.path.insert(0, str(about.parent))
        importlib.invalidate_caches()
        from tools.campaigns import forked

        file = folder / "truth.toml"
        file.write_text(EXPERIMENT.format(first=""))
        with forked.nothing_drawn():
            (first,) = forked.import_what_is_used_by(command(file, folder / "truth", "serial"))
            assert first.code == 0, first
            truth = scores(folder / "truth")
            for executor in executors:
                for what in deeds:
                    case = f"{executor}, {what}"
                    if case in log:
                        continue
                    place = folder / executor / what.replace(" ", "-")
                    place.mkdir(parents=True)
                    (about.parent / "misbehaving.py").write_text(MODULE.format(deed=DEEDS[what]))
                    log.add(case, fault_of(place, executor, truth))
                known = [f"{executor}, {what}" for what in DEEDS]
                names += known
                if not args.only:
                    name = f"misbehaving_methods {executor}"
                    save_count(name, *log.count(known), known=len(DEEDS))
    tried, failed = log.count(names)
    print(
        f"tried {tried}, passed {tried - failed}, failed {failed}, {time.monotonic() - started:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

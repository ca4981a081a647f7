"""Measure training and encoding on a GPU, beside sentence-transformers on the same batches.

    python -m tools.gpu_check --minutes 8 --out build/gpu [--device cpu] [--sections train exact]

It runs from a checkout on a machine without a network: torch, transformers, sentence-transformers,
pydantic and pytest are enough. Every section is a process with a time limit, and every line is
written as soon as it is known, to FILE.md and FILE.jsonl: what is lost in an accident is one line.
The base model has the size of BERT-base and random weights. On a CPU it is small, and its figures
only show that the tool works.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from harness.encoder import Encoder
from harness.errors import StopRequested
from harness.machine.energy import EnergyMeter
from harness.method import FitContext
from harness.sources import load_corpus, resolve_model
from methods.simcse import SimCSE

ROOT = Path(__file__).parents[1]
# The share of the time left that a section may use; what it leaves is there for the next ones.
# torch.compile comes last, because it can take any time.
SHARES = {
    "machine": 0.1,
    "train": 0.4,
    "exact": 0.25,
    "encode": 0.3,
    "two runs": 0.4,
    "tests": 0.6,
    "compile": 1.0,
}
RESUMED_STEPS = 6
GRADIENT_TOLERANCES = {torch.float32: 1e-4, torch.float64: 1e-12}
LENGTH = 32  # tokens of a sentence in training
Line = dict[str, Any]


class Sizes:
    """What is run: on a GPU the size of BERT-base, on a CPU a small one."""

    def __init__(self, device: str) -> None:
        small = device == "cpu"
        self.layers = 2 if small else 12
        self.width = 64 if small else 768
        self.batch = 16 if small else 256
        self.steps = 6 if small else 40
        self.warm_up = 2 if small else 8  # steps that are not timed: kernels are chosen in them
        self.texts = 64 if small else 8192
        self.product = 256 if small else 8192


def make_model(folder: Path, sizes: Sizes) -> str:
    """Write a BERT of random weights with the embedded model's tokenizer; return its folder."""
    from transformers import AutoTokenizer, BertConfig, BertModel

    if not (folder / "config.json").exists():
        tokenizer = AutoTokenizer.from_pretrained(resolve_model("embedded:mini-bert"))
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=sizes.width,
            num_hidden_layers=sizes.layers,
            num_attention_heads=max(1, sizes.width // 64),
            intermediate_size=4 * sizes.width,
            max_position_embeddings=128,
        )
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return str(folder)


def wait(device: str) -> None:
    """Wait until the device has done all its work."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def clock(work: Callable[[], object], device: str) -> float:
    """Return the seconds of a piece of work."""
    wait(device)
    started = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - started


def measure_peak(device: str, dtype: torch.dtype, size: int) -> float:
    """Return the floating-point operations a second of a product of matrices."""
    a = torch.randn(size, size, device=device).to(dtype)
    for _ in range(3):
        a @ a
    count = 10
    return count * 2 * size**3 / clock(lambda: [a @ a for _ in range(count)], device)


def read_driver() -> str:
    """Return the version of the GPU's driver, or "unknown"."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.splitlines()[0].strip()


def set_tf32(enabled: bool) -> None:
    """Allow or forbid TF32 in float32 products."""
    torch.set_float32_matmul_precision("high" if enabled else "highest")


# ------------------------------------------------------------------------------- sections


def describe_machine(device: str, sizes: Sizes) -> Iterator[Line]:
    """Yield the versions, and the speed of products of matrices."""
    import sentence_transformers
    import transformers

    name = torch.cuda.get_device_name() if device.startswith("cuda") else platform.processor()
    driver = f", driver {read_driver()}" if device.startswith("cuda") else ""
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
    versions += f", sentence-transformers {sentence_transformers.__version__}"
    yield {"what": "device", "value": name or "CPU", "about": versions + driver}
    for label, dtype, tf32 in (
        ("fp32", torch.float32, False),
        ("TF32", torch.float32, True),
        ("bf16", torch.bfloat16, False),
    ):
        set_tf32(tf32)
        peak = measure_peak(device, dtype, sizes.product)
        about = f"{sizes.product} x {sizes.product}"
        yield {"what": f"product, {label}", "value": f"{peak / 1e12:.4g} TFLOP/s", "about": about}


def train_once(
    model: str, device: str, sizes: Sizes, *, precision: str, packed: bool, compiled: bool = False
) -> Line:
    """Train SimCSE by the harness for some steps, and return its speed, memory and energy."""

    class Compiled(SimCSE):
        def load_base(self) -> Encoder:
            encoder = super().load_base()
            encoder.transformer = torch.compile(encoder.transformer, dynamic=True)
            return encoder

    kind = Compiled if compiled else SimCSE
    values = {
        "batch_size": sizes.batch,
        "train_length": LENGTH,
        "max_steps": sizes.steps,
        "epochs": 1000,
        "packed": packed,
        "log_every": 1,
        "bucket": 1,
    }
    method = kind(kind.configure(values), base_model=model)
    stamps: list[float] = []

    def progress(step: int, steps: int, text: str) -> None:
        if step > len(stamps):
            wait(device)
            stamps.append(time.perf_counter())

    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    context = FitContext(seed=1, device=device, precision=precision, progress=progress)
    with EnergyMeter(device) as energy:
        method.fit(load_corpus("embedded:sentences"), context)
    seconds = stamps[-1] - stamps[sizes.warm_up]
    steps = len(stamps) - 1 - sizes.warm_up
    tokens = method.fit_report.cost["train_tokens"] / sizes.steps
    weights = sum(p.numel() for p in method.encoder.transformer.encoder.parameters())
    joules = energy.costs("train").get("train_gpu_joules")
    return {
        "sentences_per_second": sizes.batch * steps / seconds,
        # A forward pass takes 2 operations a weight and token, forward and backward 6.
        "flops": 6 * weights * tokens * steps / seconds,
        "memory_gib": torch.cuda.max_memory_allocated() / 2**30 if "cuda" in device else None,
        "joules_per_1000": joules and 1000 * joules / (sizes.batch * sizes.steps),
    }


def train_plainly(model: str, device: str, sizes: Sizes, *, precision: str) -> Line:
    """Train by a plain loop over a SentenceTransformer and MultipleNegativesRankingLoss."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    part = Transformer(model, max_seq_length=LENGTH)
    st = SentenceTransformer(modules=[part, Pooling(sizes.width, "cls")], device=device)
    loss_of = MultipleNegativesRankingLoss(st)
    optimizer = torch.optim.AdamW(st.parameters(), lr=3e-5, fused=True)
    stream = SimCSE(SimCSE.configure({"batch_size": sizes.batch, "bucket": 1})).stream(
        load_corpus("embedded:sentences"), 1
    )
    st.train()
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    stamps = []
    for step in range(sizes.steps):
        texts = stream.batch(step).texts
        features = {
            key: x.to(device) for key, x in st.preprocess(texts).items() if torch.is_tensor(x)
        }
        kind = device.split(":", 1)[0]
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = loss_of([dict(features), dict(features)], None)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(st.parameters(), 1.0)
        optimizer.step()
        loss.item()
        wait(device)
        stamps.append(time.perf_counter())
    seconds = stamps[-1] - stamps[sizes.warm_up]
    steps = len(stamps) - 1 - sizes.warm_up
    memory = torch.cuda.max_memory_allocated() / 2**30 if "cuda" in device else None
    return {"sentences_per_second": sizes.batch * steps / seconds, "memory_gib": memory}


def measure_training(device: str, sizes: Sizes, model: str) -> Iterator[Line]:
    """Yield the speed of training by the harness and by a plain loop."""
    peaks = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        set_tf32(False)
        peaks[name] = measure_peak(device, dtype, sizes.product)
    cases: list[tuple[str, dict[str, Any]]] = []
    for precision in ("bf16", "fp32"):
        for packed in (False, True):
            name = f"harness, {'packed' if packed else 'padded'}, {precision}"
            cases.append((name, {"precision": precision, "packed": packed}))
        cases.append((f"SentenceTransformer, plain loop, {precision}", {"precision": precision}))
    cases.append(("harness, padded, TF32", {"precision": "fp32", "packed": False}))
    yield from measure_cases(cases, peaks, device, sizes, model)


def measure_compiled(device: str, sizes: Sizes, model: str) -> Iterator[Line]:
    """Yield the speed of training with `torch.compile`."""
    peaks = {"bf16": measure_peak(device, torch.bfloat16, sizes.product)}
    options = {"precision": "bf16", "packed": False, "compiled": True}
    cases = [("harness, padded, bf16, torch.compile", options)]
    yield from measure_cases(cases, peaks, device, sizes, model)


def measure_cases(
    cases: list[tuple[str, dict[str, Any]]],
    peaks: dict[str, float],
    device: str,
    sizes: Sizes,
    model: str,
) -> Iterator[Line]:
    """Yield the speed of each case; `peaks` are operations a second by precision."""
    for name, options in cases:
        set_tf32("TF32" in name)
        try:
            if "packed" in options:
                found = train_once(model, device, sizes, **options)
            else:
                found = train_plainly(model, device, sizes, **options)
        except Exception as error:  # a case that fails is a line with its reason
            yield {"what": f"train: {name}", "value": "failed", "about": describe_error(error)}
            continue
        about = []
        if found.get("flops"):
            about.append(
                f"{100 * found['flops'] / peaks[options['precision']]:.0f} % of the product"
            )
        if found.get("memory_gib"):
            about.append(f"{found['memory_gib']:.1f} GiB")
        if found.get("joules_per_1000"):
            about.append(f"{found['joules_per_1000']:.0f} J a 1000 sentences")
        value = f"{found['sentences_per_second']:,.0f} sentences/s"
        yield {"what": f"train: {name}", "value": value, "about": ", ".join(about), **found}


def check_exactness(device: str, sizes: Sizes, model: str) -> Iterator[Line]:
    """Yield whether resumed weights are those of an uninterrupted run, and how far gradients of
    packed batches are from those of padded ones.
    """
    set_tf32(False)
    for precision in ("fp32", "bf16"):
        same = resume_is_exact(model, device, sizes, precision)
        yield {
            "what": f"exact: resumed = uninterrupted, {precision}",
            "value": "bit for bit" if same else "differs",
            "about": f"{RESUMED_STEPS} training steps, stopped after {RESUMED_STEPS // 2}",
            "holds": same,
        }
    for dtype, tolerance in GRADIENT_TOLERANCES.items():
        name = f"exact: gradient, packed = padded, {str(dtype).removeprefix('torch.')}"
        try:
            apart = compare_gradients(model, device, dtype)
        except Exception as error:  # no kernel for this type: a line with its reason
            yield {"what": name, "value": "failed", "about": describe_error(error)}
            continue
        yield {
            "what": name,
            "value": f"{apart:.1e}",
            "about": f"norm of the difference / norm, tolerance {tolerance:.0e}",
            "holds": apart < tolerance,
        }


def resume_is_exact(model: str, device: str, sizes: Sizes, precision: str) -> bool:
    """True if a run that is stopped and resumed has the weights of one that is not."""
    values = {
        "batch_size": min(sizes.batch, 64),
        "train_length": LENGTH,
        "max_steps": RESUMED_STEPS,
    }

    def train(folder: Path, stop: Callable[[], bool] | None = None) -> dict[str, torch.Tensor]:
        method = SimCSE(SimCSE.configure(values), base_model=model)
        context = FitContext(seed=1, device=device, precision=precision, folder=folder, stop=stop)
        method.fit(load_corpus("embedded:sentences"), context)
        return method.encoder.state_dict()

    with tempfile.TemporaryDirectory() as place:
        whole = train(Path(place) / "whole")
        steps = itertools.count(1)
        try:
            train(Path(place) / "stopped", lambda: next(steps) == RESUMED_STEPS // 2)
        except StopRequested:
            resumed = train(Path(place) / "stopped")
        else:
            raise RuntimeError("the run was not stopped")
    return all(torch.equal(whole[name], resumed[name]) for name in whole)


def compare_gradients(model: str, device: str, dtype: torch.dtype) -> float:
    """Return the norm of the difference of packed and padded gradients, over the padded one's."""
    encoder = Encoder.from_pretrained(model, pooling="cls").to(device).train()
    encoder.pack_batches()
    encoder.to(dtype)
    corpus = load_corpus("embedded:sentences")
    ids = encoder.tokenize([str(corpus[i]) for i in range(32)], max_length=LENGTH)
    # Another direction for every vector: a loss of their products would move the last layer alone.
    torch.manual_seed(0)
    directions = torch.randn(2 * len(ids), encoder.dimension, dtype=torch.float64).to(device, dtype)
    nothing = (0.0, 0.0)
    gradients = []
    for packed in (False, True):
        encoder.packed = packed
        encoder.zero_grad()
        a, b = encoder.two_views(
            ids, ids, hidden_dropout=nothing, attention_dropout=nothing, differ_by=None
        )
        (torch.cat([a, b]) * directions).sum().backward()  # type: ignore[no-untyped-call]
        parts = [p.grad.flatten() for p in encoder.parameters() if p.grad is not None]
        gradients.append(torch.cat(parts).double())
    padded, packed_gradient = gradients
    return float((packed_gradient - padded).norm() / padded.norm())


def describe_error(error: Exception) -> str:
    """Return the kind of an error and the first line of its message."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]


def measure_encoding(device: str, sizes: Sizes, model: str) -> Iterator[Line]:
    """Yield the speed of encoding beside `SentenceTransformer.encode`, and how far vectors differ."""
    import numpy as np
    from sentence_transformers import SentenceTransformer

    corpus = load_corpus("embedded:sentences")
    texts = [str(corpus[i % len(corpus)]) for i in range(sizes.texts)]
    with tempfile.TemporaryDirectory() as folder:
        encoder = Encoder.from_pretrained(model, max_length=128)
        encoder.save(f"{folder}/model")
        other = SentenceTransformer(f"{folder}/model", device=device)
    encoder = encoder.to(device).eval()
    exact = encoder.encode(texts, device=device, batch_size=256)
    for precision in ("fp32", "bf16"):
        mine = {"device": device, "batch_size": 256, "precision": precision}
        if precision == "bf16":
            other = other.bfloat16()

        def ours(mine: dict[str, Any] = mine) -> np.ndarray:
            return encoder.encode(texts, **mine)  # type: ignore[no-any-return]

        def theirs(model: SentenceTransformer = other) -> np.ndarray:
            return (
                model.encode(
                    texts,
                    batch_size=256,
                    show_progress_bar=False,
                    convert_to_numpy=False,
                    convert_to_tensor=True,
                )
                .float()
                .cpu()
                .numpy()
            )

        vectors, others = ours(), theirs()  # kernels are chosen now
        seconds = clock(ours, device), clock(theirs, device)
        for name, took, found in (
            ("harness", seconds[0], vectors),
            ("SentenceTransformer", seconds[1], others),
        ):
            apart = float(np.abs(found - exact).max())
            yield {
                "what": f"encode: {name}, {precision}",
                "value": f"{len(texts) / took:,.0f} sentences/s",
                "about": f"vectors differ from fp32 by {apart:.1e}",
                "sentences_per_second": len(texts) / took,
            }


def measure_two_runs(device: str, sizes: Sizes, model: str) -> Iterator[Line]:
    """Yield how long two runs take at the same time, and one after the other."""
    command = [sys.executable, "-m", "tools.gpu_check", "--section", "one run"]
    command += ["--device", device, "--model", model]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)

    started = time.perf_counter()
    for _ in range(2):
        start().wait()
    after = time.perf_counter() - started
    started = time.perf_counter()
    both = [start(), start()]
    codes = [one.wait() for one in both]
    together = time.perf_counter() - started
    if any(codes):
        yield {"what": "two runs at once", "value": "failed", "about": f"exit codes {codes}"}
        return
    yield {
        "what": "two runs at once",
        "value": f"{together / after:.2f} of the time",
        "about": f"{together:.0f} s, one after the other {after:.0f} s, start-up included",
    }


def run_tests(device: str) -> Iterator[Line]:
    """Yield the outcome of the tests that need a GPU."""
    options = ["-q", "-n", "0", "-rfEs", "-m", "gpu", "-p", "no:cacheprovider", "tests/gpu"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["nothing"]
    yield {"what": "tests marked gpu", "value": lines[-1], "about": f"on {device}"}
    for line in lines:
        if line.startswith(("FAILED", "ERROR", "SKIPPED")):
            yield {"what": line.split(" ", 1)[0].lower(), "value": "", "about": line[:300]}


def run_section(name: str, device: str, model: str) -> Iterator[Line]:
    """Yield the lines of a section."""
    sizes = Sizes(device)
    if name == "machine":
        yield from describe_machine(device, sizes)
    elif name == "train":
        yield from measure_training(device, sizes, make_model(Path(model), sizes))
    elif name == "compile":
        yield from measure_compiled(device, sizes, make_model(Path(model), sizes))
    elif name == "exact":
        yield from check_exactness(device, sizes, make_model(Path(model), sizes))
    elif name == "encode":
        yield from measure_encoding(device, sizes, make_model(Path(model), sizes))
    elif name == "two runs":
        yield from measure_two_runs(device, sizes, make_model(Path(model), sizes))
    elif name == "one run":
        train_once(model, device, sizes, precision="bf16", packed=False)
    else:
        yield from run_tests(device)


# --------------------------------------------------------------------------------- report


def write_line(out: Path, section: str, line: Line) -> None:
    """Append a line to both files, and print it."""
    with out.with_suffix(".jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"section": section, **line}) + "\n")
    cells = [str(line.get(key, "")).replace("|", "\\|") for key in ("what", "value", "about")]
    with out.with_suffix(".md").open("a", encoding="utf-8") as stream:
        stream.write(f"| {' | '.join(cells)} |\n")
    print(": ".join(cell for cell in cells if cell), flush=True)


def collect(section: str, device: str, model: str, seconds: float, out: Path) -> None:
    """Run a section in a process of its own, and write its lines until its time is over."""
    command = [sys.executable, "-m", "tools.gpu_check", "--section", section]
    command += ["--device", device, "--model", model]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        timer = threading.Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        assert process.stdout is not None
        for text in process.stdout:
            if text.startswith("{"):
                write_line(out, section, json.loads(text))
        process.wait()
        timer.cancel()
        if process.returncode == -signal.SIGKILL:
            line = {
                "what": section,
                "value": "ended",
                "about": f"its time of {seconds:.0f} s is over",
            }
            write_line(out, section, line)
        elif process.returncode:
            errors.seek(0)
            last = (errors.read().strip().splitlines() or ["no message"])[-1]
            about = f"exit code {process.returncode}: {last[:300]}"
            write_line(out, section, {"what": section, "value": "failed", "about": about})


def main() -> None:
    """Run all sections within the given time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--out", type=Path, default=Path("build/gpu"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sections", nargs="+", choices=SHARES, default=list(SHARES))
    parser.add_argument("--section", help=argparse.SUPPRESS)
    parser.add_argument("--model", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.section:
        for line in run_section(args.section, args.device, args.model):
            print(json.dumps(line), flush=True)
        return

    end = time.monotonic() + 60 * args.minutes
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.with_suffix(".jsonl").write_text("")
    args.out.with_suffix(".md").write_text("| what | value | about |\n|---|---|---|\n")
    with tempfile.TemporaryDirectory() as folder:
        for section in args.sections:
            left = end - time.monotonic() - 2
            if left < 5:
                line = {"what": section, "value": "not run", "about": "no time left"}
                write_line(args.out, section, line)
                continue
            seconds = min(left, max(30.0, SHARES[section] * left))
            collect(section, args.device, f"{folder}/model", seconds, args.out)


if __name__ == "__main__":
    main()

"""BERT-flow: an invertible map from a frozen encoder's sentence vectors to a standard normal
distribution.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from harness.config import option
from harness.encoder import Encoder
from harness.encoder.sentences import token_budget_batches
from harness.method import FitContext, FitReport, Method
from harness.recipes import RecipeFile
from harness.seeds import derive, preserve_random_state
from harness.sources.remote.cache_folder import writing
from harness.training import BatchStream, Descent, planned_steps
from methods.parts.array_method import ArrayMethod
from methods.parts.glow import Glow
from methods.parts.optimizers import adamw
from methods.parts.vector_maps import VectorMap, VectorMapConfig, text_chunks

WEIGHTS = "flow.safetensors"
ROWS = 8192  # vectors that pass the flow at a time


class FlowConfig(VectorMapConfig):
    """Architecture and optimisation of the authors' config_l3_d3_w32 and scripts."""

    levels: int = option(
        3, "levels; between two of them half of the channels leave the flow", ge=1, sweep=[1, 2, 3]
    )
    steps: int = option(3, "steps a level: actnorm, mixing, coupling", ge=1, sweep=[1, 2, 3, 4])
    width: int = option(32, "hidden units of the coupling networks", ge=1, sweep=[16, 32, 64])
    coupling: Literal["additive", "affine"] = option(
        "additive", "shift the second half, or shift and scale it"
    )
    mixing: Literal["reversal", "learned"] = option(
        "reversal", "channels reversed, or a learned 1x1 convolution"
    )
    learning_rate: float = option(
        1e-3,
        "constant learning rate of the flow",
        gt=0,
        sweep=(1e-4, 1e-2),
        log=True,
    )
    batch_size: int = option(
        64, "sentences per training step: the authors' 32 pairs", ge=2, sweep=[32, 64, 128]
    )
    epochs: int = option(1, "passes over the vectors", ge=1)
    max_steps: int | None = option(None, "upper bound on training steps; empty: no bound", ge=1)
    weight_decay: float = option(0.01, "decoupled weight decay, on all weights of the flow", ge=0)
    max_grad_norm: float = option(1.0, "gradient norm is clipped to this", gt=0)
    dropout: bool = option(
        False, "encode the text that is fitted to with the encoder's dropout on, as the code does"
    )
    log_every: int = option(50, "training steps between two lines of the training curve", ge=1)


class Flow(ArrayMethod, VectorMap):
    """z = f(h) with f invertible, learnt by maximum likelihood of h under z ~ N(0, I); the encoder
    is frozen.
    """

    name = "flow"
    version = 1
    sheet = RecipeFile.beside(__file__)
    Config = FlowConfig

    _flow: Glow | None = None

    @property
    def uses_dev(self) -> bool:
        """Always False: the last weights are used, as by the authors."""
        return False

    def _new_flow(self, dimension: int) -> Glow:
        c = self.config
        return Glow(
            dimension,
            levels=c.levels,
            steps=c.steps,
            width=c.width,
            coupling=c.coupling,
            mixing=c.mixing,
        )

    @preserve_random_state()
    def _learn(self, encoder: Encoder, items: Sequence[Any], context: FitContext) -> FitReport:
        torch.manual_seed(derive(context.seed, "init"))
        self._flow = None
        flow = self._new_flow(encoder.dimension).to(context.device)
        started = time.perf_counter()
        vectors = self._encode_corpus(encoder, items, context)
        encode_seconds = time.perf_counter() - started
        report = _train(flow, vectors, self.config, context)
        report.cost |= {
            "encode_corpus_seconds": encode_seconds,
            "corpus_sentences_seen": float(len(vectors)),
        }
        self._flow = flow.eval()
        return report

    def _encode_corpus(
        self,
        encoder: Encoder,
        items: Sequence[Any],
        context: FitContext,
    ) -> NDArray[np.float32]:
        """Return the vectors (n, D) of the corpus, mapped from an unnamed file: memory stays the same
        however large the corpus is.
        """
        rows = 0
        with tempfile.TemporaryFile() as file:
            for number, texts in enumerate(text_chunks(items, context)):
                if context.progress:
                    context.progress(0, 0, "encoding the corpus")
                if self.config.dropout:
                    torch.manual_seed(derive(context.seed, f"dropout {number}"))
                    vectors = _drop_out(encoder, texts)
                else:
                    vectors = np.asarray(
                        encoder.encode(texts, device=context.device, precision="fp32")
                    )
                with writing("the corpus's vectors", Path(tempfile.gettempdir())):
                    file.write(np.ascontiguousarray(vectors, dtype=np.float32).tobytes())
                    file.flush()
                rows += len(vectors)
            return np.memmap(
                file,
                dtype=np.float32,
                mode="r",
                shape=(rows, encoder.dimension),
            )

    def _vectors(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        x = Method.encode(self, texts, convert_to_tensor=True, **options)
        assert isinstance(x, torch.Tensor)
        if self._flow is not None and len(x):
            self._flow.to(x.device)
            with torch.inference_mode():
                starts = range(0, len(x), ROWS)
                parts = []
                for start in starts:
                    parts.append(self._flow(x[start : start + ROWS])[0])
            x = torch.cat(parts)
        vectors: NDArray[np.float32] = x.cpu().numpy()
        return vectors

    def num_parameters(self) -> int:
        """Return the number of parameters of encoder and flow."""
        count = super().num_parameters()
        if self._flow is not None:
            count += sum(p.numel() for p in self._flow.parameters())
        return count

    def _stands_alone(self) -> bool:
        return False

    def _save_map(self, folder: Path) -> None:
        from safetensors.torch import save_file

        if self._flow is None:
            return
        state = self._flow.state_dict()
        weights = {}
        for name, tensor in state.items():
            weights[name] = tensor.detach().cpu().contiguous()
        save_file(weights, folder / WEIGHTS)

    def _load_map(self, folder: Path) -> None:
        from safetensors.torch import load_file

        if (folder / WEIGHTS).is_file():
            self._flow = self._new_flow(self.encoder.dimension).eval()
            self._flow.load_state_dict(load_file(folder / WEIGHTS))


def _drop_out(encoder: Encoder, texts: list[str]) -> NDArray[np.float32]:
    """Encode with the checkpoint's own dropout; vectors (n, D)."""
    ids = encoder.tokenize(texts)
    vectors = np.empty((len(ids), encoder.dimension), dtype=np.float32)
    encoder.train()
    with torch.no_grad():
        for rows in token_budget_batches([len(row) for row in ids], 2048):
            features = encoder.collate([ids[row] for row in rows])
            vectors[rows] = encoder(features).float().cpu().numpy()
    encoder.eval()
    return vectors


class _Likelihood(Descent):
    """A run of the flow's training."""

    counters = ("seconds", "bits")
    seconds = 0.0
    bits = float("nan")


def _train(flow: Glow, vectors: NDArray[np.float32], config: Any, context: FitContext) -> FitReport:
    """Fit the flow by maximum likelihood, from the checkpoint in `context.folder` on, if there is one.

    Raises:
        TrainingStopped: the loss is not finite.
    """
    stream = BatchStream(
        range(len(vectors)),
        batch_size=config.batch_size,
        bucket=1,
        seed=context.seed,
        length_cap=0,
    )
    weights = list(flow.parameters())
    groups = [{"params": weights, "weight_decay": config.weight_decay}]
    optimizer = adamw(groups, learning_rate=config.learning_rate, eps=1e-6, bias_correction=False)
    steps = planned_steps(config, stream, context.max_steps)
    run = _Likelihood(
        {"flow": flow},
        optimizer,
        weights,
        context,
        steps=steps,
        max_grad_norm=config.max_grad_norm,
        log_every=config.log_every,
    )
    run.resume()

    started = time.monotonic() - run.seconds
    flow.train()
    while run.step < steps:
        rows = stream.batch(run.step).items
        batch = torch.from_numpy(vectors[rows]).to(context.device)
        mean = flow.bits_per_dimension(batch).mean()
        # Twice the mean: the sum of the two sides' means, as the authors add them.
        norm = run.update(2 * mean, config.learning_rate)
        if run.at_log_step():
            run.bits = float(mean.detach())
            run.log(
                {"loss": 2 * run.bits, "bits": run.bits, "grad_norm": float(norm)},
                progress=f"{run.bits:.4g} bits a dimension",
                diverged=f"the flow's loss is {run.bits} at step {run.step} of {steps}",
            )
        run.seconds = time.monotonic() - started
        run.checkpoint()
    run.curves.flush()

    return FitReport(
        training={"steps": run.step, "planned_steps": steps, "bits_per_dimension": run.bits},
        cost={
            "flow_seconds": time.monotonic() - started,
            "trained_parameters": float(sum(p.numel() for p in weights)),
        },
    )

"""Pretraining: it learns, resumes bit for bit, saves what transformers reads, and refuses bad input in one line."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from harness.cli import main
from harness.encoder import Encoder
from harness.encoder.masked_lm import MaskedLM
from harness.errors import InputError, TrainingStopped
from harness.pretraining.masked_lm_pretraining import Pretraining
from harness.pretraining.model_folder import save
from harness.pretraining.options import PretrainingConfig
from harness.pretraining.packing import Texts, pack, train_tokenizer
from harness.sources import load_corpus

SMALL = {"layers": 1, "width": 32, "heads": 2, "vocabulary": 400, "length": 24, "batch_tokens": 240, "hold_out": 0.05}
FAST = {"precision": "fp32", "log_every": 1, "eval_every": 7}


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("embedded:sentences", limit=300)


def config(**values):
    return PretrainingConfig.parse({**SMALL, **FAST, **values}, "test")


def test_every_text_is_on_one_side(corpus):
    documents = load_corpus("embedded:documents", kind="documents")
    texts = Texts([corpus, documents], hold_out=0.1, seed=3)
    assert len(texts.held) == round(0.1 * (300 + len(documents)))
    read = [*texts.read(texts.kept), *texts.read(texts.held)]
    assert sorted(read) == sorted([*corpus, *documents])
    assert (Texts([corpus], hold_out=0.1, seed=3).held == Texts([corpus], hold_out=0.1, seed=3).held).all()
    assert (Texts([corpus], hold_out=0.1, seed=4).held != Texts([corpus], hold_out=0.1, seed=3).held).any()
    pairs = load_corpus("embedded:pairs", kind="pairs", limit=2)
    sides = [pairs[0].anchor, pairs[0].positive, pairs[0].negative]
    assert list(Texts([pairs], hold_out=0.1, seed=1).read(np.array([0]))) == [side for side in sides if side]


def test_the_same_text_gives_the_same_vocabulary(corpus):
    made = [train_tokenizer(lambda: iter(corpus), size=500, lower=True, length=24) for _ in range(2)]
    assert made[0].get_vocab() == made[1].get_vocab()
    assert len(made[0]) == 500
    assert made[0].tokenize("The") == ["the"]
    assert made[0].convert_ids_to_tokens([0, 1, 2, 3, 4]) == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_packing_keeps_all_tokens_in_order():
    tokenizer = AutoTokenizer.from_pretrained(Encoder.from_pretrained("embedded:mini-bert").tokenizer.name_or_path)
    texts = ["the cat sat on the mat", "a dog", "rain fell all day and all night on the old town by the sea"]
    blocks = pack(iter(texts), tokenizer, 9)
    assert (blocks[:, 0] == tokenizer.cls_token_id).all()
    assert (blocks[:, -1] == tokenizer.sep_token_id).all()
    between = [t for text in texts for t in [*tokenizer(text, add_special_tokens=False)["input_ids"], 3]]
    assert blocks[:, 1:-1].reshape(-1).tolist() == between[: len(blocks) * 7]
    assert len(between) - blocks[:, 1:-1].size < 7


def test_from_scratch(corpus, tmp_path):
    seen = []
    run = Pretraining(config(steps=40, learning_rate=3e-3), [corpus], progress=lambda *line: seen.append(line))
    loss = run.run()
    assert run.initial == pytest.approx(np.log(400), abs=0.3)  # nothing is known yet
    assert loss < run.initial - 0.4
    kinds = [line["kind"] for line in run.curves.lines]
    assert kinds.count("train") == 40
    assert [line["step"] for line in run.curves.lines if line["kind"] == "validation"] == [0, 7, 14, 21, 28, 35, 40]
    rates = [line["lr"] for line in run.curves.lines if line["kind"] == "train"]
    # 2 % of 40 updates is less than one, so that the decay begins at once
    assert rates == pytest.approx([3e-3, *(3e-3 * (1 - step / 40) / 0.98 for step in range(1, 40))])
    assert seen[-1][:2] == (40, 40)

    save(run, tmp_path / "base")
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "curves.jsonl"} <= {
        file.name for file in (tmp_path / "base").iterdir()
    }
    settings = json.loads((tmp_path / "base" / "config.json").read_text())
    assert settings["hidden_dropout_prob"] == 0.1  # for what comes after
    assert "embedded:sentences" in (tmp_path / "base" / "README.md").read_text()
    whole, report = AutoModelForMaskedLM.from_pretrained(tmp_path / "base", output_loading_info=True)
    assert not report["missing_keys"]
    AutoModel.from_pretrained(tmp_path / "base")
    encoder = Encoder.from_pretrained(str(tmp_path / "base")).eval()
    head = MaskedLM.from_base(str(tmp_path / "base"), encoder)
    assert head.pretrained
    features = encoder.collate(encoder.tokenize(["the cat sat"]))
    with torch.no_grad():
        torch.testing.assert_close(head(encoder.hidden_states(features)[-1]), whole.eval()(**features).logits)
    assert encoder.encode(["one sentence"]).shape == (1, 32)


def test_one_pass_uses_every_sequence_once(corpus):
    run = Pretraining(config(), [corpus])
    assert run.steps == run.steps_per_epoch
    rows = np.concatenate([run._blocks(step) for step in range(run.steps)])
    assert sorted(map(tuple, rows)) == sorted(map(tuple, run.train))


def test_resumes_bit_for_bit(corpus, tmp_path):
    settings = config(steps=12, dropout=0.1)
    whole = Pretraining(settings, [corpus])
    whole.run()

    def stop(step, steps, text):
        if step == 8:
            raise KeyboardInterrupt

    first = Pretraining(settings, [corpus], folder=tmp_path, progress=stop, checkpoint_seconds=0.0)
    with pytest.raises(KeyboardInterrupt):
        first.run()
    assert (tmp_path / "checkpoint" / "state.pt").exists()
    second = Pretraining(settings, [corpus], folder=tmp_path)
    assert second.run() == whole.loss
    assert second.step == 12
    for name, value in whole.model.state_dict().items():
        torch.testing.assert_close(second.model.state_dict()[name], value, rtol=0, atol=0)
    drop = {"seconds"}
    lines = [[{k: v for k, v in line.items() if k not in drop} for line in run.curves.lines] for run in (whole, second)]
    assert lines[0] == lines[1]

    with pytest.raises(InputError, match=r"another steps \(12, not 13\)"):
        Pretraining(config(steps=13, dropout=0.1), [corpus], folder=tmp_path).run()


def test_going_on_from_the_embedded_model(tmp_path):
    corpus = load_corpus("embedded:documents", kind="documents")
    settings = PretrainingConfig.parse(
        {"base_model": "embedded:mini-bert", "steps": 12, "batch_tokens": 512, "hold_out": 0.2, **FAST}, "test"
    )
    run = Pretraining(settings, [corpus])
    assert run.length == 64
    loss = run.run()
    assert 2.0 < run.initial < 5.0
    assert loss < run.initial
    save(run, tmp_path / "base")
    ours, theirs = (Encoder.from_pretrained(name) for name in (str(tmp_path / "base"), "embedded:mini-bert"))
    assert ours.tokenize(["The Cat"]) == theirs.tokenize(["The Cat"])
    assert not np.allclose(ours.encode(["a cat"]), theirs.encode(["a cat"]), atol=1e-3)


def test_a_budget_in_minutes(corpus):
    run = Pretraining(config(minutes=0.01), [corpus])
    run.run()
    assert run.step > 0
    assert 0.6 <= run.seconds < 3.0


def test_divergence_ends_the_run(corpus):
    with pytest.raises(TrainingStopped, match="lower the learning rate") as stop:
        Pretraining(config(steps=30, learning_rate=1e30), [corpus]).run()
    assert stop.value.status == "diverged"


def arguments(tmp_path, *more):
    small = [f"--{key.replace('_', '-')}={value}" for key, value in {**SMALL, **FAST}.items()]
    out = ["--out", str(tmp_path / "model"), "--corpus", "embedded:sentences", "--limit", "200", "--device", "cpu"]
    return ["pretrain", *out, "--quiet", *small, *more]


def test_the_command(tmp_path, capsys):
    assert main(arguments(tmp_path, "--steps=4", "--half", "--no-lower", "--corpus", "embedded:documents")) == 0
    assert "validation loss" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    weights = load_file(tmp_path / "model" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    assert AutoTokenizer.from_pretrained(tmp_path / "model").tokenize("The")[0].startswith("T")
    assert Encoder.from_pretrained(str(tmp_path / "model")).max_length == 24
    assert main(arguments(tmp_path, "--steps=4")) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_column_of_a_table(tmp_path):
    rows = [json.dumps({"body": f"sentence number {i} about cats and dogs in the rain"}) for i in range(60)]
    (tmp_path / "notes.jsonl").write_text("\n".join(rows))
    command = arguments(tmp_path, "--steps=1", "--column=body")
    command[command.index("embedded:sentences")] = str(tmp_path / "notes.jsonl")
    assert main(command) == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--layers=0"], 'key "layers"'),
        (["--width=30", "--heads=4"], '"width" 30 must be a multiple of "heads" 4'),
        (["--masking=1.5"], 'key "masking"'),
        (["--steps=many"], 'key "steps"'),
        (["--precision=fp16"], 'key "precision"'),
        (["--base-model=embedded:mini-bert"], '"vocabulary" is of a model from scratch'),
        (["--corpus=no/such/file.txt"], "no such file"),
        (["--length=4000"], "fewer tokens than one sequence"),
        (["--device=cuda:9"], "not available"),
    ],
)
def test_bad_input_is_one_line(tmp_path, capsys, more, message):
    assert main(arguments(tmp_path, *more)) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [(["--base-model=no/such/folder"], "no/such/folder"), (["--length=500"], "max_length must be from 3 to 64")],
)
def test_bad_base_models(tmp_path, capsys, more, message):
    base = [] if "base-model" in more[0] else ["--base-model=embedded:mini-bert"]
    command = ["pretrain", "--out", str(tmp_path / "m"), "--corpus", "embedded:sentences", "--quiet", *base, *more]
    assert main(command) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error


def test_learning_rate_rises_and_falls(corpus):
    run = Pretraining(config(steps=100, warmup=0.1, learning_rate=1.0), [corpus])
    rates = []
    for step in (0, 4, 9, 10, 55, 99):
        run.step = step
        rates.append(run._rate())
    assert rates == pytest.approx([0.1, 0.5, 1.0, 1.0, 0.5, 1 / 90])

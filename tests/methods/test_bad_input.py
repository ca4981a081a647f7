"""What a method cannot work with is refused before anything is trained or written: one line, exit
code 2.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main

BASE = """
seeds = [1]
suites = ["Embedded-STS-natural"]
max_steps = 2
[dev]
task = "Embedded-STS-natural"
[corpus]
uri = "embedded:sentences"
{corpora}
[[methods]]
method = "{method}"
config = {{ {config} }}
"""
PAIRS = '[corpora.pairs]\nuri = "{folder}/pairs.csv"\ncolumns = {{ anchor = "a", positive = "p" }}'

DOCUMENTS = '[corpora.documents]\nuri = "{folder}/short.txt"'

CASES = [
    # method, config, further corpora, what the line must say
    ("declutr", "", "", "learns from documents"),
    ("quick_thoughts", "", "", "learns from documents"),
    ("simcse_supervised", "", "", "learns from pairs"),
    ("cert", "", "", "learns from pairs"),
    ("barlow_twins", 'view = "paraphrase"', "", "learns from pairs"),
    ("simcse_supervised", 'hard_negatives = "required"', PAIRS, "negative"),
    ("declutr", "l_min = 8, l_max = 30", DOCUMENTS, "0 of 2 documents"),
    ("declutr", "", DOCUMENTS, "set l_max to 62 or less"),
    ("simcse", "temperature = 0", "", "temperature"),
    ("scd", "temperature = 0.0", "", "temperature"),
    ("self_guided", "temperature = -0.1", "", "temperature"),
    ("scd", "dropout_b = 1.0", "", "dropout_b"),
    ("scd", "dropout_a = -0.1", "", "dropout_a"),
    ("scd", "attention_rate_a = 0.1", "", "attention_rate_b"),
    ("scd", 'dropout_a = ""', "", "dropout_b"),
    ("infonce", 'dropout = "", dropout_b = 0.1', "", "dropout_b"),
    ("barlow_twins", "shuffle = 0", "", "shuffle"),
    ("vicreg", 'view = "shufle"', "", 'did you mean "shuffle"'),
    ("barlow_twins", "batch_size = 1", "", "batch_size"),
    ("vicreg", "projector = []", "", "projector"),
    ("whitening", "k = 0", "", "k"),
    ("flow", "levels = 0", "", "levels"),
    ("static", 'vectors = "no/such/vectors.txt"', "", "no/such/vectors.txt"),
    ("pretrained", 'model = "no/such/model/here"', "", "no/such/model/here"),
    ("model2vec", 'of = { method = "simsce" }', "", "simcse"),
    ("byol", "momentum = 1.5", "", "momentum"),
    ("contrastive_tension", 'objective = "in-batch"', "", "objective"),
    ("tsdae", "deletion = 1.0", "", "deletion"),
]


@pytest.mark.parametrize(
    ("method", "config", "corpora", "said"), CASES, ids=lambda value: str(value)[:40]
)
def test_one_line_and_nothing_written(
    method: str,
    config: str,
    corpora: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "pairs.csv").write_text(
        "a,p\nA cat sleeps.,A cat is asleep.\nIt rains.,Rain falls.\n"
    )
    (tmp_path / "short.txt").write_text("Too short.\nThis one too.\n")
    file = tmp_path / "mine.toml"
    file.write_text(
        BASE.format(method=method, config=config, corpora=corpora.format(folder=tmp_path))
    )
    work = tmp_path / "work"
    assert (
        main(["compare", str(file), "--workdir", str(work), "--tracking-uri=none", "--quiet"]) == 2
    )
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    assert said in lines[0]
    assert not work.exists()

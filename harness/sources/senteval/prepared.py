"""SentEval's data that no hub has: from where its toolkit takes it, and where the converted files lie.

HARNESS_CACHE/senteval-data/ has a folder for each, `downloads/` for what is under way, and `checksums.json`: what each
file was when it was downloaded first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.sources.remote.cache_folder import cache_root

# Conneau & Kiela's toolkit, data/downstream/get_transfer_data.bash and data/probing, as of its last versions.
_TOOLKIT = "facebookresearch/SentEval"
PROBING_FILES = (
    "bigram_shift.txt",
    "coordination_inversion.txt",
    "obj_number.txt",
    "odd_man_out.txt",
    "past_present.txt",
    "sentence_length.txt",
    "subj_number.txt",
    "top_constituents.txt",
    "tree_depth.txt",
    "word_content.txt",
)


@dataclass(frozen=True)
class PreparedData:
    """Files of the web that tasks read once they are converted.

    Attributes:
        folder: of the converted files, by the name that SentEval gives it. made: their names.
        address: the folder that `downloads` lie in.
        untried: we could not reach the address; the conversion was tested on made files of the same structure.
    """

    folder: str
    made: tuple[str, ...]
    address: str
    downloads: tuple[str, ...]
    items: str
    size: str
    licence: str
    paper: str
    purpose: str
    untried: bool = True


PREPARED: dict[str, PreparedData] = {
    "probing": PreparedData(
        folder="probing",
        made=PROBING_FILES,
        address=f"https://raw.githubusercontent.com/{_TOOLKIT}/main/data/probing",
        downloads=PROBING_FILES,
        items="10 x 120,000 sentences",
        size="0.1 GB",
        licence="the toolkit's: BSD-like, see its LICENSE",
        paper="Conneau et al., ACL 2018",
        purpose="the ten probing tasks",
    ),
    "coco": PreparedData(
        folder="COCO",
        made=tuple(f"{part}.{ending}" for part in ("train", "valid", "test") for ending in ("npy", "txt")),
        address="https://dl.fbaipublicfiles.com/senteval/coco_r101_feat",
        downloads=("train.pkl", "valid.pkl", "test.pkl"),
        items="113,287 + 5,000 + 5,000 images, five captions each",
        size="1 GB or more, and 1 GB converted",
        licence="captions: (c) 2015 COCO Consortium, CC BY 4.0",
        paper="Lin et al., ECCV 2014; features by Conneau & Kiela, LREC 2018",
        purpose="caption retrieval: captions and ResNet-101 features of COCO's images, out of the toolkit's pickles",
    ),
    "snli": PreparedData(
        folder="SNLI",
        made=tuple(f"{name}.{part}" for part in ("train", "dev", "test") for name in ("s1", "s2", "labels")),
        address="https://nlp.stanford.edu/projects/snli",
        downloads=("snli_1.0.zip",),
        items="549,367 + 9,842 + 9,824 pairs",
        size="0.1 GB",
        licence="CC BY-SA 4.0",
        paper="Bowman et al., EMNLP 2015",
        purpose="the task SNLI: pairs that have a label, with the toolkit's tokenisation",
    ),
}


def prepared_root() -> Path:
    """Where prepared data lies. It is not created here."""
    return cache_root() / "senteval-data"


def is_prepared(data: PreparedData) -> bool:
    """Are all its files there?"""
    folder = prepared_root() / data.folder
    return all((folder / name).is_file() for name in data.made)


def given_or_prepared(folder: Path, name: str) -> Path:
    """`folder`/`name` where that is there, else the prepared data of that name, if there is such."""
    given, prepared = folder / name, prepared_root() / name
    return prepared if not given.is_dir() and prepared.is_dir() else given

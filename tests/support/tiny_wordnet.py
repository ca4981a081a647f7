"""A WordNet of a few words of our own, written in WordNet's file format (wndb(5WN)), for nltk's
reader.
"""

from __future__ import annotations

from pathlib import Path

# part of speech -> senses; a sense is the set of its names
SENSES: dict[str, list[tuple[str, ...]]] = {
    "noun": [
        ("boat", "ship", "sailing_vessel"),
        ("ship", "parcel"),
        ("pier", "well-kept_quay", "quay2"),
        ("lamp",),
    ],
    "verb": [("row", "paddle"), ("ship", "send_off")],
    "adj": [("quick", "fast")],
    "adv": [("fast", "quickly")],
}
EXCEPTIONS = {"noun": ["wharves pier"], "verb": [], "adj": [], "adv": []}
_LETTER = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}


def write(folder: Path) -> Path:
    """Write `folder`/corpora/wordnet and return `folder`, ready to be a member of nltk.data.path."""
    root = folder / "corpora" / "wordnet"
    root.mkdir(parents=True)
    lexnames = ["adj.all", "adv.all", "noun.all", "verb.all"]
    numbered = [f"{i:02d}\t{name}\t1\n" for i, name in enumerate(lexnames)]
    (root / "lexnames").write_text("".join(numbered))
    for pos, senses in SENSES.items():
        letter = _LETTER[pos]
        where: dict[str, list[int]] = {}
        data = "  1 Written for a test.\n"
        for names in senses:
            offset = len(data)
            words = " ".join(f"{name} 0" for name in names)
            frames = " 01 + 01 00" if pos == "verb" else ""
            number = lexnames.index(f"{pos}.all")
            data += f"{offset:08d} {number:02d} {letter} {len(names):02x} {words} 000{frames} | a sense\n"
            for name in names:
                where.setdefault(name, []).append(offset)
        (root / f"data.{pos}").write_text(data)
        index = "  1 Written for a test.\n"
        for name, offsets in sorted(where.items()):
            places = " ".join(f"{offset:08d}" for offset in offsets)
            index += f"{name} {letter} {len(offsets)} 0 {len(offsets)} 0 {places}\n"
        (root / f"index.{pos}").write_text(index)
        (root / f"{pos}.exc").write_text("".join(line + "\n" for line in EXCEPTIONS[pos]))
    return folder

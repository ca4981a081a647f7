"""`python tools/croissant.py`: writes harness/embedded/croissant.json, which describes the embedded
data.

Check it with mlcroissant: `mlcroissant validate --jsonld harness/embedded/croissant.json`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "harness" / "embedded"
TARGET = FOLDER / "croissant.json"
KINDS = {float: "sc:Float", int: "sc:Float", bool: "sc:Boolean", str: "sc:Text", list: "sc:Float"}

CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "samplingRate": "cr:samplingRate",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
ABOUT = {
    "@context": CONTEXT,
    "@type": "sc:Dataset",
    "name": "embedded-suite",
    "description": "Original English sentences, scored pairs, documents and labelled texts for comparing sentence "
    "embeddings of a small model. It is no substitute for STS-B, SentEval or MTEB.",
    "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
    "license": "https://creativecommons.org/publicdomain/zero/1.0/",
    "url": "https://creativecommons.org/publicdomain/zero/1.0/",
    "version": "2.0.0",
    "datePublished": "2026-11-23",
    "creator": {"@type": "Organization", "name": "The sentence-harness maintainers"},
    "citeAs": "The embedded suite of sentence-harness, version 2.0.0, 2026.",
    "isLiveDataset": False,
    "rai:dataCollection": "Written for this project by large language models; no sentence comes from a corpus.",
    "rai:dataCollectionType": ["Others"],
    "rai:dataAnnotationProtocol": "Parts a to e: scores and labels of the author alone. Parts f to j: two annotators, "
    "the second one without scores and tags, pairs shuffled and sides swapped at random; the score is the mean.",
    "rai:dataAnnotationAnalysis": [
        "Pearson correlation of the two annotations of parts f to j: 0.97 to 0.98."
    ],
    "rai:annotationsPerItem": "1 in parts a to e, 2 in parts f to j",
    "rai:annotatorDemographics": ["Large language models; no crowd worker took part."],
    "rai:dataUseCases": [
        "Validation and comparison of sentence encoders that were trained on a small model."
    ],
    "rai:dataLimitations": [
        "Small, in standard English; it does not rank methods as public benchmarks do."
    ],
    "rai:dataBiases": ["Both annotators are language models and may share a bias."],
    "rai:dataSocialImpact": "None is known.",
    "rai:personalSensitiveInformation": ["None: no text describes a person who exists."],
    "rai:dataReleaseMaintenancePlan": "The data changes only with a new version of the package.",
}


def field(record: str, name: str, value: Any) -> dict[str, Any]:
    """A field of a record set, read from the column of its file."""
    source = {"fileObject": {"@id": f"{record}.jsonl"}, "extract": {"column": name}}
    more = {"repeated": True} if isinstance(value, list) else {}
    kind = (
        "sc:Float" if name == "score" else KINDS[type(value)]
    )  # some files begin with a whole score
    return {
        "@type": "cr:Field",
        "@id": f"{record}/{name}",
        "name": name,
        "dataType": kind,
        **more,
        "source": source,
    }


def describe() -> str:
    """The whole file as text."""
    files, records = [], []
    for file in sorted(FOLDER.glob("*/*.jsonl")):
        name = file.relative_to(FOLDER).as_posix()
        raw = file.read_bytes()
        files.append(
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "contentSize": f"{len(raw)} B",
                "encodingFormat": "application/jsonlines",
                "sha256": hashlib.sha256(raw).hexdigest(),
            }
        )
        record, first = name.removesuffix(".jsonl"), json.loads(raw.split(b"\n", 1)[0])
        fields = [field(record, key, value) for key, value in first.items()]
        records.append({"@type": "cr:RecordSet", "@id": record, "name": record, "field": fields})
    return (
        json.dumps(
            {**ABOUT, "distribution": files, "recordSet": records}, indent=1, ensure_ascii=False
        )
        + "\n"
    )


if __name__ == "__main__":
    TARGET.write_text(describe(), encoding="utf-8")

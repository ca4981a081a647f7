"""A comparison as one archive: what is in it, what is not, and the same numbers from it again."""

from __future__ import annotations

import io
import json
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.api.repeat import compare_records, count_digits, repeat
from harness.cli import main
from harness.errors import InputError
from harness.files.zips import unpack_zip, write_zip
from harness.results.elsewhere import open_workdir
from harness.results.store import read_comparison_file, read_records
from harness.runs.pack import make_pack
from harness.runs.paths import private_paths
from tests.support import own_files, small_runs
from tests.support.full_disk import room_for

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("few_pairs")]

SECRET = "hf_" + "a1b2c3d4" * 4
TEXTS = "".join(f"Line {n} of the text says {n * n}.\n" for n in range(40))


@pytest.fixture(scope="module")
def packed(few_pairs: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of a comparison on own files; its folder has the files and the work directory."""
    folder = tmp_path_factory.mktemp("home") / "ann"
    folder.mkdir()
    pairs = own_files.pairs_file(folder / "pairs.csv", 90)
    (folder / "domain.txt").write_text(TEXTS)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the tests that repeat it
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        small_runs.compare(
            folder / "work",
            suites=[str(pairs)],
            dev={"task": str(pairs), "share": 0.4},
            corpus=str(folder / "domain.txt"),
            seeds=[1],
            max_steps=2,
        )
        torch.set_num_threads(threads)
        options = ["--workdir", str(folder / "work"), "--out", str(folder / "small.zip")]
        assert main(["pack", "small", *options]) == 0
    return folder / "small.zip"


def contents(archive: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(archive) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_an_archive_repeats_equal_in_another_folder(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copyfile(packed, elsewhere / "theirs.zip")
    monkeypatch.chdir(elsewhere)
    assert main(["reproduce", "theirs.zip"]) == 0
    assert "data/pairs.csv (suite), included" in capsys.readouterr().out
    assert main(["reproduce", "theirs.zip", "--run", "new"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("equal: ")
    old, new = (read_records(work, "small") for work in (packed.parent / "work", Path("new")))
    assert [record.id for record in old] == [record.id for record in new]
    assert small_runs.numbers(old).keys() == small_runs.numbers(new).keys()
    for a, b in zip(old, new, strict=True):
        assert [score.value for score in a.scores] == [score.value for score in b.scores]


def test_the_same_comparison_gives_the_same_bytes(packed: Path, tmp_path: Path) -> None:
    pack = make_pack(packed.parent / "work", "small")
    for name in ("one.zip", "two.zip"):
        write_zip(tmp_path / name, pack.members)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_no_path_of_the_machine_is_in_it(packed: Path) -> None:
    for name, raw in contents(packed).items():
        if not name.endswith(".parquet"):
            text = raw.decode()
            assert str(packed.parent) not in text, name
            assert str(Path.home()) + "/" not in text, name
            assert private_paths(text) == [], name


def test_what_is_in_it(packed: Path) -> None:
    inside = contents(packed)
    manifest = json.loads(inside["pack.json"])
    assert {entry["file"] for entry in manifest["data"]} == {"data/pairs.csv", "data/domain.txt"}
    assert inside["experiment/data/domain.txt"] == TEXTS.encode()
    assert "BSD-3-Clause" in manifest["licences"]["torch"]
    assert manifest["versions"]["torch"]
    assert not any("/model/" in name for name in inside)
    assert "experiment/small.toml" in inside
    weights = make_pack(packed.parent / "work", "small", weights=True)
    assert any(name.endswith("model.safetensors") for name in weights.members)


def test_a_base_model_that_is_a_folder_is_named_as_missing(packed: Path) -> None:
    """The fixture's base model is a folder of this machine, which `embedded:NAME` would not be."""
    remarks = make_pack(packed.parent / "work", "small").remarks
    assert len([text for text in remarks if Path(small_runs.BASE).name in text]) == 1


def test_an_archive_is_read_as_rows_made_elsewhere_and_by_reports(
    packed: Path, tmp_path: Path, capsys: Any
) -> None:
    with open_workdir(packed) as folder:
        file = read_comparison_file(folder, "small")
        assert file is not None
        (listed,) = file.files.values()
        assert (
            Path(listed.settings["task"]).read_bytes() == (packed.parent / "pairs.csv").read_bytes()
        )
    options = ["--workdir", str(packed)]
    assert main(["verdict", "SimCSE", "cls", *options]) == 0
    out = tmp_path / "report"
    assert main(["report", "build", "small", *options, "--out", str(out), "--format", "csv"]) == 0
    assert (out / "data.json").is_file()
    capsys.readouterr()
    assert main(["report", "build", "small", *options]) == 2
    found = small_runs.compare(
        tmp_path / "work",
        suites=[str(packed.parent / "pairs.csv")],
        dev={"task": str(packed.parent / "pairs.csv"), "share": 0.4},
        corpus=str(packed.parent / "domain.txt"),
        seeds=[2],
        max_steps=2,
        against=[packed],
    )
    assert "SimCSE (small)" in found.rows


@pytest.mark.parametrize("room", [0, 300])
def test_a_full_disk_leaves_no_part_of_an_archive(
    packed: Path, tmp_path: Path, room: int, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "all.zip"
    command = ["pack", "small", "--workdir", str(packed.parent / "work"), "--out", str(archive)]
    with room_for(room):
        assert main(command) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(archive) in line
    assert list(tmp_path.iterdir()) == []
    assert main(command) == 0
    assert contents(archive) == contents(packed)


def test_data_is_left_out_and_given_again(packed: Path, tmp_path: Path) -> None:
    archive = tmp_path / "light.zip"
    options = ["--workdir", str(packed.parent / "work"), "--out", str(archive), "--no-data"]
    assert main(["pack", "small", *options]) == 0
    assert not any("/data/" in name for name in contents(archive))
    with pytest.raises(InputError) as refused:
        repeat(archive, tmp_path / "one")
    assert "--data" in str(refused.value.remedy)
    (tmp_path / "theirs").mkdir()
    own_files.pairs_file(tmp_path / "theirs" / "pairs.csv", 80)
    with pytest.raises(InputError) as refused:
        repeat(archive, tmp_path / "two", data=tmp_path / "theirs")
    assert refused.value.file == str(tmp_path / "theirs" / "pairs.csv")
    assert repeat(archive, tmp_path / "three", data=packed.parent).equal


def test_a_digit_that_differs_is_named_with_what_may_be_why(packed: Path) -> None:
    records = read_records(packed.parent / "work", "small")
    scores = [record.scores for record in records]
    other = [
        record.model_copy(
            update={
                "scores": [score.model_copy(update={"value": score.value + 1e-6}) for score in own],
                "environment": {**record.environment, "cpu": "Z80"},
            }
        )
        for record, own in zip(records, scores, strict=True)
    ]
    found = compare_records(records, other)
    assert not found.equal
    assert len(found.differences) == found.scores
    assert any("Z80" in reason for reason in found.reasons)
    assert len(found.reasons) == 1
    text = records[1].model_copy(
        update={"id": "0" * 16, "spec": records[1].spec.model_copy(update={"corpus": None})}
    )
    changed = text.model_copy(update={"scores": other[1].scores})
    assert compare_records(records[1:2], [changed]).reasons == ["the training text is another"]
    assert compare_records(records, records[:1]).differences
    assert compare_records(records, records).equal


@pytest.mark.parametrize(
    ("a", "b", "same"), [(0.76123456, 0.76123999, "5"), (83.1, 83.2, "2"), (0.1, 0.9, "no")]
)
def test_equal_digits_are_counted(a: float, b: float, same: str) -> None:
    assert same in count_digits(a, b)


def test_data_that_has_changed_is_not_packed(packed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(packed.parent, folder)
    (folder / "work" / "comparisons" / "small.json").write_text(
        (packed.parent / "work" / "comparisons" / "small.json").read_text()
    )
    pairs = packed.parent / "pairs.csv"
    before = pairs.read_bytes()
    try:
        pairs.write_bytes(before + b"A cat sleeps.,A cat rests.,4.0\n")
        with pytest.raises(InputError) as refused:
            make_pack(folder / "work", "small")
        assert refused.value.file == str(pairs)
    finally:
        pairs.write_bytes(before)


def test_credentials_and_paths_in_options_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "code"
    script.mkdir()
    (script / "train.py").write_text(COPY)
    for place, key in ((str(script), "key"), ("code", SECRET)):
        work = tmp_path / f"work-{key}"
        row = command_row(place, f"--key={key}")
        small_runs.compare(work, methods=[small_runs.CLS, row], seeds=[1], max_steps=1)
        with pytest.raises(InputError) as refused:
            make_pack(work, "small")
        assert SECRET not in str(refused.value)
    allowed = make_pack(tmp_path / "work-key", "small", paths=True)
    assert allowed.private


COPY = """
import shutil, sys
given = dict(word.split("=", 1) for word in sys.argv[1:])
shutil.copytree(given["--model"], given["--out"])
"""


def command_row(folder: str, further: str = "--x=1") -> dict[str, Any]:
    run = "python train.py --model={base_model} --out={out} --seed={seed} --text={text} " + further
    return {"name": "theirs", "method": "command", "config": {"run": run, "folder": folder}}


def test_code_of_an_archive_runs_with_consent_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    (home / "code").mkdir(parents=True)
    monkeypatch.chdir(home)
    (home / "code" / "train.py").write_text(COPY)
    (home / "my_own_losses.py").write_text(
        "def far(a, b):\n    return (a - b).square().sum(dim=1).mean()\n"
    )
    loss = {
        "name": "far",
        "loss": "my_own_losses:far",
        "config": {"batch_size": 8, "train_length": 12},
    }
    rows = [small_runs.CLS, command_row("code"), loss]
    small_runs.compare(home / "work", methods=rows, seeds=[1], max_steps=1)
    archive = tmp_path / "theirs.zip"
    assert main(["pack", "small", "--workdir", "work", "--out", str(archive)]) == 0
    inside = contents(archive)
    assert inside["experiment/code/train.py"] == COPY.encode()
    assert "experiment/my_own_losses.py" in inside
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.chdir(there)
    capsys.readouterr()
    assert main(["reproduce", str(archive)]) == 0
    shown = capsys.readouterr().out.splitlines()
    code = [line for line in shown if line.startswith("code: ")]
    assert len(code) == 2
    assert all("--allow-code" in line for line in code)
    with pytest.raises(InputError) as refused:
        repeat(archive, there / "new")
    assert "--allow-code" in str(refused.value.remedy)
    assert not (there / "new" / "runs").exists()
    found = repeat(archive, there / "allowed", allow_code=True)
    assert found.differences == []
    assert Path.cwd() == there


BAD: dict[str, Callable[[zipfile.ZipFile], None]] = {
    "above": lambda z: z.writestr("../evil.txt", "x"),
    "absolute": lambda z: z.writestr("/tmp/evil.txt", "x"),
    "drive": lambda z: z.writestr("C:/evil.txt", "x"),
    "backslash": lambda z: z.writestr("runs\\..\\evil.txt", "x"),
    "inside out": lambda z: z.writestr("runs/../../evil.txt", "x"),
    "link": lambda z: z.writestr(_link("runs/link"), "/etc/passwd"),
    "twice": lambda z: (z.writestr("A.txt", "x"), z.writestr("a.txt", "y"))[0],
    "bomb": lambda z: z.writestr("zeros", bytes(1 << 27)),
}


def _link(name: str) -> zipfile.ZipInfo:
    about = zipfile.ZipInfo(name)
    about.external_attr = (stat.S_IFLNK | 0o777) << 16
    return about


@pytest.mark.parametrize("kind", BAD)
def test_an_archive_that_reaches_out_or_explodes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("harness.files.zips._FREE", 1 << 20)
    archive = tmp_path / "bad.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("runs/a.txt", "x")
        BAD[kind](file)
    folder = tmp_path / "deep" / "folder"
    folder.mkdir(parents=True)
    with pytest.raises(InputError) as refused:
        unpack_zip(archive, folder)
    assert refused.value.file == str(archive)
    assert not list(folder.iterdir())
    assert sorted(tmp_path.iterdir()) == [archive, tmp_path / "deep"]


def test_the_stated_size_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.files.zips._FREE", 1 << 20)
    archive = tmp_path / "lies.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", bytes(1 << 26))
    raw = bytearray(archive.read_bytes())
    size = (1 << 26).to_bytes(4, "little")
    while (place := raw.find(size)) >= 0:
        raw[place : place + 4] = (100).to_bytes(4, "little")
    archive.write_bytes(raw)
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError):
        unpack_zip(archive, tmp_path / "folder")
    assert sum(file.stat().st_size for file in (tmp_path / "folder").rglob("*")) <= 1 << 20


@pytest.mark.parametrize("damage", ["cut", "text", "no manifest", "tar bomb"])
def test_what_is_no_sound_archive_is_one_line(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, damage: str
) -> None:
    archive = tmp_path / "bad.zip"
    raw = packed.read_bytes()
    if damage == "cut":
        archive.write_bytes(raw[: len(raw) // 2])
    elif damage == "text":
        archive.write_text("PK, but a text")
    elif damage == "no manifest":
        write_zip(archive, {"runs/a.txt": b"x"})
    else:
        monkeypatch.setattr("harness.files.zips._FREE", 1 << 20)
        with tarfile.open(archive, "w:xz") as tar:
            about = tarfile.TarInfo("runs/zeros")
            about.size = 1 << 26
            tar.addfile(about, io.BytesIO(bytes(about.size)))
        with pytest.raises(InputError), open_workdir(archive):
            pass
    assert main(["reproduce", str(archive), "--run", str(tmp_path / "new")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("harness: ")


@pytest.mark.parametrize("name", ["record.json", "examples.parquet"])
def test_a_number_that_was_changed_in_an_archive_is_found(
    packed: Path, tmp_path: Path, capsys: Any, name: str
) -> None:
    files = contents(packed)
    changed = min(file for file in files if file.endswith(name))
    value = b'"value": '
    if name == "record.json":
        assert value in files[changed]
        files[changed] = files[changed].replace(value, value + b"1", 1)
    else:
        files[changed] = files[min(set(files) - {changed}, key=len)]
    archive = tmp_path / "changed.zip"
    write_zip(archive, files)
    for command in (
        ["reproduce", str(archive)],
        ["reproduce", str(archive), "--run", str(tmp_path / "new")],
        ["verdict", "SimCSE", "cls", "--workdir", str(archive)],
    ):
        assert main(command) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert str(archive) in line
        assert changed in line


@pytest.mark.parametrize("reach", ["../../secret.txt", "/etc/hostname"])
def test_an_experiment_of_an_archive_reads_its_own_files_alone(
    packed: Path, tmp_path: Path, reach: str
) -> None:
    members = dict(contents(packed))
    text = members["experiment/small.toml"].decode()
    members["experiment/small.toml"] = text.replace("data/domain.txt", reach).encode()
    assert text.encode() != members["experiment/small.toml"]
    archive = tmp_path / "reaching.zip"
    write_zip(archive, members)
    with pytest.raises(InputError) as refused:
        repeat(archive, tmp_path / "new")
    assert refused.value.file == str(archive)


def test_names_from_the_folder_of_the_command_are_found_from_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    own_files.pairs_file(home / "pairs.csv", 60)
    (home / "domain.txt").write_text(TEXTS)
    settings = {"suites": ["pairs.csv"], "dev": "pairs.csv", "corpus": "domain.txt"}
    small_runs.compare(Path("work"), **settings, seeds=[1], max_steps=1)
    monkeypatch.chdir(tmp_path)
    pack = make_pack(Path("home/work"), "small")
    assert [entry["file"] for entry in pack.manifest["data"]] == [
        "data/pairs.csv",
        "data/domain.txt",
    ]
    archive = tmp_path / "small.zip"
    write_zip(archive, pack.members)
    write_zip(tmp_path / "other.zip", {**pack.members, "more.txt": b"x"})
    shutil.move(home / "domain.txt", home / "other.txt")
    with pytest.raises(InputError) as refused:
        make_pack(Path("home/work"), "small")
    assert refused.value.file == "domain.txt"
    shutil.rmtree(home)
    assert repeat(archive, tmp_path / "new").equal
    # The same call again finds its runs; another archive is another folder's.
    begun = {record.id: record.finished for record in read_records(tmp_path / "new", "small")}
    assert repeat(archive, tmp_path / "new").equal
    again = {record.id: record.finished for record in read_records(tmp_path / "new", "small")}
    assert again == begun
    with pytest.raises(InputError) as refused:
        repeat(tmp_path / "other.zip", tmp_path / "new")
    assert refused.value.key == "--run"


@pytest.mark.parametrize(
    "manifest",
    [
        b"[1",
        b"[]",
        b"{}",
        b'{"comparison": "../../x"}',
        b'{"comparison": "small", "data": 3}',
        b'{"comparison": "small", "data": [{"file": "../../../etc/hosts"}]}',
        b'{"comparison": "small", "plugins": [{"group": "x", "name": "y", "value": "os:system"}]}',
    ],
)
def test_a_manifest_that_is_none_is_one_line(packed: Path, tmp_path: Path, manifest: bytes) -> None:
    archive = tmp_path / "bad.zip"
    write_zip(archive, {**contents(packed), "pack.json": manifest})
    with pytest.raises(InputError) as refused:
        repeat(archive, tmp_path / "new")
    assert refused.value.file in (str(archive), "pack.json")
    assert not (tmp_path / "new").exists(), "the next call may use the folder"

"""The hub as a source: what it does when the hub, a data set or a file is not there."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.encoder.layout import no_model
from harness.errors import InputError, RunError
from harness.sources import load_corpus
from harness.sources.remote.hub import check_downloads

REPOSITORY = "hf://datasets/princeton-nlp/datasets-for-simcse"
PROBE = """
from harness.errors import InputError
from harness.sources import load_corpus, load_sts
for job in (
    lambda: load_corpus("wiki1m"),
    lambda: load_sts("STS12", source="senteval"),
    lambda: load_sts("STS12", source="mteb"),
):
    try:
        job()
    except InputError as error:
        print(error)
"""


def _unreachable(folder: Path, **more: str) -> list[str]:
    """The three lines of PROBE in a fresh process with an empty cache and a hub that refuses
    connections.
    """
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("HF_", "HUGGINGFACE"))
    }
    environment |= {"HF_HOME": str(folder / "hf"), "HARNESS_CACHE": str(folder / "cache")}
    environment |= {"HF_ENDPOINT": "http://127.0.0.1:9", **more}
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_hub_out_of_reach_is_one_line_that_names_the_data_set_and_the_remedy(
    tmp_path: Path,
) -> None:
    lines = _unreachable(tmp_path)
    assert len(lines) == 3
    assert lines[0].startswith(f"{REPOSITORY}/wiki1m_for_simcse.txt: ")
    assert lines[1].startswith(f"{REPOSITORY}/senteval.tar: ")
    assert lines[2].startswith("hf://datasets/mteb/sts12-sts ")
    assert all(
        "the hub at http://127.0.0.1:9 cannot be reached" in line and "HF_ENDPOINT" in line
        for line in lines
    )


class Breaking(BaseHTTPRequestHandler):
    """A hub with one file of a million bytes, whose connection breaks in the middle of it, as `how`
    says.
    """

    how = ""

    def do_HEAD(self) -> None:
        self.send_response(200)
        for name, value in (
            ("ETag", '"abc"'),
            ("X-Repo-Commit", "a" * 40),
            ("Content-Length", "1000000"),
        ):
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self) -> None:
        if self.how == "garbled":
            self.wfile.write(b"no protocol at all")
        else:
            self.do_HEAD()
            self.wfile.write(b"a line of text\n" * 100)
        if self.how == "silent":
            time.sleep(5)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("how", ["cut", "garbled", "silent"])
def test_a_connection_that_breaks_is_one_line_and_no_wrong_input(tmp_path: Path, how: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Hub", (Breaking,), {"how": how}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("HF_", "HUGGINGFACE"))
    }
    environment |= {
        "HF_HOME": str(tmp_path / "hf"),
        "HARNESS_CACHE": str(tmp_path / "cache"),
        "HF_HUB_DISABLE_XET": "1",
    }
    environment |= {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    environment["HF_HUB_DOWNLOAD_TIMEOUT"] = (
        "1"  # seconds of silence, after which huggingface_hub tries again, 5 times
    )
    code = (
        "from harness.errors import RunError\nfrom harness.sources import load_corpus\n"
        "try: load_corpus('wiki1m')\n"
        "except RunError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=600
    )
    server.shutdown()
    assert done.returncode == 0, done.stderr
    assert "the connection to the hub broke" in done.stdout
    assert done.stdout.count("\n") == 1


def test_offline_mode_is_named(tmp_path: Path) -> None:
    lines = _unreachable(tmp_path, HF_HUB_OFFLINE="1")
    assert len(lines) == 3
    assert all("not in the local cache, and HF_HUB_OFFLINE is set" in line for line in lines)


@pytest.mark.hub
@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        (
            "hf://datasets/nobody-at-all-here/nothing/x.txt",
            "the hub has no data set nobody-at-all-here/nothing",
        ),
        (f"{REPOSITORY}/nothing.txt", "has no such file"),
        (f"{REPOSITORY}/../x.txt", "cannot contain"),
        ("hf://datasets/-/nothing/x.txt", "Repo id"),
    ],
)
def test_what_the_hub_does_not_have_is_one_line(uri: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load_corpus(uri)
    message = str(caught.value)
    assert problem in message
    assert message.startswith(uri)
    assert "\n" not in message


# b"weights" by sha256sum, by git hash-object and by sha1sum
HASHES = (
    "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c",
    "3ab313fff6f41bb35969cd359e9ddfb8033b3ac2",
    "5cab97f5a209481481ceb0b3c9dab9cba6bd17ce",
)


@pytest.mark.parametrize("name", HASHES)
def test_files_that_were_garbled_on_their_way_are_removed(tmp_path: Path, name: str) -> None:
    """The hub's cache names a file by its hash, and links to it."""
    started = time.time() - 1
    other = name[::-1]
    links = [tmp_path / file for file in ("sound", "garbled", "garbled as well")]
    for link, blob in zip(links, (name, other, other[1:] + other[0]), strict=True):
        (tmp_path / blob).write_bytes(b"weights")
        link.symlink_to(blob)
    check_downloads(links[:1], started)
    check_downloads(links, time.time() + 60)  # downloaded before: checked then
    with pytest.raises(RunError, match="garbled, garbled as well: "):
        check_downloads(links, started)
    assert [link.exists() for link in links] == [True, False, False]


def test_a_name_that_is_no_hash_says_nothing_about_a_file(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"weights")
    check_downloads([tmp_path / "abc"])
    assert (tmp_path / "abc").exists()


def test_what_is_garbled_in_the_cache_is_removed_when_it_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--org--name" / "snapshots" / "0"
    snapshot.mkdir(parents=True)
    blob = tmp_path / ("0" * 40)
    blob.write_bytes(b"\xff")
    (snapshot / "config.json").symlink_to(blob)
    with pytest.raises(RunError, match=r"config\.json"):
        no_model("org/name", ValueError("not JSON"))
    assert not (snapshot / "config.json").exists()
    assert "not JSON" in str(no_model("org/name", ValueError("not JSON")))

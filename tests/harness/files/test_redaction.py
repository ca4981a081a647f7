"""Credentials do not reach a terminal, a log, a record or a report."""

from __future__ import annotations

import pytest

from harness.files.printable import redacted

TOKEN = "hf_" + "a1B2" * 8

CASES = {
    "postgresql://me:secret@host/db": "postgresql://***@host/db",
    "postgresql://me:se/cr@et@host:5432/db": "postgresql://***@host:5432/db",
    "postgresql://me:s?c=r&t:x@host/db": "postgresql://***@host/db",
    "mysql+pymysql://me:p%40ss@host/db": "mysql+pymysql://***@host/db",
    "http://TOKEN@host": "http://***@host",
    "https://me:@host/path": "https://***@host/path",
    "https://host/db?password=secret": "https://host/db?password=***",
    "https://host/db?user=me&password=secret&sslmode=require": "https://host/db?user=me&password=***&sslmode=require",
    "https://host?token=secret#there": "https://host?token=***",
    "https://host?access_token=secret": "https://host?access_token=***",
    "https://host?api_key=secret;x=1": "https://host?api_key=***;x=1",
    "s3://bucket/key?X-Amz-Signature=secret": "s3://bucket/key?X-Amz-Signature=***",
    "host=db user=me password=secret dbname=x": "host=db user=me password=*** dbname=x",
    "host=db password='two words' dbname=x": "host=db password=*** dbname=x",
    f"Authorization failed for {TOKEN} at the hub": "Authorization failed for *** at the hub",
    "(to https://a:secret@b/c, then http://secret@d)": "(to https://***@b/c, then http://***@d)",
}
UNTOUCHED = (
    "http://127.0.0.1:5000",
    "sqlite:////home/me@work/mlflow.db",
    "hf://datasets/ORG/NAME@main/file.txt",
    "file:///tmp/a@b",
    'unknown key "token"; known keys: max_tokens=5, tokens',
    "mail a@b.org",
)


@pytest.mark.parametrize("text", CASES)
def test_what_may_be_a_credential_is_hidden(text: str) -> None:
    assert redacted(text) == CASES[text]
    assert redacted(CASES[text]) == CASES[text]


@pytest.mark.parametrize("text", UNTOUCHED)
def test_what_is_none_stays(text: str) -> None:
    assert redacted(text) == text

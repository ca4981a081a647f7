"""Credentials do not reach a terminal, a log, a record or a report."""

from __future__ import annotations

import time

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
CASES |= {
    "token: AAAA": "token: ***",
    "Authorization: Bearer BBBB": "Authorization: ***",
    "{'Authorization': 'Basic dTpw', 'n': 1}": "{'Authorization': '***', 'n': 1}",
    "Cookie: session=1; user=me": "Cookie: ***",
    "got Bearer a1.b2-c3 back": "got Bearer *** back",
    '{"api_key":"k","n":1}': '{"api_key":***,"n":1}',
    "'token': 'two words'": "'token': ***",
    "X-Api-Key: abc": "X-Api-Key: ***",
    "password: hunter for me": "password: *** for me",
    "/run/password: hunter": "/run/password: ***",
    '{"password": "known here"}': '{"password": ***}',
    '{"password": hunter}': '{"password": ***}',
    '{"password": Hunter here}': '{"password": *** here}',
    'client_secret = "a b"': "client_secret = ***",
    "clientSecret: abc": "clientSecret: ***",
    "OPENAI_API_KEY=abc-1": "OPENAI_API_KEY=***",
    "curl --token A1 --seed 1": "curl --token *** --seed 1",
    "no access with sk-proj-Ab1cdEfghij_k": "no access with ***",
    f"ghp_{'a1' * 18} and github_pat_{'a1' * 20}": "*** and ***",
    f"glpat-{'a1' * 10}, xoxb-12345678-abc": "***, ***",
    "AKIAIOSFODNN7EXAMPLE": "***",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln": "***",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\n.": "***\n.",
}
UNTOUCHED = (
    "http://127.0.0.1:5000",
    "sqlite:////home/me@work/mlflow.db",
    "hf://datasets/ORG/NAME@main/file.txt",
    "file:///tmp/a@b",
    'unknown key "token"; known keys: max_tokens=5, tokens',
    "mail a@b.org",
    "methods.own.token: expected a number, not text",
    "a bearer of news",
    "the task-based scikit-learn-1 run",
    "tokens: 512, tokenizer: bert",
    "/etc/passwd: cannot be read",
    r"C:\share\secret: cannot be opened",
    "work/token: Not a directory",
    "cannot be read: '/a/secret': Is a directory",
    "auth: File exists; name another",
    "/x/password: Permission denied",
    'no row "passwd": known rows are "a" and "b"',
    "the column 'password': neither text nor a number",
)


@pytest.mark.parametrize("text", CASES)
def test_what_may_be_a_credential_is_hidden(text: str) -> None:
    assert redacted(text) == CASES[text]
    assert redacted(CASES[text]) == CASES[text]


@pytest.mark.parametrize("text", UNTOUCHED)
def test_what_is_none_stays(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    "text", ["a-", "a_", "a", "token: ", "http://a", "-----BEGIN PRIVATE KEY-----"]
)
def test_a_long_text_takes_no_longer_than_its_length(text: str) -> None:
    started = time.process_time()
    redacted(text * (400_000 // len(text)))
    assert time.process_time() - started < 10  # of backtracking it would be hours

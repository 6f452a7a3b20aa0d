"""Starts a Gatehouse as a process of its own, and stops it after the last test."""

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import httpx
import pytest

AUDIENCE = "https://api.example.test/"


@pytest.fixture(scope="session")
def gatehouse(tmp_path_factory):
    """The domain of a Gatehouse with config/tenant.yaml, on a free port, with new data."""
    data = tmp_path_factory.mktemp("gatehouse")
    process = subprocess.Popen(
        shlex.split(os.environ.get("GATEHOUSE", "node ../../src/main.js")),
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "PORT": "0", "DATA_DIR": str(data)},
        stdout=subprocess.PIPE,
        text=True,
        # A group of its own: npx starts another process.
        start_new_session=True,
    )
    try:
        # Its log is JSON, a line for each event.
        events = (json.loads(line) for line in process.stdout)
        url = next((event["url"] for event in events if event["msg"] == "listening"), None)
        assert url is not None, "Gatehouse has ended: its output says why"
        # Somebody has to read what else it logs.
        Thread(target=lambda: list(process.stdout), daemon=True).start()
        # For the HTTP client of the API, and that of the tests.
        os.environ["SSL_CERT_FILE"] = str(data / "tls" / "ca.pem")
        yield urlsplit(url).netloc
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)


@pytest.fixture
def token_of(gatehouse):
    """Returns the access token of a user."""

    def token_of(email, scope="read:notes write:notes"):
        answer = httpx.post(
            f"https://{gatehouse}/oauth/token",
            data={
                "grant_type": "password",
                "client_id": "tests",
                "client_secret": "tests-example-secret",
                "username": email,
                "password": "Gatehouse-1",
                "audience": AUDIENCE,
                "scope": scope,
            },
        )
        answer.raise_for_status()
        return answer.json()["access_token"]

    return token_of

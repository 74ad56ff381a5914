# SPDX-License-Identifier: MIT
"""The examples do what they say."""

import http.client
import os
import re
import subprocess
import sys

import pytest
from http_reading import Answer

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(HERE)), "examples")


def run(name, *arguments, **environment):
    done = subprocess.run([sys.executable, os.path.join(EXAMPLES, name), *arguments],
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def web():
    """The port of the WSGI example."""
    command = [sys.executable, os.path.join(EXAMPLES, "limited_wsgi.py"), "memory:", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as process:
        try:
            yield int(re.search(r":(\d+)/", process.stdout.readline())[1])
        finally:
            process.kill()


def fetch(port, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/", headers=headers)
        answer = connection.getresponse()
        return Answer(answer.status, answer.getheaders(), answer.read())
    finally:
        connection.close()


def test_wsgi(web):
    first = fetch(web, **{"X-Api-Key": "alice"})
    assert first.status == 200 and first.body == b"hello, 5 left\n"
    assert {name: item["r"] for name, item in first.left.items()} == {"ip": 5, "key": 50}
    assert fetch(web).policy == {"ip": {"q": 6, "w": 3}}


def test_asgi():
    lines = run("limited_asgi.py").splitlines()
    assert lines[0].startswith('200 ratelimit: "ip";r=5')
    assert sum(line.startswith("200") for line in lines) == 8
    assert sum(line.startswith("429 retry-after: 1") for line in lines) == 2


@pytest.mark.parametrize("store", ["memory:", "server"])
def test_polite(store, request, own_server):
    lines = run("polite.py", own_server.url() if store == "server" else store).splitlines()
    assert len(lines) == 61
    assert sum(" after " in line and "rejected" not in line for line in lines) == 60
    assert 0.5 < float(lines[-1].split()[0]) < 10

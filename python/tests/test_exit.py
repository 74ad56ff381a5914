# SPDX-License-Identifier: MIT
"""Interpreters that end while daemon threads have requests in flight: no crash, nobody hangs."""

import subprocess
import sys

import pytest

import server as servers

PROGRAM = """
import socket, sys, threading, time
import redbucket

kind, where = sys.argv[1:3]
if kind == "silent":
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    where = "redis://127.0.0.1:%d?timeout=30" % listener.getsockname()[1]
limiter = redbucket.from_url(where)
limiter.configure(a=redbucket.RateLimit(redbucket.Zone("z", 1e6), burst=1e6))
answered = threading.Event()

def press():
    while True:
        try:
            limiter.request(a="k")
            limiter.request_many([{"a": "k"}] * 20)
            limiter.acquire(a="k")
        except redbucket.StoreError:
            pass
        answered.set()

for _ in range(8):
    threading.Thread(target=press, daemon=True).start()
if kind == "silent":
    time.sleep(.2)
else:
    answered.wait(20)
print("ends", flush=True)
if sys.argv[3] == "closes":
    limiter.close()
"""


@pytest.fixture(scope="module")
def tls_server():
    with servers.Server("redis", tls=True) as server:
        yield server


@pytest.mark.parametrize("how", ["leaves", "closes"])
@pytest.mark.parametrize("kind", ["memory", "shared", "server", "tls", "silent"])
def test_exit(kind, how, server_url, tls_server, shared_name):
    where = {"memory": "memory:", "shared": f"shm:{shared_name}?size=1m", "server": server_url,
             "tls": tls_server.url("rediss"), "silent": "-"}[kind]
    for _ in range(5):
        done = subprocess.run([sys.executable, "-X", "dev", "-W", "ignore", "-c", PROGRAM, kind, where, how],
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        assert done.stdout == b"ends\n" and done.returncode == 0, done.stderr.decode()


def test_unused_limiters_leave_nothing_behind():
    script = ("import redbucket as r\n"
              "for _ in range(200):\n"
              "    r.RedisRateLimiter('redis://192.0.2.1'); r.InMemoryRateLimiter()\n"
              "import os; print(len(os.listdir('/proc/self/fd')))")
    done = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE)
    assert int(done.stdout) < 20

# SPDX-License-Identifier: MIT
"""What the pages about Python show can be run as it stands."""

import ast
import asyncio
import inspect
import os
import re

import pytest

import redbucket
from redbucket import InMemoryRateLimiter, RateLimit, Rejected, Zone

HERE = os.path.dirname(os.path.abspath(__file__))
PAGES = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs")


def blocks_of(page):
    with open(os.path.join(PAGES, page), encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    assert blocks
    return blocks


class Sent:
    """What may be awaited, and needn't."""

    def __await__(self):
        return iter(())


async def run(block, names):
    code = compile(block, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    done = eval(code, names)
    if inspect.iscoroutine(done):
        await done


def names_of(**more):
    names = {name: getattr(redbucket, name) for name in redbucket.__all__}
    names["RedisRateLimiter"] = lambda url: InMemoryRateLimiter()  # no server is needed to read it
    return {**names, **more}


def test_web(monkeypatch):
    monkeypatch.setattr(redbucket, "RedisRateLimiter", lambda url: InMemoryRateLimiter())
    said = []

    def app(environ, start_response):
        said.append(environ["redbucket.response"].remaining)
        return []

    names = names_of(app=app)
    for block in blocks_of("python-web.md"):
        asyncio.run(run(block, names))
    names["app"]({"REMOTE_ADDR": "192.0.2.7", "HTTP_X_API_KEY": "k"}, lambda *_: None)
    assert said == [20]
    assert names["keys"]({"PATH_INFO": "/health/1"}) is None
    assert names["keys"]({"PATH_INFO": "/", "REMOTE_ADDR": "192.0.2.7"}) == {"ip": "192.0.2.7", "path": "/"}


def test_asyncio():
    class User:
        id = "alice"
        path, weight = "/", 2

    names = names_of(send=lambda *_: Sent())
    first, *others = blocks_of("python-asyncio.md")
    asyncio.run(run(first, names))
    assert names["accepted"] is True and len(names["responses"]) == 2
    assert names["responses"][1].remaining == 9
    limiter = names["limiter"] = InMemoryRateLimiter()
    limiter.configure({name: RateLimit(Zone(name, 1e-3, expiry=0), burst=4)
                       for name in ("user", "mail", "path")})

    async def use():
        for block in others:
            await run(block, names)
        names["send"](User, "text")
        await names["handle"](User)

    asyncio.run(use())
    left = {name: limiter.peek({name: key}).remaining for name, key in (
        ("mail", "alice@example.org"), ("user", "alice"), ("path", "/"))}
    assert left == {"mail": 2, "user": 3, "path": 2}
    limiter.request(user="alice", cost=4)
    with pytest.raises(Rejected):
        limiter.limited(user="alice", timeout=0)(lambda: None)()


def test_python(capsys):
    for block in blocks_of("python.md"):
        asyncio.run(run(block, {}))
    assert capsys.readouterr().out == ""


def test_readme(server_url, key_format, monkeypatch):
    """The one that is Python, with a server that is there."""
    limiter = redbucket.RedisRateLimiter(server_url, key_format)
    monkeypatch.setattr(redbucket, "from_url", lambda url: limiter)
    names = {}
    block, = blocks_of("../README.md")
    asyncio.run(run(block, names))
    response = names["response"]
    assert response.accepted is True and response.delay == 0 and response.remaining == 2

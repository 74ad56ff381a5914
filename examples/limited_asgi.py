# SPDX-License-Identifier: MIT
"""An ASGI application with limits in front of it.

    uvicorn --app-dir examples limited_asgi:app     under a server, whichever you have
    python3 limited_asgi.py                         asks itself ten times, without one

The store is $STORE, such as redis://localhost, or this process's memory.
"""

import asyncio
import os

from redbucket import RateLimit, Zone, from_url
from redbucket.asgi import RateLimitMiddleware, client_address


async def hello(scope, receive, send):
    permit = scope["redbucket.response"]
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-type", b"text/plain; charset=utf-8")]})
    await send({"type": "http.response.body", "body": f"hello, {permit.remaining} left".encode()})


limiter = from_url(os.environ.get("STORE", "memory:"))
limiter.configure(ip=RateLimit(Zone("ip", rate=2), burst=5, delay=2))
app = RateLimitMiddleware(hello, limiter, {"ip": client_address})


async def ask():
    """What a server does for a request: here the answer is printed."""
    async def send(message):
        if message["type"] == "http.response.start":
            fields = {name.decode(): value.decode() for name, value in message["headers"]}
            told = [f"{name}: {fields[name]}" for name in ("retry-after", "ratelimit")
                    if name in fields]
            print(message["status"], ", ".join(told))

    await app({"type": "http", "method": "GET", "headers": [], "client": ("192.0.2.7", 1)},
              None, send)


async def main():
    await asyncio.gather(*(ask() for _ in range(10)))


if __name__ == "__main__":
    asyncio.run(main())

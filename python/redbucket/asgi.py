# SPDX-License-Identifier: MIT
"""Limits in front of an ASGI application, on asyncio.

    app = RateLimitMiddleware(app, limiter, {"ip": client_address, "key": header("X-Api-Key")})

Rejected requests are answered 429 and don't reach the application; header fields tell all clients
what they have left. Only HTTP is limited: other scopes pass as they are.
"""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, Dict, Iterable, Optional, Tuple, Union

from ._http import FIELDS, Gate, Head, text_of
from ._rules import Rules
from .addresses import network_of
from .aio import AsyncRateLimiter
from .base import StoreRateLimiter
from .data import Response
from .errors import StoreError

__all__ = ("RateLimitMiddleware", "client_address", "header", "user")

Scope = Any  # a mutable mapping; frameworks have classes of their own for it
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
KeyFunction = Callable[[Scope], Optional[str]]


def client_address(scope: Scope) -> Optional[str]:
    """The address that the connection comes from, of IPv6 its network; None when there is none, as
    on a Unix socket. Behind a proxy that is the proxy's, unless the server was told to trust it."""
    client = scope.get("client")
    address = text_of(client[0]) if client else None
    return None if address is None else network_of(address)


def header(name: str) -> KeyFunction:
    """A rule: the value of a header field, which any client can choose; None when it has none."""
    wanted = name.lower().encode("latin-1")

    def key(scope: Scope) -> Optional[str]:
        values = [bytes(value) for field, value in scope.get("headers", ())
                  if bytes(field).lower() == wanted]
        return text_of(b",".join(values).decode("latin-1"))

    return key


def user(scope: Scope) -> Optional[str]:
    """The user whom a middleware around this one has authenticated and put into the scope: text,
    or an object with ``is_authenticated``, and a ``username`` or ``display_name``. None without."""
    who = scope.get("user")
    if who is None or isinstance(who, str):
        return text_of(who)
    if not getattr(who, "is_authenticated", True):
        return None
    return text_of(getattr(who, "username", None) or getattr(who, "display_name", None))


class RateLimitMiddleware:
    """Asks for a permit before it passes a request on.

    ``limiter`` may be either kind of limiter; asking doesn't block the loop. ``keys`` is a mapping
    from the names of limits to rules: each a function of the scope that says the key, or None to
    leave the limit out of this request, or the key itself. Or it is one function that says a
    mapping from limits to keys. A request without any key passes.

    ``cost`` of a request is a number, or a function of the scope. A delay is awaited, up to
    ``max_delay`` seconds (None: however long); a longer one is a rejection. ``on_error`` is for
    when the store fails: "fail" answers 503, "open" lets requests pass unlimited; a policy of the
    limiter's own comes before it. ``fields`` are the names of the header fields to tell.

    The application finds its permit in the scope, as ``redbucket.response``.
    """

    def __init__(self, app: Application, limiter: Union[StoreRateLimiter, AsyncRateLimiter],
                 keys: Rules, *, cost: Union[float, Callable[[Scope], float]] = 1.0,
                 max_delay: Optional[float] = 10.0, on_error: str = "fail",
                 fields: Iterable[str] = FIELDS) -> None:
        self.app = app
        self._limiter = limiter if isinstance(limiter, AsyncRateLimiter) else limiter.aio
        self._gate = Gate(self._limiter.limiter, keys, cost=cost, max_delay=max_delay,
                          on_error=on_error, fields=fields)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        keys = self._gate.keys_of(scope) if scope["type"] == "http" else None
        head: Optional[Head] = None
        if keys:
            try:
                head, scope["redbucket.response"] = await self._ask(scope, keys)
            except StoreError as error:
                head = self._gate.failure(error, keys)
        if head is None:
            await self.app(scope, receive, send)
        elif head.status == 200:
            await self.app(scope, receive, telling(head, send))
        else:
            await refuse(head, scope, send)

    async def _ask(self, scope: Scope, keys: Dict[str, Any]) -> Tuple[Head, Response]:
        """The answer once its delay is over."""
        cost = self._gate.cost_of(scope)
        response = await self._limiter.request(keys, cost=cost)
        if self._gate.is_late(response):
            response = self._gate.late(response, await self._give_back(response, keys, cost))
        head = self._gate.head(response)
        if response.accepted and response.delay > 0:
            try:
                await asyncio.sleep(response.delay)
            except BaseException:
                self._limiter.give_back_soon(response, keys, cost=cost)
                raise
        return head, response

    async def _give_back(self, response: Response, keys: Dict[str, Any],
                         cost: float) -> Optional[Response]:
        try:
            return await self._limiter.give_back(response, keys, cost=cost)
        except StoreError:
            return None


async def refuse(head: Head, scope: Scope, send: Send) -> None:
    body = b"" if scope.get("method") == "HEAD" else head.body
    await send({"type": "http.response.start", "status": head.status,
                "headers": [encoded(field) for field in head.headers()]})
    await send({"type": "http.response.body", "body": body})


def encoded(field: Tuple[str, str]) -> Tuple[bytes, bytes]:
    return field[0].lower().encode("ascii"), field[1].encode("ascii")


def telling(head: Head, send: Send) -> Send:
    """Of an application's answer: the same with our fields behind its own."""

    async def tell(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            present = (bytes(name).decode("latin-1") for name, _ in headers)
            headers += [encoded(field) for field in head.missing(present)]
            message = {**message, "headers": headers}
        await send(message)

    return tell

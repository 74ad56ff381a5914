# SPDX-License-Identifier: MIT
"""Limits in front of a WSGI application.

    app = RateLimitMiddleware(app, limiter, {"ip": client_address, "key": header("X-Api-Key")})

Rejected requests are answered 429 and don't reach the application; header fields tell all clients
what they have left.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

from ._http import FIELDS, Gate, Head, text_of
from ._rules import Rules
from .addresses import network_of
from .base import StoreRateLimiter
from .data import Response
from .errors import StoreError

__all__ = ("RateLimitMiddleware", "client_address", "header", "remote_user")

Environ = Dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]
KeyFunction = Callable[[Environ], Optional[str]]


def client_address(environ: Environ) -> Optional[str]:
    """The address that the connection comes from, of IPv6 its network; None when there is none, as
    on a Unix socket. Behind a proxy that is the proxy's, unless the server was told to trust it."""
    address = text_of(environ.get("REMOTE_ADDR"))
    return None if address is None else network_of(address)


def remote_user(environ: Environ) -> Optional[str]:
    """The user whom the server has authenticated, or None."""
    return text_of(environ.get("REMOTE_USER"))


def header(name: str) -> KeyFunction:
    """A rule: the value of a header field, which any client can choose; None when it has none."""
    variable = name.upper().replace("-", "_")
    if variable not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        variable = "HTTP_" + variable
    return lambda environ: text_of(environ.get(variable))


class RateLimitMiddleware:
    """Asks for a permit before it passes a request on.

    ``keys`` is a mapping from the names of limits to rules: each a function of the environment that
    says the key, or None to leave the limit out of this request, or the key itself. Or it is one
    function that says a mapping from limits to keys. A request without any key passes.

    ``cost`` of a request is a number, or a function of the environment. A delay is slept in the
    server's thread, up to ``max_delay`` seconds (None: however long); a longer
    one is a rejection. ``on_error`` is for when the store fails: "fail" answers 503, "open" lets
    requests pass unlimited; a policy of the limiter's own comes before it. ``fields`` are the names
    of the header fields to tell.

    The application finds its permit in the environment, as ``redbucket.response``.
    """

    def __init__(self, app: Application, limiter: StoreRateLimiter, keys: Rules, *,
                 cost: Union[float, Callable[[Environ], float]] = 1.0, max_delay: Optional[float] = 10.0,
                 on_error: str = "fail", fields: Iterable[str] = FIELDS) -> None:
        self.app = app
        self._limiter = limiter
        self._gate = Gate(limiter, keys, cost=cost, max_delay=max_delay, on_error=on_error,
                          fields=fields)

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        keys = self._gate.keys_of(environ)
        head: Optional[Head] = None
        if keys:
            try:
                head, environ["redbucket.response"] = self._ask(environ, keys)
            except StoreError as error:
                head = self._gate.failure(error, keys)
        if head is None:
            return self.app(environ, start_response)
        if head.status == 200:
            return self.app(environ, telling(head, start_response))
        return refuse(head, environ, start_response)

    def _ask(self, environ: Environ, keys: Dict[str, Any]) -> Tuple[Head, Response]:
        """The answer once its delay is slept out."""
        cost = self._gate.cost_of(environ)
        response = self._limiter.request(keys, cost=cost)
        if self._gate.is_late(response):
            response = self._gate.late(response, self._give_back(response, keys, cost))
        head = self._gate.head(response)
        if response.accepted and response.delay > 0:
            try:
                time.sleep(response.delay)
            except BaseException:
                self._give_back(response, keys, cost)
                raise
        return head, response

    def _give_back(self, response: Response, keys: Dict[str, Any],
                   cost: float) -> Optional[Response]:
        try:
            return self._limiter.give_back(response, keys, cost=cost)
        except StoreError:
            return None


def refuse(head: Head, environ: Environ, start_response: Callable[..., Any]) -> List[bytes]:
    start_response(head.line(), head.headers())
    return [] if environ.get("REQUEST_METHOD") == "HEAD" else [head.body]


def telling(head: Head, start_response: Callable[..., Any]) -> Callable[..., Any]:
    """Of an application's answer: the same with our fields behind its own."""

    def start(status: str, headers: List[Tuple[str, str]], *exc_info: Any) -> Any:
        more = head.missing(name for name, _ in headers)
        return start_response(status, [*headers, *more], *exc_info)

    return start

# SPDX-License-Identifier: MIT
"""What the middlewares have in common: whom a request is counted for, and what is told of it.

Nothing here asks a store or waits, since that is where the two kinds differ; and no header field is
put together here, since the library does that.
"""

from __future__ import annotations

import logging
import math
from http import HTTPStatus
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from . import _core
from ._rules import Rules, chosen, keys_by
from .base import StoreRateLimiter
from .data import Response
from .errors import KeyTooLongError, StoreError

__all__ = ("FIELDS", "Gate", "Head", "text_of")

FIELDS = ("Retry-After", "RateLimit", "RateLimit-Policy")
PROBLEM = "application/problem+json"
TOO_LONG = b'{"type":"about:blank","title":"Bad Request","status":400,"detail":"A key is too long."}'

STATUSES = {name: number for number, name in enumerate(_core._statuses())}
FLAGS = _core._http_fields()

log = logging.getLogger("redbucket")


class Head(NamedTuple):
    """What is told of an answer. Of an accepted one only the fields matter."""

    status: int
    fields: List[Tuple[str, str]]
    body: bytes = b""

    def line(self) -> str:
        """The status with its reason, "429 Too Many Requests"."""
        return f"{self.status} {HTTPStatus(self.status).phrase}"

    def headers(self) -> List[Tuple[str, str]]:
        """Of an answer that the application doesn't give. No cache is to keep it."""
        return [("Content-Type", PROBLEM), ("Content-Length", str(len(self.body))),
                ("Cache-Control", "no-store"), *self.fields]

    def missing(self, present: Iterable[str]) -> List[Tuple[str, str]]:
        """The fields to add to those that the application gives. Fields that are lists go beside
        its own; of the others its own are kept."""
        given = {name.lower() for name in present}
        return [field for field in self.fields
                if field[0].startswith("RateLimit") or field[0].lower() not in given]


def text_of(value: Any) -> Optional[str]:
    """Text from a request as a key: whatever characters it has, and None when it is empty."""
    if value is None or value == "":
        return None
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def flags_of(fields: Iterable[str]) -> int:
    flags = 0
    for name in fields:
        if name not in FLAGS:
            raise ValueError(f"no header field: {name!r}; there are {', '.join(FLAGS)}")
        flags |= FLAGS[name]
    return flags


class Gate:
    """The options of a middleware, and everything about requests that needs no waiting."""

    def __init__(self, limiter: StoreRateLimiter, keys: Rules, *, cost: Any, max_delay: Optional[float],
                 on_error: str, fields: Iterable[str]) -> None:
        if on_error not in ("fail", "open"):
            raise ValueError(f"on_error: expected 'fail' or 'open', not {on_error!r}")
        if max_delay is not None and not max_delay >= 0:
            raise ValueError("max_delay: expected a number of seconds from 0 on")
        self.limiter = limiter
        self.rules = keys
        self.cost = cost
        self.max_delay = math.inf if max_delay is None else max_delay
        self.open = on_error == "open"
        self.flags = flags_of(fields)
        self.failing = False
        self._check_names()

    def _check_names(self) -> None:
        """A wrong name is found before the first request where it can be."""
        limits = self.limiter._rate_limits
        if limits is None or callable(self.rules):
            return
        for name in self.rules:
            if name not in limits:
                raise KeyError(name)

    def keys_of(self, request: Mapping[str, Any]) -> Dict[str, Any]:
        return keys_by(self.rules, request)

    def cost_of(self, request: Mapping[str, Any]) -> float:
        cost: float = chosen(self.cost, request)
        return cost

    # ---- What became of it -------------------------------------------------------------------

    def is_late(self, response: Response) -> bool:
        return response.accepted and response.delay > self.max_delay

    def late(self, response: Response, after: Optional[Response]) -> Response:
        """Of a permit that was given back, or would have been if the store had not failed then."""
        if after is not None:
            return response._late(after, self.max_delay, self.max_delay)
        return response._replace(accepted=False, delay=None,
                                 retry_after=response.delay - self.max_delay)

    def head(self, response: Response) -> Head:
        """Of a store's answer."""
        if self.failing:
            self.failing = False
            log.warning("%r: answers again", self.limiter)
        status, fields, body = self.limiter._http(response, self.flags)
        return Head(status, fields, body or b"")

    def failure(self, error: StoreError, keys: Mapping[str, Any]) -> Optional[Head]:
        """Of a store that failed, when its policy doesn't answer in its place; None when the
        request is to pass. Only the first of several in a row is logged."""
        if isinstance(error, KeyTooLongError):
            return Head(400, [], TOO_LONG)
        if not self.failing:
            self.failing = True
            log.warning("%r: %s (requests %s)", self.limiter, error,
                        "pass unlimited" if self.open else "are answered 503")
        if self.open:
            return None
        number = STATUSES.get("ERROR_" + error.status, STATUSES["ERROR_UNAVAILABLE"])
        status, fields, body = self.limiter._http(number, self.flags, tuple(keys))
        return Head(status, fields, body or b"")

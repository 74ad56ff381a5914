# SPDX-License-Identifier: MIT
"""How long somebody is willing to wait for a permit, apart from how the waiting is done.

Time is counted from before the first question, by the monotonic clock. A delay is compared with
what was left of it when the question was asked, so that a timeout of exactly the delay is enough,
however long the asking took.
"""

from __future__ import annotations

import math
import time
from typing import Optional

from .data import Response

__all__ = ("Patience",)


class Patience:
    """Of one acquire(): ask(), the question, pause(), and so on until pause() says None."""

    def __init__(self, timeout: Optional[float]) -> None:
        self.timeout = math.inf if timeout is None else float(timeout)
        if math.isnan(self.timeout):
            raise ValueError("timeout: expected a number of seconds, or None")
        self.begun = time.monotonic()
        self.left = self.timeout

    def ask(self) -> None:
        """To be called just before each question."""
        self.left = max(self.timeout - (time.monotonic() - self.begun), 0.0)

    def pause(self, response: Response) -> Optional[float]:
        """Seconds to sleep before the question is asked again; None when this was the answer."""
        if response.accepted or self.left <= 0 or math.isinf(response.retry_after):
            return None
        return min(response.retry_after, self.left)

    def fits(self, response: Response) -> bool:
        """Whether an accepted one's delay is over in time."""
        return bool(response.delay <= self.left)

    def _waited(self) -> float:
        return time.monotonic() - self.begun

    def accepted(self, response: Response) -> Response:
        """What the caller is told once the delay is slept out."""
        return response._replace(delay=0.0, waited=self._waited())

    def rejected(self, response: Response) -> Response:
        return response._replace(waited=self._waited())

    def too_late(self, response: Response, after: Response) -> Response:
        """Of a permit that was given back: rejected until its delay would fit the timeout."""
        late = response._late(after, self.left, self.timeout)
        return late._replace(waited=self._waited())

# SPDX-License-Identifier: MIT
"""Buckets in shared memory of this machine."""

from __future__ import annotations

from typing import Optional, Union

from . import _urls
from .base import StoreRateLimiter

__all__ = ("SharedMemoryRateLimiter",)


class SharedMemoryRateLimiter(StoreRateLimiter):
    """A limiter whose buckets every process of this machine shares that opens the same name.

    ``size`` is bytes, or text such as "16m"; ``mode`` who may open it, as of a file (0o600). Both
    are for whoever comes first: MismatchError when what is there already has others. ``timeout``
    bounds a decision that waits for another process, in seconds or as text such as "50ms". The
    table stays when the last process has ended, until the machine restarts or it is removed.
    """

    def __init__(self, name: str = "redbucket", *, size: Union[int, str, None] = None,
                 mode: Optional[int] = None, timeout: Union[float, str, None] = None,
                 on_error: Optional[str] = None) -> None:
        octal = mode if mode is None or isinstance(mode, str) else f"{mode:04o}"
        url = _urls.with_parameters("shm:" + _urls.quoted(name), size=size, mode=octal,
                                    timeout=timeout, on_error=on_error)
        super().__init__(url)

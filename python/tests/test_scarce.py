# SPDX-License-Identifier: MIT
"""The N-th allocation of a call fails, for every N: MemoryError, never a crash, and the same call
goes well again. In a process of its own, since a crash is what is looked for."""

import subprocess
import sys

import pytest

pytest.importorskip("_testcapi", reason="this Python can't be told to have no memory")

PROGRAM = """
import _testcapi
import sys

from redbucket import InMemoryRateLimiter, RateLimit, Zone
from test_leaks import CALLS

limiter = InMemoryRateLimiter(size="4m", clock=lambda: 0.0)
limiter.configure(a=RateLimit(Zone("za", 1), burst=5), b=RateLimit(Zone("zb", 1), delay=5))


def fail_at(call, number):
    _testcapi.set_nomemory(number, number + 1)
    try:
        call(limiter)
        return False
    except MemoryError:
        return True
    finally:
        _testcapi.remove_mem_hooks()


failures = 0
for name, call in CALLS.items():
    for number in range(150):
        sys.stderr.write(f"{name}, allocation {number}\\n")
        failures += fail_at(call, number)
        call(limiter)
print(failures)
"""


def test_any_allocation_of_a_call_may_fail():
    process = subprocess.run([sys.executable, "-X", "faulthandler", "-c", PROGRAM], check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.returncode == 0, process.stderr[-2000:]
    assert int(process.stdout) > 100

# SPDX-License-Identifier: MIT
"""Several interpreters in one process, which share no objects."""

import subprocess
import sys

import pytest

MAKE = """
import sys
try:
    import _interpreters as interpreters  # 3.13
except ImportError:
    import _xxsubinterpreters as interpreters
own = sys.argv[1] == "own"
"""

CREATE = {
    (3, 13): 'interpreters.create("isolated" if own else "legacy")',
    (3, 12): "interpreters.create(isolated=own)",
    (3, 9): "interpreters.create(isolated=False)",
}

WITHIN = '''
import redbucket
limiter = redbucket.InMemoryRateLimiter()
limiter.configure(a=redbucket.RateLimit(redbucket.Zone("z", 1e-3, 10**6), burst=9))
assert sum(limiter.request(a="k").accepted for _ in range(20)) == 10
assert isinstance(limiter.request(a="k"), redbucket.Response)
try:
    limiter.request(a=None)
except TypeError:
    pass
'''

REST = """
import threading, redbucket
code = {within!r}
exec(code)
mine = [create() for _ in range(4)]
def run(which):
    for _ in range(3):
        interpreters.run_string(which, code)
if own:
    threads = [threading.Thread(target=run, args=(which,)) for which in mine]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
else:
    for which in mine: run(which)
for which in mine:
    interpreters.destroy(which)
exec(code)
print("good")
"""


@pytest.mark.parametrize("lock", ["shared", "own"])
def test_each_has_its_own(lock):
    if lock == "own" and sys.version_info < (3, 12):
        pytest.skip("came with Python 3.12")
    create = next(text for version, text in sorted(CREATE.items(), reverse=True)
                  if sys.version_info >= version)
    program = MAKE + f"def create():\n    return {create}\n" + REST.format(within=WITHIN)
    done = subprocess.run([sys.executable, "-c", program, lock], check=False, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stdout == b"good\n" and done.returncode == 0, done.stderr.decode()[-2000:]
    assert b"rror" not in done.stderr, done.stderr.decode()

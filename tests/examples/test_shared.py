# SPDX-License-Identifier: MIT
"""examples/shared.c and shared.py take from the same buckets."""

import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(SOURCE, "tests"), os.path.join(SOURCE, "python", "tests")]

import environment  # noqa: E402
import run_tests  # noqa: E402
import server as servers  # noqa: E402

C = [os.path.join(os.environ["EXAMPLES"], "shared")]
NOWHERE = "redis://127.0.0.1:1?timeout=200ms"


def run(program, url):
    """(status, the line it prints, with a number of seconds as N, what it complained of)"""
    done = subprocess.run([*program, url], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60)
    return done.returncode, re.sub(r"\d+\.\d{3} s", "N s", done.stdout), done.stderr


class Shared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            python = environment.interpreter(os.environ["BUILD"], "check", run_tests.PACKAGES,
                                             run_tests.WELCOME)
        except environment.Missing as reason:
            raise unittest.SkipTest(f"no environment: {str(reason).splitlines()[-1]}")
        cls.programs = [C, [python, os.path.join(SOURCE, "examples", "shared.py")]]

    def test_they_take_turns_at_one_bucket(self):
        for first in (0, 1):
            with servers.Server("redis") as server:
                said = [run(self.programs[(first + i) % 2], server.url("redis")) for i in range(5)]
                buckets = sorted(server.ask("KEYS", "*"))
            names = ["C" if (first + i) % 2 == 0 else "Python" for i in range(5)]
            wanted = [(0, f"{name}: accepted after N s, {2 - i} remaining\n", "")
                      for i, name in enumerate(names[:3])]
            wanted += [(0, f"{name}: rejected, retry after N s\n", "") for name in names[3:]]
            self.assertEqual(wanted, said)
            self.assertEqual([b"redbucket:ip:192.0.2.7", b"redbucket:user:alice"], buckets)

    def test_failures_are_told(self):
        for program in self.programs:
            for url, word in ((NOWHERE, "Connection refused"), ("nowhere:", "nowhere")):
                status, said, errors = run(program, url)
                self.assertEqual((1, "", 1), (status, said, errors.count("\n")), errors)
                self.assertIn(word, errors)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: MIT
"""A 32-bit and a 64-bit command on one store of shared memory.

The table has one layout for both, but a mutex of the C library has not, so neither may touch what the
other has made: it says so, and leaves every byte alone.
"""

import os
import subprocess
import unittest

COMMANDS = [os.path.abspath(os.environ["REDBUCKET_32"]), os.path.abspath(os.environ["REDBUCKET_64"])]
NAME = f"redbucket-test-words-{os.getpid()}"
PATH = f"/dev/shm/{NAME}"


def ask(command):
    run = subprocess.run([command, "-c", "/dev/null", "-s", f"shm:{NAME}", "-l", "ip:1e-9,burst=1", "request", "ip=k"],
                         check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return run.returncode, run.stderr


class OneStore(unittest.TestCase):
    def tearDown(self):
        if os.path.exists(PATH):
            os.unlink(PATH)

    def check(self, maker, other):
        self.assertEqual(ask(maker)[0], 0)
        with open(PATH, "rb") as file:
            before = file.read()
        status, error = ask(other)
        self.assertEqual(status, 3)
        self.assertIn("was made by another version or build of this library", error)
        with open(PATH, "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual([ask(maker)[0] for _ in range(2)], [0, 1])

    def test_64_bits_keep_out_of_what_32_made(self):
        self.check(*COMMANDS)

    def test_32_bits_keep_out_of_what_64_made(self):
        self.check(*reversed(COMMANDS))


if __name__ == "__main__":
    unittest.main()

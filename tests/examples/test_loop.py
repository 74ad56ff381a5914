# SPDX-License-Identifier: MIT
"""The least of asynchronous programs, $EXAMPLE_LOOP: ten at once, three of which pass and four wait."""

import os
import re
import subprocess
import unittest


class Loop(unittest.TestCase):
    def lines(self, *arguments):
        run = subprocess.run([os.environ["EXAMPLE_LOOP"], *arguments], text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
        return run.returncode, run.stdout.splitlines(), run.stderr

    def test_all_are_answered_and_go_on_in_turn(self):
        status, lines, errors = self.lines()
        self.assertEqual((0, ""), (status, errors))
        accepted = [line for line in lines if "accepted" in line]
        delays = [float(re.search(r"after ([0-9.]+) s", line)[1]) for line in accepted]
        self.assertEqual([0, 0, 0, 0.1, 0.2, 0.3, 0.4], delays)
        self.assertEqual(3, sum("rejected" in line for line in lines))
        self.assertEqual([f"{i}: goes on" for i in range(1, 8)], lines[10:])

    def test_a_store_that_is_none_is_an_error(self):
        status, lines, errors = self.lines("nowhere:")
        self.assertEqual((1, []), (status, lines))
        self.assertTrue(errors.startswith("loop: "))


if __name__ == "__main__":
    unittest.main()

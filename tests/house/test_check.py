# SPDX-License-Identifier: MIT
"""scripts/check counts what programs did, and can't be talked out of a failure.

A count that is wrong hides every other fault, so the counting is tested like anything else.
"""

import importlib.machinery
import importlib.util
import os
import sys
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def load_script(name):
    """A script without a suffix, as a module."""
    path = os.path.join(os.path.dirname(TESTS), "scripts", name)
    loader = importlib.machinery.SourceFileLoader(os.path.basename(name), path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


check = load_script("check")


def counts(stdout, returncode=0, result="OK", protocol="tap"):
    record = {
        "name": "redbucket:unit / model",
        "stdout": stdout,
        "returncode": returncode,
        "result": result,
        "duration": 1.0,
    }
    outcome = check.judge(record, {"model": protocol})
    return outcome.passed, len(outcome.failures), outcome.skipped


class Tap(unittest.TestCase):
    def test_cases_are_counted_one_by_one(self):
        self.assertEqual((2, 0, 0), counts("1..2\nok 1 - a\nok 2 - b\n"))

    def test_lines_that_are_no_tap_are_passed_over(self):
        self.assertEqual((1, 0, 0), counts("1..1\nokay then\n# ok\nnothing\nok 1 - a\n"))

    def test_failed_case_is_a_failure(self):
        self.assertEqual((1, 1, 0), counts("1..2\nok 1 - a\nnot ok 2 - b\n", returncode=1))

    def test_failed_case_is_a_failure_whatever_the_status(self):
        self.assertEqual((1, 1, 0), counts("1..2\nok 1 - a\nnot ok 2 - b\n"))

    def test_skipped_case_is_neither_in_both_spellings(self):
        self.assertEqual((1, 0, 2), counts("1..3\nnot ok 1 # SKIP a\nok 2 - b # skip c\nok 3\n"))

    def test_program_may_skip_everything(self):
        self.assertEqual((0, 0, 1), counts("1..0 # SKIP no such thing here\n"))

    def test_several_groups_add_up(self):
        self.assertEqual((3, 0, 0), counts("1..1\nok 1 - a\n1..2\nok 1 - b\nok 2 - c\n"))

    def test_crash_fails_every_case_that_did_not_run(self):
        self.assertEqual((1, 2, 0), counts("1..3\nok 1 - a\n", returncode=-11, result="FAIL"))

    def test_crash_after_the_last_case_is_a_failure(self):
        self.assertEqual((1, 1, 0), counts("1..1\nok 1 - a\n", returncode=-6, result="FAIL"))

    def test_bad_status_without_a_failed_case_is_a_failure(self):
        self.assertEqual((1, 1, 0), counts("1..1\nok 1 - a\n", returncode=3, result="FAIL"))

    def test_timeout_is_a_failure(self):
        self.assertEqual((1, 1, 0), counts("1..1\nok 1 - a\n", returncode=0, result="TIMEOUT"))

    def test_program_without_a_case_is_a_failure(self):
        self.assertEqual((0, 1, 0), counts(""))
        self.assertEqual((0, 1, 0), counts("1..0\n"))

    def test_case_that_was_not_planned_is_a_failure(self):
        self.assertEqual((2, 1, 0), counts("1..1\nok 1 - a\nok 2 - b\n"))

    def test_cases_without_a_plan_are_a_failure(self):
        self.assertEqual((1, 1, 0), counts("ok 1 - a\n"))


class Status(unittest.TestCase):
    def test_program_is_one_case(self):
        self.assertEqual((1, 0, 0), counts("ok 1\nok 2\n", protocol="exitcode"))

    def test_status_77_is_a_skip(self):
        self.assertEqual((0, 0, 1), counts("", returncode=77, protocol="exitcode"))

    def test_any_other_status_is_a_failure(self):
        self.assertEqual((0, 1, 0), counts("", returncode=1, protocol="exitcode"))
        self.assertEqual((0, 1, 0), counts("", returncode=-9, protocol="exitcode"))

    def test_timeout_is_a_failure_even_with_a_good_status(self):
        self.assertEqual((0, 1, 0), counts("", result="TIMEOUT", protocol="exitcode"))
        timeout_and_skip = counts("", returncode=77, result="TIMEOUT", protocol="exitcode")
        self.assertEqual((0, 1, 0), timeout_and_skip)

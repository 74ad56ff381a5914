#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the unittest module at a path and reports each test as a line of TAP.

Usage: tap.py tests/cli/test_commands.py [TestCase.test_name ...]

What a failing test printed as its reason goes into comment lines under it. A test that is skipped is
reported as such, with why. The exit status is 0 when nothing failed.
"""

import importlib.util
import os
import sys
import unittest


class TapResult(unittest.TestResult):
    """Numbers the tests as they end; a subtest that fails makes its test fail."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.reasons = []

    def startTest(self, test):
        super().startTest(test)
        self.reasons = []

    def report(self, good, test, directive=""):
        self.count += 1
        print(f"{'ok' if good else 'not ok'} {self.count} - {name_of(test)}{directive}")
        for reason in self.reasons:
            for line in reason.rstrip().splitlines():
                print(f"# {line}")
        sys.stdout.flush()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.report(not self.reasons, test)

    def addError(self, test, err):
        super().addError(test, err)
        self.reasons.append(self.errors[-1][1])
        self.report(False, test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.reasons.append(self.failures[-1][1])
        self.report(False, test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.reasons.append(f"{subtest}\n{self._exc_info_to_string(err, test)}")

    def stopTest(self, test):
        # unittest reports no success of a test whose subtests failed.
        if self.reasons and self.count < self.testsRun:
            self.report(False, test)
        super().stopTest(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.report(True, test, f" # SKIP {reason}")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.report(True, test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.report(False, test)


def name_of(test):
    # '#' would begin a directive.
    return test.id().replace("#", "?")


def load(path, names):
    name = os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    loader = unittest.TestLoader()
    if names:
        return loader.loadTestsFromNames(names, module)
    return loader.loadTestsFromModule(module)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    suite = load(sys.argv[1], sys.argv[2:])
    print(f"1..{suite.countTestCases()}")
    result = TapResult()
    suite.run(result)
    if result.count != suite.countTestCases():
        print(f"Bail out! {suite.countTestCases()} tests were planned, {result.count} reported")
        sys.exit(1)
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""A plugin of pytest that reports each test as a line of TAP, beside what pytest says itself."""

import os

import pytest

# Taken before pytest keeps for itself what is printed.
OUTPUT = os.fdopen(int(os.environ.get("TAP_OUTPUT") or os.dup(1)), "w", buffering=1, encoding="utf-8", errors="replace")


def say(line):
    OUTPUT.write(f"{line}\n")


class Reporter:
    """A test is judged when its teardown is over: what failed in any of its phases counts."""

    def __init__(self):
        self.count = 0
        self.reports = []

    def pytest_collection_finish(self, session):
        say(f"1..{len(session.items)}")

    def pytest_collectreport(self, report):
        if report.failed:
            say(f"Bail out! {report.nodeid} can't be read")

    def pytest_runtest_logreport(self, report):
        self.reports.append(report)

    def pytest_runtest_logfinish(self, nodeid):
        self.count += 1
        failed = any(report.failed for report in self.reports)
        skipped = [report for report in self.reports if report.skipped]
        why = f" # SKIP {skipped[0].longrepr[2]}" if skipped and not failed else ""
        say(f"{'not ok' if failed else 'ok'} {self.count} - {nodeid.replace('#', '?')}{why}")
        self.reports = []


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    config.pluginmanager.register(Reporter(), "tap-reporter")

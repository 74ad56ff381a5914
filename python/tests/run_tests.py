# SPDX-License-Identifier: MIT
"""Runs tests of the Python package, in an environment that has it, and reports them as TAP.

usage: run_tests.py BUILD [ARGUMENT OF pytest...]

Without a package index the environment can't be made, and the tests are skipped, visibly; a package
that can't be built is a failure.
"""

import os
import sys

import environment

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ["pytest", "redis", "valkey", "http-sfv"]
WELCOME = ["uvloop"]  # where there is one for this Python


def tap_output():
    """Where the lines of TAP go; what pytest says itself goes to the standard error."""
    sys.stdout.flush()
    lines = os.dup(1)
    os.set_inheritable(lines, True)
    os.dup2(2, 1)
    return lines


def main():
    build = sys.argv[1]
    try:
        python = environment.interpreter(build, "check", PACKAGES, WELCOME)
    except environment.Missing as reason:
        print(f"1..0 # SKIP no environment: {str(reason).splitlines()[-1]}")
        return
    except environment.Broken as reason:
        print("1..1\nnot ok 1 - the package builds")
        print("\n".join("# " + line for line in str(reason).splitlines()))
        sys.exit(1)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["TAP_OUTPUT"] = str(tap_output())
    os.chdir(HERE)
    os.execv(python, [python, "-m", "pytest", "-p", "tap_report", "-p", "no:cacheprovider", "-q",
                      "--tb=short", *sys.argv[2:]])


if __name__ == "__main__":
    main()

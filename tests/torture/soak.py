# SPDX-License-Identifier: MIT
"""Starts the soak (soak.h) with a Python that has the package, where there is one to be had.

usage: soak.py BUILD SECONDS SEED
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "python", "tests"))

import environment  # noqa: E402
import run_tests  # noqa: E402


def main():
    build, seconds, seed = sys.argv[1:]
    try:
        python = environment.interpreter(build, "check", run_tests.PACKAGES, run_tests.WELCOME)
    except environment.Missing as reason:
        print(f"# SKIPPED: Python's part: {str(reason).splitlines()[-1]}", flush=True)
        python = "-"
    program = os.path.join(build, "tests", "torture", "soak")
    os.execv(program, [program, seconds, seed, python, os.path.join(HERE, "soak_python.py")])


if __name__ == "__main__":
    main()

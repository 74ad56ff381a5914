# SPDX-License-Identifier: MIT
"""The Python package redbucket 0.1.0, whose keys this project shares: fetched when a test needs it,
into an environment of its own that nothing else sees.

    python = original.interpreter(build_folder)
"""

import os
import subprocess
import sys

PACKAGES = ["redbucket==0.1.0", "redis<4"]
PROBE = "import redbucket, redis; redbucket.RedisScriptRateLimiter"


class Missing(Exception):
    """It can't be had here, and why."""


def run(*command):
    try:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        raise Missing(str(error)) from error
    if done.returncode != 0:
        raise Missing((done.stdout.strip().splitlines() or ["no reason given"])[-1])
    return done.stdout.strip()


def interpreter(build):
    """The path of a Python that has it, made below the build directory once; or Missing."""
    return environment(os.path.join(build, "original"), PACKAGES, PROBE)


def environment(folder, packages, probe):
    """The path of a Python in the folder that has the packages, made there once, and has run the
    probe; or Missing."""
    python = os.path.join(folder, "bin", "python")
    ready = os.path.join(folder, "ready")
    if os.path.exists(ready):
        return python
    # Where pip comes apart from Python, environments are made without it: ours puts things there.
    run(sys.executable, "-m", "venv", "--clear", "--without-pip", folder)
    target = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--retries", "2", "--timeout", "30", "--target", target, *packages)
    run(python, "-c", probe)
    with open(ready, "w", encoding="utf-8"):
        pass
    return python

# SPDX-License-Identifier: MIT
"""Builds the project above this folder, whose sources the extension is made of.

The same from python/ and from the top. Whoever calls does so with either for its working directory,
and gives paths that are absolute.

Where the system has no hiredis that is new enough, scripts/hiredis is asked to bring one.
"""

import contextlib
import os
import subprocess
import sys

import mesonpy

ABOVE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILDING = ("build_wheel", "build_editable")


def has_hiredis():
    if os.path.exists(os.path.join(ABOVE, "build-deps", "hiredis", "meson.build")):
        return True
    try:
        return subprocess.run(["pkg-config", "--atleast-version=1.0", "hiredis"],
                              check=False).returncode == 0
    except OSError:
        return False


def bring_hiredis():
    """What can't be brought Meson will miss, by name; so this only says why."""
    script = os.path.join(ABOVE, "scripts", "hiredis")
    if has_hiredis() or not os.path.exists(script):
        return
    try:
        subprocess.run([script], check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"hiredis 1.0 or later is missing: {error}", file=sys.stderr)


@contextlib.contextmanager
def above():
    before = os.getcwd()
    os.chdir(ABOVE)
    try:
        yield
    finally:
        os.chdir(before)


def passed_on(name):
    hook = getattr(mesonpy, name)

    def call(*args, **options):
        if name in BUILDING:
            bring_hiredis()
        with above():
            return hook(*args, **options)

    return call


HOOKS = ("get_requires_for_build_sdist", "build_sdist", "get_requires_for_build_wheel",
         "build_wheel", "get_requires_for_build_editable", "build_editable")
globals().update({name: passed_on(name) for name in HOOKS if hasattr(mesonpy, name)})

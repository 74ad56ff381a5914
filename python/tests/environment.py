# SPDX-License-Identifier: MIT
"""An environment below the build directory that has this package, built from the sources as they are
now, and what its tests need.

    python = environment.interpreter(build_folder, "check", ["pytest", "redis"])

It is made once; the package is built again when a source has changed. Several at once wait for each
other.
"""

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILDERS = ["meson-python >= 0.15", "meson >= 1.3", "ninja"]
SOURCES = ("include", "src", "python/src", "python/redbucket", "python/meson.build", "meson.build",
           "meson_options.txt", "pyproject.toml")
PIP = ["--quiet", "--disable-pip-version-check", "--no-input"]
PATIENCE = ["--retries", "2", "--timeout", "30"]


class Missing(Exception):
    """Packages can't be had here, and why."""


class Broken(Exception):
    """The package can't be built, and why."""


def run(failure, *command, **options):
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **options)
    if done.returncode != 0:
        raise failure(done.stdout.strip() or f"{command[0]} ended with status {done.returncode}")
    return done.stdout.strip()


@contextlib.contextmanager
def alone(folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fingerprint(words):
    """Of names and times of all sources, and of what was asked for."""
    digest = hashlib.sha256(repr(words).encode())
    for source in SOURCES:
        path = os.path.join(TOP, source)
        files = [path] if os.path.isfile(path) else [
            os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names
            if not name.endswith((".pyc", ".so"))]
        for name in sorted(files):
            digest.update(f"{name}\0{os.stat(name).st_mtime_ns}\0".encode())
    return digest.hexdigest()


def make(folder, packages, welcome):
    """An empty environment with packages. Where pip comes apart from Python, environments are made
    without it: a new pip is put there by the one that is at hand."""
    run(Missing, sys.executable, "-m", "venv", "--clear", "--without-pip", folder)
    python = os.path.join(folder, "bin", "python")
    target = run(Missing, python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    run(Missing, sys.executable, "-m", "pip", "install", *PIP, *PATIENCE, "--target", target, "pip")
    install = [python, "-m", "pip", "install", *PIP, *PATIENCE]
    run(Missing, *install, *BUILDERS, *packages)
    for package in welcome:
        with contextlib.suppress(Missing):
            run(Missing, *install, "--only-binary", ":all:", package)
    return python


def build(folder, python):
    """Builds and installs the package, by the tools that are there already."""
    path = os.pathsep.join([os.path.join(folder, "bin"), os.environ.get("PATH", "")])
    run(Broken, python, "-m", "pip", "install", *PIP, "--no-deps", "--no-build-isolation",
        "--force-reinstall", f"--config-settings=build-dir={folder}/package",
        os.path.join(TOP, "python"), env={**os.environ, "PATH": path})


def read(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def interpreter(build_folder, name, packages, welcome=()):
    """The path of a Python that has the package and these others, or else Missing or Broken; and
    those that are welcome, where they are ready to be installed."""
    folder = os.path.join(os.path.abspath(build_folder), "python-" + name)
    made, built = os.path.join(folder, "made"), os.path.join(folder, "built")
    with alone(folder + "-lock"):
        python = os.path.join(folder, "bin", "python")
        wanted = repr((packages, welcome))
        if read(made) != wanted:
            python = make(folder, packages, welcome)
            write(made, wanted)
        now = fingerprint(packages)
        if read(built) != now:
            build(folder, python)
            write(built, now)
    return python

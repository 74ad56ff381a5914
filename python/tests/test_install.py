# SPDX-License-Identifier: MIT
"""What users do: install from a clone, from its python/ folder or from its top, and use it with no
library installed beside it. Whatever tools that takes come with it."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))


def run(*command, **options):
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **options)
    if done.returncode != 0 and "No matching distribution" in done.stdout:
        pytest.skip("no package index here")
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """What is in the repository, as it is now, and nothing else but what was fetched for it."""
    if shutil.which("git") is None or not os.path.exists(os.path.join(TOP, ".git")):
        pytest.skip("not in a repository")
    copy = tmp_path_factory.mktemp("clone") / "redbucket"
    names = run("git", "-c", "safe.directory=*", "-C", TOP, "ls-files", "-z").split("\0")
    for name in filter(None, names):
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.exists(os.path.join(TOP, name)):
            shutil.copy(os.path.join(TOP, name), target)
    fetched = os.path.join(TOP, "build-deps")
    if os.path.exists(fetched):
        os.symlink(os.path.realpath(fetched), copy / "build-deps")
    return copy


@pytest.fixture(scope="module")
def wheel(clone, tmp_path_factory):
    """Built by pip in an environment of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(folder), str(clone / "python"),
        cwd="/")
    names = os.listdir(folder)
    assert len(names) == 1 and "-abi3-" in names[0]
    return folder / names[0]


def test_holds_what_it_should(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    held = {name.split("/", 1)[1] for name in names if name.startswith("redbucket/")}
    sources = {name for name in os.listdir(os.path.join(TOP, "python", "redbucket"))
               if name != "__pycache__"}
    assert held == sources | {"_core.abi3.so"}
    assert all(name.startswith(("redbucket/", "redbucket-")) for name in names)


def test_needs_no_library_of_ours(wheel, tmp_path):
    run(sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(tmp_path), str(wheel))
    program = ("import redbucket as r; l = r.InMemoryRateLimiter();"
               "l.configure(a=r.RateLimit(r.Zone('z', 1))); print(l.request(a='k'), r.__file__)")
    said = run(sys.executable, "-c", program, env={"PYTHONPATH": str(tmp_path)}, cwd="/")
    assert said.startswith("Response(accepted=True, delay=0.0)") and str(tmp_path) in said
    maps = run(sys.executable, "-c", "import redbucket; print(open('/proc/self/maps').read())",
               env={"PYTHONPATH": str(tmp_path)}, cwd="/")
    assert "libredbucket" not in maps and "_core.abi3.so" in maps


def test_exports_nothing_else(wheel, tmp_path):
    zipfile.ZipFile(wheel).extract("redbucket/_core.abi3.so", tmp_path)
    lines = run("nm", "-D", "--defined-only", str(tmp_path / "redbucket" / "_core.abi3.so"))
    assert [line.split()[-1] for line in lines.splitlines()] == ["PyInit__core"]


def test_from_the_top(clone, tmp_path):
    """Only that it can be prepared: it is built by the same hooks."""
    said = run(sys.executable, "-c",
               "import sys; sys.path.insert(0, 'python/backend'); import build_above;"
               "print(build_above.ABOVE)", cwd=clone)
    assert said.strip() == str(clone)

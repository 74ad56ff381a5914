# SPDX-License-Identifier: MIT
"""The source archive has what is committed and nothing else, and is the same each time.

That it builds, without a network, is for `make packages`.
"""

import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.dirname(TESTS)


def git(*arguments):
    return subprocess.run(["git", "-C", SOURCE, *arguments], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


@unittest.skipIf(git("rev-parse", "HEAD").returncode != 0, "not a git repository")
@unittest.skipIf(not os.path.isdir(os.path.join(SOURCE, "build-deps", "hiredis")),
                 "would have to bring hiredis first")
class Archive(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redbucket-dist-")
        self.addCleanup(shutil.rmtree, self.folder)

    def make(self, name):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        run = subprocess.run([os.path.join(SOURCE, "scripts", "dist"), folder], check=True,
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        path = run.stdout.splitlines()[-1]
        subprocess.run(["sha256sum", "--quiet", "-c", f"{path}.sha256"], cwd=folder, check=True)
        return path

    def test_it_has_what_is_committed_and_what_a_build_takes(self):
        with tarfile.open(self.make("a")) as archive:
            names = [member.name for member in archive.getmembers() if not member.isdir()]
            owners = {(member.uid, member.gid, member.mtime) for member in archive.getmembers()}
        top = names[0].split("/")[0]
        self.assertRegex(top, r"^redbucket-\d+\.\d+\.\d+$")
        inside = {name.removeprefix(f"{top}/") for name in names}
        brought = {name for name in inside if name.startswith("build-deps/hiredis/")}
        self.assertEqual(set(git("ls-tree", "-r", "--name-only", "HEAD").stdout.split("\n")) - {""},
                         inside - brought)
        self.assertLessEqual({"build-deps/hiredis/meson.build", "build-deps/hiredis/hiredis/COPYING"},
                             brought)
        self.assertEqual({(0, 0, int(git("show", "-s", "--format=%ct", "HEAD").stdout))}, owners)

    def test_it_is_the_same_each_time(self):
        contents = []
        for name in ("a", "b"):
            with open(self.make(name), "rb") as file:
                contents.append(file.read())
        self.assertTrue(contents[0] == contents[1])

# SPDX-License-Identifier: MIT
"""What documents show of a shell comes out as they show it, on the built command and library, with a
real server where one is named."""

import glob
import os
import re
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ["BUILD"]
sys.path[:0] = [os.path.join(SOURCE, "tests"), os.path.join(SOURCE, "python", "tests"), HERE]
import environment  # noqa: E402
import run_tests  # noqa: E402
import server  # noqa: E402
import transcript  # noqa: E402

RUN = ["README.md", "docs/choosing-limits.md", "docs/from-nginx.md", "docs/from-the-original.md",
       "docs/tutorial.md"]

# Those that show sessions which nobody could repeat, and why.
NOT_RUN = {
    "docs/cluster.md": "of a cluster that isn't here",
    "docs/keys.md": "live views of somebody's traffic",
    "docs/metrics.md": "counts of somebody's traffic",
    "docs/replay.md": "reports on logs that aren't here",
}

# What is called in examples and has no business being called in a test.
STUBS = ("curl", "sendmail")

TRIES = 3


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def documents():
    paths = [*glob.glob(os.path.join(SOURCE, "*.md")), *glob.glob(os.path.join(SOURCE, "docs", "*.md"))]
    return sorted(os.path.relpath(path, SOURCE) for path in paths)


class Documents(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redbucket-docs-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.store = f"redbucket-test-docs-{os.getpid()}"
        self.addCleanup(self.remove_store)
        self.bin = os.path.join(self.folder, "bin")
        self.here = os.path.join(self.folder, "here")
        os.mkdir(self.bin)
        os.mkdir(self.here)
        os.symlink(os.path.join(BUILD, "redbucket"), os.path.join(self.bin, "redbucket"))
        for name in STUBS:
            path = os.path.join(self.bin, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n")
            os.chmod(path, 0o755)
        shutil.copy(os.path.join(SOURCE, "examples", "access.log"), self.here)
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("REDBUCKET_", "LC_", "PYTHON"))}
        self.env |= {
            "PATH": f"{self.bin}:{os.environ['PATH']}", "LD_LIBRARY_PATH": BUILD, "LC_ALL": "C.UTF-8",
            "REDBUCKET_STORE": f"shm:{self.store}?size=1m",
            "PKG_CONFIG_PATH": os.path.join(BUILD, "meson-uninstalled"),
        }

    def remove_store(self):
        for path in glob.glob(f"/dev/shm/*{self.store}*"):
            os.unlink(path)

    def need_python(self):
        try:
            python = environment.interpreter(BUILD, "check", run_tests.PACKAGES, run_tests.WELCOME)
        except environment.Missing as reason:
            self.skipTest(f"no environment: {str(reason).splitlines()[-1]}")
        self.env["PATH"] = f"{self.bin}:{os.path.dirname(python)}:{os.environ['PATH']}"

    def run_document(self, path):
        text = read(path)
        if "$ python3 " in text:
            self.need_python()
        if "redis://localhost" in text:
            with server.Server("redis") as redis:
                # Also the default address of a client that is given none.
                place = f"127.0.0.1:{redis.port}"
                text = text.replace("redis://localhost", f"redis://{place}")
                text = text.replace("Redis()", f"Redis(port={redis.port})")
                return transcript.faults(path, text, self.here, self.env)
        return transcript.faults(path, text, self.here, self.env)

    def check(self, path):
        """What is shown of a limit holds for some seconds: on a machine that was held up for longer,
        the document is begun anew."""
        for _ in range(TRIES):
            faults, count = self.run_document(path)
            self.remove_store()
            if not faults:
                break
        self.assertEqual([], faults, "\n\n".join(["", *faults]))
        self.assertLess(0, count)

    def test_readme(self):
        self.check("README.md")

    def test_program_of_the_readme(self):
        program = re.search(r"^```c\n(.*?)^```$", read("README.md"), re.MULTILINE | re.DOTALL)[1]
        path = os.path.join(self.here, "program.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(program.replace("shm:redbucket", f"shm:{self.store}?size=1m"))
        session = ("    $ cc -Wall $(pkg-config --cflags redbucket) program.c"
                   " $(pkg-config --libs redbucket) -o program && ./program\n"
                   "    accepted, go on after 0.000 s\n")
        self.assertEqual([], transcript.faults("README.md", session, self.here, self.env)[0])

    def test_configuration_of_the_readme(self):
        lines = [line for _, block, _ in transcript.blocks(read("README.md")) for line in block]
        first = next(i for i, line in enumerate(lines) if line.startswith("store = "))
        with open(os.path.join(self.here, "redbucket.conf"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines[first:first + 3]) + "\n")
        session = ("    $ redbucket check\n    configuration: redbucket.conf\n    ...\n"
                   "    limit: user:5,burst=10\n    ...\n    limit: ip:20,delay=10\n    ...\n")
        self.assertEqual([], transcript.faults("README.md", session, self.here, self.env)[0])

    def test_tutorial(self):
        self.check("docs/tutorial.md")

    def test_choosing_limits(self):
        self.check("docs/choosing-limits.md")

    def test_from_nginx(self):
        self.check("docs/from-nginx.md")

    def test_from_the_original(self):
        self.check("docs/from-the-original.md")


class All(unittest.TestCase):
    def test_every_document_with_a_session_is_run_or_it_is_said_why_not(self):
        with_session = {path for path in documents() if transcript.parse(read(path))[1]}
        self.assertEqual(with_session, set(RUN) | (set(NOT_RUN) & with_session))

    def test_links_lead_somewhere(self):
        for path in documents():
            folder = os.path.dirname(os.path.join(SOURCE, path))
            for link in re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", read(path)):
                self.assertTrue(os.path.exists(os.path.join(folder, link)), f"{path}: {link}")


class Transcripts(unittest.TestCase):
    """What runs the documents finds what isn't as shown."""

    def faults(self, text):
        with tempfile.TemporaryDirectory() as folder:
            return transcript.faults("a.md", text, folder, dict(os.environ))

    def test_good_ones(self):
        text = ("# A\n\n    $ echo a; echo b >&2\n    a\n    b\n\n    $ cat <<'END'\n    $x\n    END\n"
                "    $x\n\nText.\n\n```sh\n$ echo 1.5 s\n2 s\n$ seq 9\n1\n...\n9\n$ false\n$ echo $?\n1\n```\n")
        faults, count = self.faults(text.replace("$ false\n", "$ sh -c 'echo a; exit 1'\na\n"))
        self.assertEqual(([], 6), (faults, count))

    def test_bad_ones(self):
        for text in ("    $ echo a\n    b\n", "    $ false\n", "    $ seq 3\n    1\n    ...\n    4\n",
                     "    $ echo a\n    a\n    b\n", "    $ printf 'a\\nb\\n'\n    a\n"):
            self.assertEqual(1, len(self.faults(text)[0]), text)

    def test_files(self):
        text = "<!-- file: a.txt -->\n```c\nint a;\n```\n\n    $ cat a.txt\n    int a;\n"
        self.assertEqual(([], 1), self.faults(text))

# SPDX-License-Identifier: MIT
"""What the tests of the command share: a folder and a store of their own, and running it."""

import glob
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

REDBUCKET = os.environ.get("REDBUCKET", "build/redbucket")
WITH_SERVERS = os.environ.get("SERVERS") != "no"

needs_servers = unittest.skipUnless(WITH_SERVERS, "this build has no stores on servers")

_numbers = itertools.count()


class CommandTest(unittest.TestCase):
    """Each test has self.folder, which it runs in, and a shared store self.store that nobody else
    names. The configuration is an empty file unless a test says otherwise."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redbucket-cli-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.store_name = f"redbucket-test-cli-{os.getpid()}-{next(_numbers)}"
        self.store = f"shm:{self.store_name}"
        self.addCleanup(self.remove_store)
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("REDBUCKET_", "LC_")) and name not in ("LANG", "LOCPATH")}
        self.env["REDBUCKET_CONFIG"] = self.write("empty.conf", "")
        self.env["REDBUCKET_STORE"] = self.store

    def remove_store(self):
        for path in glob.glob(f"/dev/shm/*{self.store_name}*"):
            os.unlink(path)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def start(self, *arguments, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("env", self.env)
        process = subprocess.Popen([os.path.abspath(REDBUCKET), *arguments], cwd=self.folder,
                                   **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        process.wait()

    def run_command(self, *arguments, **options):
        """Returns (exit status, standard output, standard error) as text."""
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=60)
        return (process.returncode, (out or b"").decode("utf-8", "surrogateescape"),
                (err or b"").decode("utf-8", "surrogateescape"))

    def assert_prints(self, status, out, *arguments):
        self.assertEqual(self.run_command(*arguments), (status, out, ""), arguments)

    def assert_fails(self, status, err, *arguments):
        """The whole of standard error is the line given, and nothing is on standard output."""
        self.assertEqual(self.run_command(*arguments),
                         (status, "", f"redbucket: {err}\n"), arguments)

    def ask(self, *arguments, status=0):
        """Runs the command with --json and returns the object it prints, on one line."""
        got, out, err = self.run_command("--json", *arguments)
        self.assertEqual((got, err, out.count("\n")), (status, "", 1), arguments)
        return json.loads(out)


def elapsed(since):
    return time.monotonic() - since

# SPDX-License-Identifier: MIT
"""Where the sessions and programs of a document are run: a folder of its own with what a reader would
have at hand, the built command and library, the package for Python, and the servers that it names.

What can't be done in a test is left to a stand-in: `sudo` runs what it is given, `make` names what it would do, and
nothing is fetched, sent or asked of other machines. (tests/torture/part-stranger does what the README says
to the letter, on a system that is made for it.)
"""

import contextlib
import glob
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ["BUILD"]
sys.path[:0] = [os.path.join(SOURCE, "tests"), os.path.join(SOURCE, "python", "tests")]

import cluster as clusters  # noqa: E402
import environment  # noqa: E402
import run_tests  # noqa: E402
import server as servers  # noqa: E402
import transcript  # noqa: E402

Missing = environment.Missing

STANDINS = {
    "curl": "",
    "sendmail": "",
    "apt": "",
    "pip": "",
    "sudo": 'exec "$@"\n',
    "make": f'exec {shutil.which("make")} -n -C "{SOURCE}" BUILD="{BUILD}" "$@" >/dev/null\n',
    # An environment of the reader's, which is the one that has the package already.
    "python3": f"""if [ "$1 $2" = "-m venv" ]; then
    mkdir -p "$3/bin" && ln -sf {shutil.which("true")} "$3/bin/pip" && ln -sf "$0" "$3/bin/python"
    exit
fi
exec "$REDBUCKET_DOCS_PYTHON" "$@"
""",
}

# What a document calls a cluster's nodes.
NODES = "redis+cluster://192.0.2.1,192.0.2.2"


class Place:
    """A context; `here` is the folder and `env` the environment of what is run in it."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="redbucket-docs-")
        self.here, self.bin = os.path.join(self.folder, "here"), os.path.join(self.folder, "bin")
        self.store = f"redbucket-test-docs-{os.getpid()}"
        os.makedirs(os.path.join(self.here, "examples"))
        os.mkdir(self.bin)
        os.symlink(os.path.join(BUILD, "redbucket"), os.path.join(self.bin, "redbucket"))
        for name, script in STANDINS.items():
            self.write_command(name, script)
        for path in glob.glob(os.path.join(SOURCE, "examples", "*.*")):
            shutil.copy(path, os.path.join(self.here, "examples"))
        # A log and a program of the reader's.
        shutil.copy(os.path.join(SOURCE, "examples", "access.log"), self.here)
        shutil.copy(os.path.join(SOURCE, "examples", "workers.c"), os.path.join(self.here, "program.c"))
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("REDBUCKET_", "LC_", "PYTHON", "MAKE"))}
        self.env |= {
            "PATH": f"{self.bin}:{os.environ['PATH']}", "LD_LIBRARY_PATH": BUILD, "LC_ALL": "C.UTF-8",
            "HOME": self.here, "REDBUCKET_STORE": f"shm:{self.store}?size=1m",
            "PKG_CONFIG_PATH": os.path.join(BUILD, "meson-uninstalled"),
            "REDBUCKET_DOCS_PYTHON": sys.executable, "FRAMES": os.path.join(HERE, "frames"),
        }
        self.change_examples("shm:redbucket-workers?size=1m", self.env["REDBUCKET_STORE"])
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)
        for path in glob.glob(f"/dev/shm/*{self.store}*"):
            os.unlink(path)

    def write_command(self, name, script):
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{script}")
        os.chmod(path, 0o755)

    def change_examples(self, old, new):
        programs = glob.glob(os.path.join(self.here, "examples", "*.*"))
        for path in (*programs, os.path.join(self.here, "program.c")):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(old, new))

    def need_python(self):
        """Missing where there is none."""
        self.env["REDBUCKET_DOCS_PYTHON"] = environment.interpreter(
            BUILD, "check", run_tests.PACKAGES, run_tests.WELCOME)

    @contextlib.contextmanager
    def with_servers(self, text):
        """The text of a document with addresses of stores that are the test's own."""
        text = text.replace("shm:redbucket", self.env["REDBUCKET_STORE"])
        with contextlib.ExitStack() as stack:
            if "redis://localhost" in text or "Redis()" in text:
                redis = stack.enter_context(servers.Server("redis"))
                text = text.replace("redis://localhost", f"redis://127.0.0.1:{redis.port}")
                self.change_examples("redis://localhost", f"redis://127.0.0.1:{redis.port}")
                # The default address of a client that is given none.
                text = text.replace("Redis()", f"Redis(port={redis.port})")
            if NODES in text:
                cluster = stack.enter_context(clusters.Cluster(
                    replicas=True, config=("cluster-replica-no-failover yes",
                                           "cluster-require-full-coverage no")))
                text = text.replace(NODES, cluster.url())
                self.env["NODE"] = str(cluster.nodes[0].process.pid)
            yield text

    def faults(self, path, text):
        """(what isn't as a document shows it, how many commands it has)"""
        # A program that is linked as shown has its server from the command line or in its source.
        if "python" in text:
            self.need_python()
        with self.with_servers(text) as served:
            return transcript.faults(path, served, self.here, self.env)

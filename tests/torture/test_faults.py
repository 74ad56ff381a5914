# SPDX-License-Identifier: MIT
"""The fast form of part-faults: each store and each form once, for seconds, with one seed."""

import concurrent.futures
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ["BUILD"]
SEED = "20270107"
SECONDS = "2.5"
JOBS = 5
SKIPPED = 77
STORES = ("redis", "valkey", "old-redis", "tls", "sentinel", "cluster")
FORMS = {"blocking": STORES, "array": ("redis", "old-redis", "cluster"),
         "async": ("valkey", "tls", "sentinel", "cluster"), "python": ("redis", "cluster")}


def interpreter():
    """Of the environment that the package's tests have; None, and why, where it can't be had."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(HERE, "..", "..", "python", "tests"))
    import environment
    import run_tests
    try:
        return environment.interpreter(BUILD, "check", run_tests.PACKAGES, run_tests.WELCOME), ""
    except environment.Missing as reason:
        return None, str(reason).splitlines()[-1]


def torment(store, form, python):
    folder = os.path.join(BUILD, "tests", "torture")
    return subprocess.run(
        [os.path.join(folder, "faults"), os.path.join(folder, "faults_world"), store, form, SECONDS,
         SEED], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
        env={**os.environ, "FAULTS_PYTHON": python or "",
             "FAULTS_SCRIPT": os.path.join(HERE, "faults.py")})


class Faults(unittest.TestCase):
    """They mostly wait, so all go on side by side, and each is looked at by itself."""

    @classmethod
    def setUpClass(cls):
        cls.python, cls.missing = None, "not under a sanitizer"
        if os.environ.get("FAULTS_PYTHON_FORM") == "yes":
            cls.python, cls.missing = interpreter()
        cls.pool = concurrent.futures.ThreadPoolExecutor(JOBS)
        cls.done = {(store, form): cls.pool.submit(torment, store, form, cls.python)
                    for form, stores in FORMS.items() for store in stores
                    if form != "python" or cls.python}

    @classmethod
    def tearDownClass(cls):
        cls.pool.shutdown()

    def check(self, store, form):
        if (store, form) not in self.done:
            self.skipTest(self.missing)
        done = self.done[store, form].result()
        if done.returncode == SKIPPED:
            self.skipTest("no such server here")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(" 0 faults", done.stdout)


def add(store, form):
    setattr(Faults, f"test_{form}_{store.replace('-', '_')}", lambda self: self.check(store, form))


for one, those in FORMS.items():
    for each in those:
        add(each, one)

if __name__ == "__main__":
    unittest.main()

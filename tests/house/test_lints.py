# SPDX-License-Identifier: MIT
"""The lints find what they are there for: each is run over a small tree with one fault in it.

A lint that has gone blind stays green, and nobody would know.
"""

import os
import shutil
import subprocess
import tempfile
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINTS = os.path.join(os.path.dirname(TESTS), "scripts", "lint")

# A hook of git that runs the tests would otherwise have them work on its repository.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

LICENCE = "/* SPDX-License-Identifier: MIT */\n"
TREE = {
    "include/redbucket/redbucket.h": LICENCE
    + "#define REDBUCKET_API\nREDBUCKET_API const char *redbucket_version(void);\n",
    "src/store.h": LICENCE + "rbk_store_opener rbk_memory_open;\nrbk_store_opener rbk_shm_open;\n",
    "src/store.c": LICENCE + '#include "store.h"\nrbk_memory_open, rbk_shm_open\n',
    "src/store_shm.c": LICENCE + '#include "store.h"\nint rbk_shm_open;\n',
    "src/model/limit.h": LICENCE + "int rbk_limit;\n",
    "src/model/limit.c": LICENCE + '#include "model/limit.h"\n',
    "src/table/table.h": LICENCE + '#include "model/limit.h"\n',
    "cli/main.c": LICENCE + "#include <jansson.h>\n#include <redbucket/redbucket.h>\n",
}


class Lint(unittest.TestCase):
    def setUp(self):
        self.tree = tempfile.mkdtemp(prefix="redbucket-lint-")
        self.addCleanup(shutil.rmtree, self.tree)
        for path, text in TREE.items():
            self.write(path, text)
        self.git("init", "--quiet")

    def git(self, *arguments):
        subprocess.run(["git", *arguments], cwd=self.tree, env=ENVIRONMENT, check=True)

    def write(self, path, text):
        path = os.path.join(self.tree, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run_lint(self, name):
        self.git("add", "--all")
        run = subprocess.run(
            [os.path.join(LINTS, name), "build"],
            cwd=self.tree,
            env=ENVIRONMENT,
            check=False,
            stdout=subprocess.PIPE,
            text=True,
        )
        return run.returncode, run.stdout

    def assert_clean(self, name):
        self.assertEqual((0, ""), self.run_lint(name))

    def assert_finds(self, name, path, text, where):
        """With `text` in the file at `path`, the lint fails and names WHERE (FILE:LINE)."""
        self.write(path, text)
        status, output = self.run_lint(name)
        self.assertNotEqual(0, status, output)
        self.assertIn(f"{where}: ", output)

    def test_good_tree_is_clean(self):
        for name in ("layers", "size", "spdx", "words"):
            self.assert_clean(name)

    def test_layers_model_may_not_look_up(self):
        text = LICENCE + '#include "table/table.h"\n'
        self.assert_finds("layers", "src/model/limit.c", text, "src/model/limit.c:2")

    def test_layers_model_may_not_use_the_public_header(self):
        text = LICENCE + "\n#  include <redbucket/redbucket.h>\n"
        self.assert_finds("layers", "src/model/limit.c", text, "src/model/limit.c:3")

    def test_layers_command_may_not_look_inside(self):
        text = LICENCE + '#include "../src/store.h"\n'
        self.assert_finds("layers", "cli/main.c", text, "cli/main.c:2")

    def test_layers_store_may_not_name_its_sibling(self):
        text = LICENCE + '#include "store.h"\nrbk_memory_open\n'
        self.assert_finds("layers", "src/store_shm.c", text, "src/store_shm.c:3")

    def test_layers_library_may_not_use_what_the_command_uses(self):
        text = LICENCE + "#include <confuse.h>\n"
        self.assert_finds("layers", "src/table/table.h", text, "src/table/table.h:2")

    def test_layers_new_file_needs_a_place(self):
        self.assert_finds("layers", "src/novel.c", LICENCE, "src/novel.c:1")

    def test_size_of_a_function(self):
        for lines, finds in ((70, False), (71, True)):
            text = LICENCE + "int f(void)\n{\n" + "    f();\n" * lines + "}\n"
            self.write("src/store.c", text)
            status, output = self.run_lint("size")
            self.assertEqual(finds, status != 0, output)

    def test_size_of_a_file(self):
        self.assert_finds("size", "src/store.c", LICENCE + "\n" * 500, "src/store.c:501")

    def test_spdx_is_needed_near_the_start(self):
        self.assert_finds("spdx", "src/store.c", "\n\n\n" + LICENCE, "src/store.c:1")

    def test_spdx_is_needed_in_the_last_file_too(self):
        self.assert_finds("spdx", "tests/z.py", "print()\n", "tests/z.py:1")

    def test_words_path_of_a_machine(self):
        text = LICENCE + "/* see " + "/ho" + "me/somebody/notes */\n"
        self.assert_finds("words", "tests/a.c", text, "tests/a.c:2")

    def test_words_function_of_the_locale(self):
        text = LICENCE + "/* strtod() is not used */\ndouble d = strtod(text, NULL);\n"
        self.assert_finds("words", "cli/main.c", text, "cli/main.c:3")

    def test_words_library_does_not_print(self):
        text = LICENCE + 'f("no printf()", printf("x"));\n'
        self.assert_finds("words", "src/store.c", text, "src/store.c:2")

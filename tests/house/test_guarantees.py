# SPDX-License-Identifier: MIT
"""docs/guarantees.md: no promise without a test that is there, no promise without a fault in the code that
a test catches; and the faults still fit the code. And the table of cases in tests/README.md. That the faults
are caught is for `make torture PARTS=mutations`."""

import json
import os
import re
import sys
import tempfile
import unittest

import named

SOURCE = named.SOURCE
sys.path.insert(0, os.path.join(SOURCE, "tests", "torture"))
import mutations  # noqa: E402

SECTION = re.compile(r"^### .*\n<a id=\"([\w-]+)\"></a>$", re.MULTILINE)
ROW = re.compile(r"^\| ([A-Z]\d\d[a-z]?)( •)? \|.*$", re.MULTILINE)
CASE_ID = re.compile(r"(?<![A-Za-z0-9])([TNCBMSPWLKVGOHY]\d\d[a-z]?)(?=_)")


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def promises():
    """The sections of the page, by their names."""
    text = read("docs/guarantees.md")
    begins = list(SECTION.finditer(text))
    ends = [match.start() for match in begins[1:]] + [text.find("\n## ", begins[-1].end())]
    return {match[1]: text[match.end():end] for match, end in zip(begins, ends)}


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = named.Programs(os.environ["BUILD"])

    def check(self, names):
        self.assertGreater(len(names), 20)
        self.assertEqual([], sorted({fault for program, case in names
                                     if (fault := self.programs.lacks(program, case))}))

    def test_tests_of_the_page_are_there(self):
        self.check(named.named_in(read("docs/guarantees.md")))

    def test_tests_of_the_table_are_there(self):
        self.check(named.named_in(read("tests/README.md")))

    def test_tests_that_catch_faults_are_there(self):
        self.check([catcher for mutation in mutations.read_all() for catcher in mutation.catchers])

    def test_what_is_not_there_is_noticed(self):
        self.assertIsNone(self.programs.lacks("unit-model", "no_state_is_level_zero"))
        self.assertIsNotNone(self.programs.lacks("unit-model", "no_state_is_level"))
        self.assertIsNotNone(self.programs.lacks("unit-models", "no_state_is_level_zero"))
        self.assertIsNotNone(self.programs.lacks("unit-table", "no_state_is_level_zero"))
        self.assertIsNotNone(self.programs.lacks("cli-config", "test_every"))


class Promises(unittest.TestCase):
    def test_each_names_a_test(self):
        for name, text in promises().items():
            self.assertTrue(named.named_in(text), name)

    def test_each_has_a_fault_and_each_fault_a_promise(self):
        self.assertEqual(set(promises()), {mutation.breaks for mutation in mutations.read_all()})

    def test_a_test_that_catches_a_fault_is_named_by_its_promise(self):
        page = promises()
        for mutation in mutations.read_all():
            self.assertTrue(any(catcher in named.named_in(page[mutation.breaks])
                                for catcher in mutation.catchers),
                            f"{mutation.where}: none of its tests is named under {mutation.breaks}")


class Faults(unittest.TestCase):
    def test_they_fit_the_code(self):
        for mutation in mutations.read_all():
            with self.subTest(mutation.where):
                texts = mutations.applied(mutation, SOURCE)
                for path, text in texts.items():
                    self.assertNotEqual(text, read(os.path.relpath(path, SOURCE)))

    def test_they_have_names_of_their_own(self):
        names = [mutation.name for mutation in mutations.read_all()]
        self.assertEqual(len(names), len(set(names)))

    def list_of(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with open(os.path.join(folder.name, "list.txt"), "w", encoding="utf-8") as file:
            file.write(text)
        return mutations.read_all(folder.name)

    def test_a_list_that_no_longer_fits_is_an_error(self):
        entry = "== x\nbreaks: bound\ncaught by: unit-model: y\nin: src/model/bucket.c\n"
        for change in ("- no such line\n+ another\n",
                       "- {\n+ }\n",  # stands there more than once
                       "- static double slack(const struct rbk_limit *limit\n+\n"):  # no whole line
            with self.assertRaises(mutations.Wrong):
                mutations.applied(self.list_of(entry + change)[0], SOURCE)
        for text in (entry, entry + "- a\n+ a\n", entry.replace("breaks: bound\n", "") + "- a\n+ b\n",
                     "- a\n", entry + "? a\n"):
            with self.assertRaises(mutations.Wrong):
                self.list_of(text)


class Cases(unittest.TestCase):
    def test_each_has_one_row_with_a_test(self):
        rows = {match[1]: match[0] for match in ROW.finditer(read("tests/README.md"))}
        self.assertEqual(len(rows), len(ROW.findall(read("tests/README.md"))))
        for name, row in rows.items():
            self.assertTrue(named.named_in(row), name)

    def test_those_of_the_data_are_marked(self):
        marked = {match[1] for match in ROW.finditer(read("tests/README.md")) if match[2]}
        data = {json.loads(line)["id"] for line in read("tests/data/cases.jsonl").splitlines()}
        self.assertEqual(marked, data)

    def test_those_that_tests_are_called_by_are_in_the_table(self):
        rows = {match[1] for match in ROW.finditer(read("tests/README.md"))}
        for folder, _, names in os.walk(os.path.join(SOURCE, "tests")):
            for name in names:
                if name.startswith("test_") and name.endswith((".c", ".py")) and folder != named.HERE:
                    called = set(CASE_ID.findall(read(os.path.join(folder, name))))
                    self.assertEqual(set(), called - rows, name)

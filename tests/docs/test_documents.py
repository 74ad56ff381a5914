# SPDX-License-Identifier: MIT
"""What documents show of a shell comes out as they show it, on the built command and library, with
real servers where some are named. tests/docs/transcript.py says what a session is."""

import os
import re
import unittest

import blocks
import transcript
from place import SOURCE, Missing, Place

TRIES = 3


class Sessions(unittest.TestCase):
    def check(self, path):
        """What is shown of a limit holds for some seconds: on a machine that was held up for longer,
        the document is begun anew."""
        text = blocks.read(path)
        for _ in range(TRIES):
            with Place() as place:
                try:
                    faults, count = place.faults(path, text)
                except Missing as reason:
                    self.skipTest(f"no environment: {str(reason).splitlines()[-1]}")
            if not faults:
                break
        self.assertEqual([], faults, "\n\n".join(["", *faults]))
        self.assertLess(0, count)


def name_of(path):
    return "test_" + re.sub(r"\W+", "_", os.path.splitext(path)[0].removeprefix("docs/")).lower()


for _path in blocks.documents():
    if any(block.is_session() for block in transcript.blocks(blocks.read(_path))):
        setattr(Sessions, name_of(_path), lambda self, path=_path: self.check(path))


class Transcripts(unittest.TestCase):
    """What runs the documents finds what isn't as shown."""

    def faults(self, text):
        with Place() as place:
            return transcript.faults("a.md", text, place.here, place.env)

    def test_good_ones(self):
        text = ("# A\n\n    $ echo a; echo b >&2\n    a\n    b\n\n    $ cat <<'END'\n    $x\n    END\n"
                "    $x\n\nText.\n\n```sh\n$ echo 1.5 s\n2 s\n$ seq 9\n1\n...\n9\n$ false\n$ echo $?\n1\n```\n")
        faults, count = self.faults(text.replace("$ false\n", "$ sh -c 'echo a; exit 1'\na\n"))
        self.assertEqual(([], 6), (faults, count))

    def test_bad_ones(self):
        for text in ("    $ echo a\n    b\n", "    $ false\n", "    $ seq 3\n    1\n    ...\n    4\n",
                     "    $ echo a\n    a\n    b\n", "    $ printf 'a\\nb\\n'\n    a\n",
                     "<!-- numbers: vary -->\n\n    $ echo 1 a\n    2 b\n",
                     "Text.\n    - item\n\n    $ echo a\n    b\n", "    $ make no-such-target\n"):
            self.assertEqual(1, len(self.faults(text)[0]), text)

    def test_files_are_written_when_it_is_their_turn(self):
        text = ("    $ test ! -e a.txt\n\n<!-- file: a.txt -->\n```c\nint a;\n```\n\n    $ cat a.txt\n"
                "    int a;\n")
        self.assertEqual(([], 3), self.faults(text))

    def test_comments(self):
        text = ("<!-- before: a=5;\nb=6 -->\n<!-- numbers: vary -->\n\n    $ echo $a  x $b,2\n    7 x    9\n\n"
                "<!-- before: a=7 -->\nText in between.\n\n    $ echo $a\n    5\n")
        self.assertEqual(([], 3), self.faults(text))
        text = "<!-- order: vary -->\n\n    $ printf '1\\n2\\n'\n    2\n    1\n"
        self.assertEqual(([], 1), self.faults(text))
        self.assertEqual(1, len(self.faults(text.replace("    1", "    3"))[0]))

    def test_stand_ins(self):
        text = ("    $ make demo && sudo make install PREFIX=/nowhere\n    $ apt install nothing\n"
                "    $ python3 -m venv env && env/bin/pip install x && env/bin/python -c 'print(1)'\n    1\n")
        self.assertEqual(([], 3), self.faults(text))


class All(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for path in blocks.documents():
            folder = os.path.dirname(os.path.join(SOURCE, path))
            for link in re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", blocks.read(path)):
                self.assertTrue(os.path.exists(os.path.join(folder, link)), f"{path}: {link}")

    def test_links_to_headings_have_one(self):
        for path in blocks.documents():
            folder = os.path.dirname(path)
            for link, anchor in re.findall(r"\]\(([^)#:]*)#([\w-]+)\)", blocks.read(path)):
                other = os.path.normpath(os.path.join(folder, link)) if link else path
                headings = re.findall(r"^#+ (.*)$", blocks.read(other), re.MULTILINE)
                anchors = re.findall(r'<a id="([\w-]+)">', blocks.read(other))
                anchors += [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
                self.assertIn(anchor, anchors, f"{path}: {link}#{anchor}")

    def test_every_page_is_in_the_list_of_pages(self):
        listed = re.findall(r"\]\(([\w-]+\.md)\)", blocks.read("docs/README.md"))
        there = [os.path.basename(path) for path in blocks.documents() if path.startswith("docs/")]
        self.assertEqual(sorted(set(there) - {"README.md"}), sorted(listed))


if __name__ == "__main__":
    unittest.main()

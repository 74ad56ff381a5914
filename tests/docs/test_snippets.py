# SPDX-License-Identifier: MIT
"""Code in documents and manual pages that is no session of a shell: each block is of a kind, and what is
done with that kind shows that it holds. C and Python are run, configurations and URLs are read by the
command, and what a block says of an output is what comes out."""

import itertools
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import blocks
import snippets
import transcript
from place import BUILD, SOURCE, Missing, Place

REDBUCKET = os.path.join(BUILD, "redbucket")


def pages_with(ending):
    """[(path, name)]: the frames of such a name that documents have parts for."""
    return sorted({(path, block.said["frame"]) for path, block in blocks.of_kind("c", "python", "cmake")
                   if "frame" in block.said and block.said["frame"].endswith(ending)})


class Parts(unittest.TestCase):
    def run_part(self, place, command, path, name):
        said = snippets.output_of(command, cwd=place.here, env=place.env).splitlines()
        for block in transcript.blocks(blocks.read(path)):
            if "said" in block.said and block.said["said"] == name:
                self.assert_shown(block, said, path)

    def assert_shown(self, block, said, path):
        """A block is some of the lines that were said; "..." in it stands for anything, and a line that begins with
        a blank goes on the one before."""
        text = block.text.replace("\n ", "").rstrip("\n")
        pattern = re.escape(text).replace(re.escape("..."), ".*")
        self.assertRegex("\n".join(said), re.compile(pattern, re.DOTALL), f"{path}:{block.number}")

    def test_c(self):
        for path, name in pages_with(".c"):
            text = snippets.framed(blocks.read(path), name)
            with self.subTest(path, part=name), Place() as place:
                if snippets.can_compile(text):
                    self.run_part(place, [snippets.compiled(text, place.here)], path, name)

    def need_python(self):
        try:
            with Place() as place:
                place.need_python()
        except Missing as reason:
            self.skipTest(f"no environment: {str(reason).splitlines()[-1]}")

    def test_python(self):
        self.need_python()
        for path, name in pages_with(".py"):
            with self.subTest(path, part=name), Place() as place:
                self.run_python(place, path, snippets.framed(blocks.read(path), name), name)

    def run_python(self, place, path, text, name=None):
        place.need_python()
        with place.with_servers(text) as served:
            with open(os.path.join(place.here, "part.py"), "w", encoding="utf-8") as file:
                file.write(served)
            self.run_part(place, [place.env["REDBUCKET_DOCS_PYTHON"], "-W", "error", "part.py"], path, name)

    def test_whole_ones_of_python(self):
        self.need_python()
        for path, block in blocks.of_kind("python"):
            if "frame" not in block.said:
                with self.subTest(path, line=block.number), Place() as place:
                    self.run_python(place, path, block.text)

    def test_cmake(self):
        if not shutil.which("cmake"):
            self.skipTest("no CMake")
        for path, name in pages_with("CMakeLists.txt"):
            with self.subTest(path), Place() as place:
                root = os.path.join(place.folder, "root")
                snippets.output_of(["meson", "install", "-C", BUILD, "--no-rebuild"],
                                   env={**os.environ, "DESTDIR": root})
                config = next(folder for folder, _, files in os.walk(root) if "redbucketConfig.cmake" in files)
                with open(os.path.join(place.here, name), "w", encoding="utf-8") as file:
                    file.write(snippets.framed(blocks.read(path), name))
                snippets.output_of(["cmake", "-S", place.here, "-B", place.folder + "/made", f"-Dredbucket_DIR={config}"])
                snippets.output_of(["cmake", "--build", place.folder + "/made"])
                self.run_part(place, [place.folder + "/made/program", place.env["REDBUCKET_STORE"]], path, name)


class Read(unittest.TestCase):
    """By the command."""

    def check(self, *arguments):
        return subprocess.run([REDBUCKET, *arguments, "check"], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def assert_configuration(self, text, where):
        with tempfile.TemporaryDirectory(prefix="redbucket-docs-") as folder:
            path = os.path.join(folder, "redbucket.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            run = self.check("-c", path, "-s", "memory:")
        self.assertEqual((0, ""), (run.returncode, run.stderr), where)
        for name in re.findall(r"^limit (\w+)", text, re.MULTILINE):
            self.assertRegex(run.stdout, rf"(?m)^limit: {name}:", where)

    def test_configurations(self):
        found = blocks.of_kind("conf")
        self.assertTrue(found)
        for path, block in found:
            self.assert_configuration(block.text, f"{path}:{block.number}")
        for path, block in blocks.of_kind("file"):
            if block.said["file"].endswith(".conf"):
                self.assert_configuration(block.text, f"{path}:{block.number}")

    @staticmethod
    def urls_of(form):
        """What a form stands for, with all that may be left out there and not."""
        form = form.replace("HOST[:PORT]...", "HOST[:PORT]")
        for old, new in (("USER", "user"), ("PASSWORD", "word"), ("HOST", "127.0.0.1"), ("PORT", "1"), ("DB", "2"),
                         ("N", "3"), ("/PATH", "/nonexistent/socket"), ("SERVICE", "main")):
            form = re.sub(rf"\b{new}\b|{old}", new, form)
        parts = re.split(r"(\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\])", form)
        ways = [[part] if not part.startswith("[") else ["", *Read.urls_of(part[1:-1])] for part in parts]
        return ["".join(way) for way in itertools.product(*ways)]

    def test_forms_of_urls(self):
        """Each is one to the command, which then finds nobody there, or somebody at the usual port."""
        found = blocks.of_kind("url")
        self.assertTrue(found)
        for path, block in found:
            for line in block.lines:
                form = line.split("  ")[0]
                if form.endswith("://..."):
                    self.assertIn(form[:-6].replace("rediss", "redis") + "://", block.text)
                    continue
                for url in self.urls_of(form):
                    run = self.check("-c", "/dev/null", "-s", url + ("&" if "?" in url else "?") + "timeout=50ms")
                    self.assertIn(run.returncode, (0, 3), f"{path}: {url}: {run.stderr}")

    def test_forms_are_spelt_out(self):
        self.assertEqual(["a://127.0.0.1", "a://127.0.0.1:1", "a://user@127.0.0.1", "a://user@127.0.0.1:1",
                          "a://user:word@127.0.0.1", "a://user:word@127.0.0.1:1"],
                         self.urls_of("a://[USER[:PASSWORD]@]HOST[:PORT]"))


class Manual(unittest.TestCase):
    """What stands apart in a manual page."""

    def test_each_display_holds(self):
        errors = {line for path in blocks.documents() for command in transcript.parse(blocks.read(path))
                  for line in command.shown}
        for path in blocks.manual_pages():
            for lines in blocks.displays(path):
                with self.subTest(path, display=lines[0]):
                    self.assert_holds(lines, path, errors)

    def assert_holds(self, lines, path, errors):
        text = "".join(line + "\n" for line in lines)
        if lines[0].startswith("$ "):
            with Place() as place:
                faults, count = place.faults(path, f"    {lines[0]}\n")
            self.assertEqual(([], 1), (faults, count))
        elif "int main(" in text:
            with tempfile.TemporaryDirectory(prefix="redbucket-docs-") as folder:
                said = snippets.output_of([snippets.compiled(text, folder)])
            self.assertEqual("accepted, go on after 0.000 s\n", said)
        elif lines[0].startswith("redbucket: "):
            self.assertIn(lines[0], errors)
        else:
            Read.assert_configuration(Read(), text, path)


class All(unittest.TestCase):
    """Nothing is left out."""

    def test_every_block_is_of_a_kind(self):
        for path in blocks.documents():
            for block in transcript.blocks(blocks.read(path)):
                self.assertIsNotNone(blocks.kind(path, block),
                                     f"{path}:{block.number} is neither run nor in blocks.NOT_RUN:\n{block.text}")

    def test_what_is_not_run_is_there(self):
        there = [(path, block) for path in blocks.documents() for block in transcript.blocks(blocks.read(path))]
        for reason, pairs in blocks.NOT_RUN.items():
            for page, begin in pairs:
                self.assertTrue(any(path == page and block.text.startswith(begin) for path, block in there),
                                f"{page} has no {begin!r} any more: {reason}")

    def test_every_part_of_c_is_run(self):
        """Framed, or a file that a session compiles, or one of the examples word by word."""
        for path, block in blocks.of_kind("c"):
            if "frame" not in block.said:
                name = re.search(r"\]\((?:\.\./)?(examples/\w+\.c)\)", blocks.read(path))
                self.assertIsNotNone(name, f"{path}:{block.number}")
                self.assertTrue(blocks.read(name[1]).endswith(block.text), f"{path}:{block.number}: {name[1]} differs")
        for path, block in blocks.of_kind("file"):
            name = block.said["file"]
            self.assertTrue(any(re.search(rf"(?<!\w){re.escape(name.split('.')[0])}", command.text)
                                for command in transcript.parse(blocks.read(path)) if "<<" not in command.text) or
                            name == "redbucket.conf", f"{path}: {name} is not used")

    def test_every_output_has_its_program(self):
        for path, block in blocks.of_kind("output"):
            self.assertIn((path, block.said["said"]), pages_with(""), f"{path}:{block.number}")

    def test_every_frame_is_used(self):
        used = {name for _, name in pages_with("")} | {
            name for path in blocks.documents() for name in re.findall(r'\$FRAMES/([\w.]+)', blocks.read(path))}
        there = {name.removesuffix(".in") for name in os.listdir(os.path.join(SOURCE, "tests", "docs", "frames"))}
        self.assertEqual(there, used)

    def test_examples_in_python_are_those_of_the_folder(self):
        text = blocks.read("README.md")
        block = next(block for path, block in blocks.of_kind("python") if path == "README.md")
        name = re.search(r"\]\((examples/\w+\.py)\)", text)[1]
        self.assertTrue(blocks.read(name).endswith(block.text), f"{name} differs")


if __name__ == "__main__":
    unittest.main()

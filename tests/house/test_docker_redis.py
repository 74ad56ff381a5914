# SPDX-License-Identifier: MIT
"""scripts/docker_redis.sh against a stand-in for the engine's command, which starts real servers."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts", "docker_redis.sh")
ENGINE = os.path.join(HERE, "engine")

sys.path.insert(0, os.path.dirname(HERE))
import resp  # noqa: E402

ASK = 'redis-cli -u "$REDIS_URL" set here 1 && echo "$REDIS_CONTAINER"'


class Script(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="redbucket-engine-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(self.stop_all)
        self.state = os.path.join(self.folder, "state")
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.state)
        os.mkdir(self.bin)
        self.env = {**os.environ, "ENGINE_STATE": self.state,
                    "PATH": f"{self.bin}:{os.environ['PATH']}"}
        for name in ("CONTAINER_ENGINE", "REDIS_URL", "REDIS_CONTAINER"):
            self.env.pop(name, None)
        self.engine("docker")

    def engine(self, name):
        os.symlink(ENGINE, os.path.join(self.bin, name))

    def containers(self):
        return sorted(name for name in os.listdir(self.state) if name.startswith("c0ffee"))

    def stop_all(self):
        for name in self.containers():
            subprocess.run([ENGINE, "stop", name], env=self.env, check=False)

    def calls(self, command=None):
        with open(os.path.join(self.state, "calls"), encoding="utf-8") as file:
            calls = [json.loads(line) for line in file]
        return [call for call in calls if command in (None, call[0])]

    def start(self, *arguments, **env):
        return subprocess.Popen([SCRIPT, *arguments], env={**self.env, **env}, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run_script(self, *arguments, **env):
        with self.start(*arguments, **env) as process:
            out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def assert_image(self, image, *arguments, **env):
        self.assertEqual(0, self.run_script(*arguments, "true", **env)[0])
        self.assertEqual(image, self.calls("run")[-1][-1])

    def test_command_has_a_server_that_is_gone_behind_it(self):
        status, out, err = self.run_script("sh", "-c", ASK)
        self.assertEqual((0, "OK"), (status, out.split()[0]), err)
        self.assertRegex(err, r"^docker_redis: container c0ffee\w{6} serves on port \d+\n$")
        self.assertEqual([["stop", out.split()[1]]], self.calls("stop"))
        self.assertEqual([], self.containers())

    def test_status_is_that_of_the_command(self):
        self.assertEqual(42, self.run_script("sh", "-c", "exit 42")[0])
        self.assertEqual(127, self.run_script("/no/such/program")[0])
        self.assertEqual([], self.containers())

    def test_arguments_of_the_command_are_its_own(self):
        status, out, _ = self.run_script("-n", "a", "printf", "%s|", "-n", "b c", "", "$x")
        self.assertEqual((0, "-n|b c||$x|"), (status, out))

    def test_without_a_command_a_shell_can_evaluate_what_is_printed(self):
        _, out, _ = self.run_script()
        self.assertEqual(2, len(re.findall(r"^export REDIS_(?:URL|CONTAINER)='[^']+'$", out,
                                           re.MULTILINE)), out)
        said = subprocess.run(["sh", "-c", f"{out}\n{ASK}"], check=True, text=True,
                              stdout=subprocess.PIPE, env=self.env).stdout.split()
        self.assertEqual(["OK", *self.containers()], said)
        self.assertEqual([], self.calls("stop"))

    def test_image_tag_and_name(self):
        self.assert_image("redis:alpine")
        self.assert_image("redis:6", "-t", "6")
        self.assert_image("valkey/valkey:8", "-i", "valkey/valkey:8")
        self.assert_image("redis:7", "-i", "other", "-t", "7")
        self.assertEqual("--name=redis", self.calls("run")[0][-2])
        self.run_script("-n", "mine", "true")
        self.assertEqual("--name=mine", self.calls("run")[-1][-2])

    def test_podman_is_taken_where_there_is_no_docker(self):
        os.unlink(os.path.join(self.bin, "docker"))
        self.engine("podman")
        for tool in ("sh", "env", "python3", "sed", "sleep", "tail", "timeout", "redis-cli"):
            os.symlink(shutil.which(tool), os.path.join(self.bin, tool))
        path = {"PATH": self.bin, "REDIS_SERVER": shutil.which("redis-server") or
                os.environ.get("REDIS_SERVER", "")}
        self.assert_image("docker.io/library/redis:alpine", **path)
        os.unlink(os.path.join(self.bin, "podman"))
        status, _, err = self.run_script(**path)
        self.assertEqual((1, "docker_redis: neither docker nor podman is here\n"), (status, err))

    def test_engine_can_be_named(self):
        self.engine("podman-remote")
        self.assert_image("docker.io/library/redis:5", "-t", "5", CONTAINER_ENGINE="podman-remote")

    def test_server_that_takes_its_time_is_waited_for(self):
        self.assertEqual(0, self.run_script("sh", "-c", ASK, ENGINE_SLOW="5")[0])
        self.assertLess(5, len(self.calls("exec")))

    def test_image_may_have_the_client_of_valkey(self):
        self.assertEqual(0, self.run_script("true", ENGINE_CLIENT="valkey-cli")[0])

    def test_server_that_does_not_come_is_an_error_and_is_stopped(self):
        script = os.path.join(self.folder, "impatient")
        with open(SCRIPT, encoding="utf-8") as file:
            text = file.read().replace("TRIES=100", "TRIES=2")
        with open(script, "w", encoding="utf-8") as file:
            file.write(text)
        run = subprocess.run(["sh", script, "-i", "silent", "true"], env=self.env, check=False,
                             text=True, capture_output=True)
        self.assertEqual((1, ""), (run.returncode, run.stdout))
        self.assertIn("the log of silent\ndocker_redis: the server did not start\n", run.stderr)
        self.assertEqual([], self.containers())

    def test_engine_that_fails_is_an_error_and_nothing_is_stopped(self):
        status, out, err = self.run_script("-i", "broken", "touch", "/dev/null")
        self.assertEqual((1, ""), (status, out))
        self.assertEqual("engine: no such image\ndocker_redis: docker could not run broken as redis\n",
                         err)
        self.assertEqual([], self.calls("stop"))

    def test_name_that_is_taken_leaves_its_container_alone(self):
        self.run_script()
        self.assertEqual(1, self.run_script("true")[0])
        self.assertEqual(1, len(self.containers()))

    def test_signal_ends_the_server_too(self):
        started = os.path.join(self.folder, "started")
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            # What is ignored here, as under nohup or behind an `&`, is so in whatever is started.
            self.addCleanup(signal.signal, number, signal.signal(number, signal.SIG_DFL))
            with self.start("sh", "-c", f"touch {started}; sleep 1") as process:
                while not os.path.exists(started) and process.poll() is None:
                    time.sleep(0.01)
                process.send_signal(number)
                process.communicate(timeout=60)
            os.unlink(started)
            self.assertEqual(128 + number, process.returncode)
            self.assertEqual([], self.containers())

    def test_mistakes_are_told_with_the_usage(self):
        for arguments, message in ((["-x"], "no option -x"), (["-t"], "-t takes an argument")):
            status, out, err = self.run_script(*arguments)
            self.assertEqual((2, "", f"docker_redis: {message}"), (status, out, err.split("\n")[0]))
            self.assertRegex(err, r"\nusage: .*docker_redis.sh \[-t TAG \| -i IMAGE\]")
        self.assertFalse(os.path.exists(os.path.join(self.state, "calls")))

    def test_help_is_no_mistake(self):
        status, out, err = self.run_script("-h")
        self.assertEqual((0, ""), (status, err))
        self.assertTrue(out.startswith("usage: "))

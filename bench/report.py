#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the measurements and prints them as ratios, with the machine and the versions.

usage: bench/report.py BUILD EMBEDDED SERVER LEASES LOOP

Rates on a shared machine move from run to run; a ratio of two taken in one run moves little. The
reference is the Python package redbucket 0.1.0: its memory limiter, and its script under
redis-benchmark. It is installed into an environment of its own below BUILD; without a package index
its ratios are left out, visibly. The server is one that is started for this.
"""

import contextlib
import os
import platform
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests"))

import original  # noqa: E402, these two are the tests'
import server as servers  # noqa: E402

# What to divide, what is asked for, and which side of it is good; None where it only explains.
RATIOS = [
    ("memory, one hot key : original", "memory_hot", "original_hot", ">=", 10.0),
    ("memory, one hot key, rejected : original", "memory_rejected", "original_hot", ">=", 10.0),
    ("memory, a million keys with skew : original", "memory_skewed", "original_hot", ">=", 10.0),
    ("shm time : memory time, one hot key", "memory_hot", "shm_hot", "<=", 1.3),
    ("shm time : memory time, a million keys", "memory_skewed", "shm_skewed", "<=", 1.3),
    ("server, one caller : PING", "server_one_us", "ping_us", "<=", 1.15),
    ("  of which TIME, GET and SETEX in a script", "least_script_us", "ping_us", None, None),
    ("server, batches of 32, 1,000 keys : original's", "batches_1000", "original_1000", ">=", 3.0),
    ("server, batches of 32, 100,000 keys : original's", "batches_100000", "original_100000", ">=",
     3.0),
    ("server, arrays of 256, 100,000 keys : original's", "arrays_100000", "original_100000", None,
     None),
    ("one event loop, 256 outstanding : original's", "loop_100000", "original_100000", ">=", 2.5),
    ("server, 32 threads : one thread", "crowd", "one_thread", ">=", 6.0),
    ("leased hot key, 2 processes : without a lease", "hot_leased", "hot_unleased", ">=", 50.0),
    ("rejected again : clock_gettime", "denied_ns", "clock_ns", "<=", 5.0),
    ("cluster of three, arrays : of one node", "cluster_of_3", "cluster_of_1", None, None),
]


def values(command):
    """The NAME VALUE lines that a command prints, or {} when it can't be run."""
    try:
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"bench: not measured: {error}", file=sys.stderr)
        return {}
    return {name: float(value) for name, value in map(str.split, output.splitlines())}


def original_script(server, sha, keys, count=80_000):
    """Requests a second of the original's script, 64 at once on each of 50 connections."""
    text = subprocess.run(
        ["redis-benchmark", "-s", server.socket, "-P", "64", "-n", str(count), "-r", str(keys),
         "--csv", "EVALSHA", sha, "1", "redbucket:user:__rand_int__", "user"],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    return float(text.splitlines()[-1].split(",")[1].strip('"'))


def measure_saturated(python, server, programs, rounds=5):
    """The original's script and ours, taking turns, so that both meet the same machine. Lists of
    what each round gave, by name."""
    measured = {}
    url = f"unix://{server.socket}"
    try:
        text = subprocess.run([python, "-W", "ignore", os.path.join(HERE, "original_script.py")],
                              check=True, stdout=subprocess.PIPE, text=True).stdout
        sha = server.ask("SCRIPT", "LOAD", text).decode()
        for keys in (1_000, 100_000):
            for _ in range(rounds):
                rates = {f"original_{keys}": original_script(server, sha, keys)}
                for kind, size in (("batches", 32), ("arrays", 256)):
                    name = f"{kind}_{keys}"
                    rates.update(values([programs[0], name, url, str(size), str(keys)]))
                rates.update(values([programs[1], f"loop_{keys}", url, "256", str(keys)]))
                for name, rate in rates.items():
                    measured.setdefault(name, []).append(rate)
            server.ask("FLUSHALL")
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"bench: not measured: {error}", file=sys.stderr)
    return measured


def measure_server(python, program, leases, loop):
    with servers.Server("redis", config=['save ""']) as server:
        measured = measure_saturated(python, server, (program, loop))
        server.ask("FLUSHALL")
        measured.update(values([program, server.socket]))
        server.ask("FLUSHALL")
        measured.update(values([leases, server.socket]))
    return measured


def serve_slots(nodes):
    """Makes a cluster of the servers, each with its share of the slots."""
    for i, node in enumerate(nodes):
        first, last = (n * 16384 // len(nodes) for n in (i, i + 1))
        node.ask("CLUSTER", "ADDSLOTS", *map(str, range(first, last)))
        node.ask("CLUSTER", "MEET", "127.0.0.1", str(nodes[0].port))
    for node in nodes:
        while b"cluster_state:ok" not in node.ask("CLUSTER", "INFO"):
            time.sleep(0.05)


def measure_clusters(program):
    """Arrays on one node in cluster mode, and on three."""
    measured = {}
    for size in (1, 3):
        with contextlib.ExitStack() as stack:
            nodes = [stack.enter_context(servers.Server("redis", config=["cluster-enabled yes"]))
                     for _ in range(size)]
            serve_slots(nodes)
            url = "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)
            measured.update(values([program, f"cluster_of_{size}", url]))
    return measured


def versions(program):
    """What was built, and by what."""
    try:
        return subprocess.run([program, "versions"], check=True, stdout=subprocess.PIPE,
                              text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"redbucket of unknown version: {error}"


def machine():
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}"


def best(value):
    return max(value) if isinstance(value, list) else value


def ratio_of(above, below):
    """Of two that took turns, the median over the turns; else of what each gave."""
    if isinstance(above, list) and isinstance(below, list):
        return statistics.median(a / b for a, b in zip(above, below))
    return best(above) / best(below)


def show_rates(measured):
    for name, value in measured.items():
        value = best(value)
        if name.endswith(("_us", "_ns")):
            print(f"  {name:<20}{value:8.3f} {name[-2:]}")
        elif not name.startswith(("bytes", "live", "evicted")):
            print(f"  {name:<20}{value / 1e6:8.3f} M decisions/s{1e9 / value:8.0f} ns")


def show_ratios(measured):
    for text, above, below, side, target in RATIOS:
        if above not in measured or below not in measured:
            print(f"  {text:<50}   not measured")
            continue
        ratio = ratio_of(measured[above], measured[below])
        if side is None:
            print(f"  {text:<50}{ratio:8.2f}")
            continue
        good = ratio >= target if side == ">=" else ratio <= target
        print(f"  {text:<50}{ratio:8.2f}   {side} {target:g} {'met' if good else 'MISSED'}")


def show_memory(measured):
    if "bytes_a_key" not in measured:
        return
    value = measured["bytes_a_key"]
    met = value <= 64 and measured["live_keys"] == 1e6 and measured["evicted_keys"] == 0
    text = "memory, bytes a key for a million live keys"
    print(f"  {text:<50}{value:8.2f}   <= 64 {'met' if met else 'MISSED'}")


def main():
    build, embedded, server, leases, loop = sys.argv[1:6]
    version = ".".join(map(str, servers.version_of(servers.program("redis"))))
    print(f"machine: {machine()}\n{versions(embedded)}\n"
          f"Redis {version}, Python {platform.python_version()}\n")
    try:
        python = original.interpreter(build)
    except original.Missing as reason:
        print(f"bench: no original: {reason}", file=sys.stderr)
        python = "no-original"
    measured = values([embedded])
    measured.update(values([python, os.path.join(HERE, "original_memory.py")]))
    measured.update(measure_server(python, server, leases, loop))
    measured.update(measure_clusters(server))
    print("rates (best of several rounds)")
    show_rates(measured)
    print("\nratios, and what is asked for")
    show_ratios(measured)
    show_memory(measured)
    sys.exit(not measured)


if __name__ == "__main__":
    main()

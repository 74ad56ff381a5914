# SPDX-License-Identifier: MIT
"""check of a cluster: who is there, what fails, what can be lost."""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cluster import Cluster, MASTERS, SLOTS
from command import CommandTest
import server as servers

LIMITS = ("-l", "user:0.001/s,burst=1", "-l", "ip:0.001/s,burst=1")
VERSION = ".".join(map(str, servers.version_of(servers.program("redis"))))
LOSES_ALL = "appendonly is no: a restart loses all buckets"
NO_REPLICA = "no replica: when a master dies, its slots fail and its buckets are lost"
FAILOVER = "a failover loses the last writes, which replicas haven't received"


def slots_of(index):
    """How many the fixture gives to a master."""
    return SLOTS * (index + 1) // MASTERS - SLOTS * index // MASTERS


class ClusterTest(CommandTest):
    def health(self, cluster, query=""):
        """What check says of the cluster under "server", as JSON."""
        return self.ask("-s", cluster.url(query=query), *LIMITS, "check")["server"]

    def assert_unavailable(self, cluster, why):
        status, _, err = self.run_command("-s", cluster.url(), *LIMITS, "check")
        self.assertEqual(status, 3)
        self.assertRegex(err, r"\Aredbucket: store: server unavailable: 127\.0\.0\.1:\d+: "
                              rf"says that the cluster is down: {why}\n\Z")


class Healthy(ClusterTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(replicas=True)
        cls.addClassCleanup(cls.cluster.stop)

    def test_it_says_who_is_there(self):
        status, out, err = self.run_command("-s", self.cluster.url(), *LIMITS, "check")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, rf"(?m)^the store is there\nserver: Redis {VERSION}, decides by script, "
                              r"answers in [0-9.]+ ms\n"
                              r"cluster: 3 masters, 3 replicas, 16384 of 16384 slots served\n"
                              rf"warning: {LOSES_ALL}\nwarning: {FAILOVER}\n\Z")

    def test_it_says_the_same_as_json(self):
        health = self.health(self.cluster)
        self.assertGreater(health.pop("round_trip"), 0)
        self.assertEqual(health, {
            "is": f"Redis {VERSION}", "method": "script", "masters": 3, "silent": 0, "replicas": 3,
            "slots": 16384, "warnings": [LOSES_ALL, FAILOVER]})

    def test_what_only_some_masters_have_is_said_with_their_places(self):
        nodes = self.cluster.nodes
        for node in nodes[1:3]:
            self.addCleanup(node.ask, "CONFIG", "SET", "maxmemory", "0")
            node.ask("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
        evicts = "maxmemory-policy is allkeys-lru: when memory runs out, buckets are lost"
        places = [f"127.0.0.1:{node.port}" for node in nodes[1:3]]
        warnings = self.health(self.cluster)["warnings"]
        self.assertTrue({f"{place} and 1 more: {evicts}" for place in places} & set(warnings), warnings)
        nodes[2].ask("CONFIG", "SET", "maxmemory", "0")
        self.assertIn(f"{places[0]}: {evicts}", self.health(self.cluster)["warnings"])


class Ailing(ClusterTest):
    def test_masters_that_are_silent_or_dead_are_named(self):
        with Cluster() as cluster:
            nodes = cluster.nodes
            place, slots = f"127.0.0.1:{nodes[1].port}", slots_of(1)
            os.kill(nodes[1].process.pid, signal.SIGSTOP)
            health = self.health(cluster, "timeout=2s")
            self.assertEqual((health["masters"], health["silent"], health["slots"]),
                             (3, 1, SLOTS - slots))
            self.assertEqual(health["warnings"], [f"{place}: no answer in time: its {slots} slots fail",
                                                  LOSES_ALL, NO_REPLICA])
            nodes[1].kill()
            health = self.health(cluster)
            self.assertEqual(health["warnings"][0],
                             f"{place}: Connection refused: its {slots} slots fail")
            out = self.run_command("-s", cluster.url(), *LIMITS, "check")[1]
            self.assertIn(f"\ncluster: 3 masters (1 can't be used), 0 replicas, {SLOTS - slots} of "
                          f"{SLOTS} slots served\n", out)
            nodes[0].kill()
            cluster.wait(lambda: b"cluster_state:fail" in nodes[2].ask("CLUSTER", "INFO"))
            self.assert_unavailable(cluster, r"127\.0\.0\.1:\d+: Connection refused")

    def test_slots_that_nobody_serves_are_counted(self):
        with Cluster() as cluster:
            self.drop_slots(cluster)
            health = self.health(cluster)
            self.assertEqual(health["slots"], SLOTS - 84)
            self.assertEqual(health["warnings"], [
                f"84 of {SLOTS} slots are served by nobody: their keys fail", LOSES_ALL, NO_REPLICA])

    def test_a_cluster_that_serves_only_as_a_whole_is_down_without_one_slot(self):
        with Cluster(config=()) as cluster:
            self.drop_slots(cluster)
            cluster.wait(lambda: all(b"cluster_state:fail" in node.ask("CLUSTER", "INFO")
                                     for node in cluster.nodes))
            self.assert_unavailable(cluster, f"84 of {SLOTS} slots are served by nobody")
            self.assertEqual(self.run_command("-s", cluster.url(), *LIMITS, "request", "ip=a")[0], 3)

    def test_a_master_that_alone_says_so_is_named(self):
        with Cluster(config=()) as cluster:
            place = f"127.0.0.1:{cluster.nodes[0].port}"
            for node in cluster.nodes[1:]:
                node.ask("CONFIG", "SET", "cluster-require-full-coverage", "no")
            self.drop_slots(cluster)
            cluster.wait(lambda: b"cluster_state:fail" in cluster.nodes[0].ask("CLUSTER", "INFO"))
            health = self.health(cluster)
            self.assertIn(f"{place}: says that the cluster is down: its {slots_of(0)} slots fail",
                          health["warnings"])
            self.assertEqual(health["slots"], SLOTS - 84 - slots_of(0))

    def drop_slots(self, cluster):
        """Slots of the third master, at all, since one that has them tells nobody that it gave them up."""
        for node in cluster.nodes:
            node.ask("CLUSTER", "DELSLOTS", *range(SLOTS - 84, SLOTS))
        cluster.wait(lambda: all(b"cluster_slots_assigned:16300" in node.ask("CLUSTER", "INFO")
                                 for node in cluster.nodes))


class Strange(ClusterTest):
    def test_a_wrong_password_is_told_and_not_shown(self):
        with Cluster(password="sesame") as cluster:
            self.assertEqual(self.health(cluster)["slots"], SLOTS)
            status, out, err = self.run_command("-s", cluster.url(password="hunter2"), *LIMITS, "check")
            self.assertEqual(status, 3)
            self.assertIn("not authorized by the server: 127.0.0.1:", err)
            self.assertNotIn("hunter2", out + err)
            self.assertNotIn("sesame", out + err)
            status, _, err = self.run_command("-s", cluster.url(password="hunter2"), *LIMITS, "request",
                                              "ip=a")
            self.assertEqual(status, 3)
            self.assertIn("AUTH: WRONGPASS", err)

    def test_by_tls(self):
        with Cluster(tls=True) as cluster:
            health = self.ask("-s", cluster.url("rediss"), *LIMITS, "check")["server"]
            self.assertEqual((health["masters"], health["silent"], health["slots"]), (3, 0, SLOTS))

    def test_a_server_that_is_no_node_is_refused_for_all_commands(self):
        with servers.Server("redis") as server:
            url = f"redis+cluster://127.0.0.1:{server.port}"
            why = f"127.0.0.1:{server.port}: the server is in no cluster, it is for a redis:// URL"
            status, _, err = self.run_command("-s", url, *LIMITS, "check")
            self.assertEqual((status, err), (3, f"redbucket: store: not supported by this store: {why}\n"))
            self.assert_fails(3, f"request: not supported by this store: {why}", "-s", url, *LIMITS,
                              "request", "ip=a")
            self.assertEqual(server.ask("DBSIZE"), 0)

    def test_nodes_that_were_not_made_a_cluster_yet(self):
        with servers.Server("redis", config=["cluster-enabled yes"]) as server:
            status, _, err = self.run_command("-s", f"redis+cluster://127.0.0.1:{server.port}", *LIMITS,
                                              "check")
            self.assertEqual((status, err), (3, "redbucket: store: server unavailable: 127.0.0.1:"
                                                f"{server.port}: knows of no slots that anybody serves\n"))

    def test_masters_of_different_kinds(self):
        if servers.program("valkey") is None:
            self.skipTest("no Valkey")
        with servers.Server("redis", config=["cluster-enabled yes"]) as one, \
                servers.Server("valkey", config=["cluster-enabled yes"]) as other:
            one.ask("CLUSTER", "ADDSLOTS", *range(SLOTS // 2))
            other.ask("CLUSTER", "ADDSLOTS", *range(SLOTS // 2, SLOTS))
            other.ask("CLUSTER", "SET-CONFIG-EPOCH", 2)
            one.ask("CLUSTER", "MEET", "127.0.0.1", other.port)
            Cluster.wait(lambda: b"cluster_state:ok" in one.ask("CLUSTER", "INFO"))
            health = self.ask("-s", f"redis+cluster://127.0.0.1:{one.port}", *LIMITS, "check")["server"]
            self.assertEqual(sum("which others are not" in line for line in health["warnings"]), 1)


if __name__ == "__main__":
    unittest.main()

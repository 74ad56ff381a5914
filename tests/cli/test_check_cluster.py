# SPDX-License-Identifier: MIT
"""check of a cluster: which limits are decided in one step, who is there, what fails, what can be
lost."""

import json
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cluster import Cluster, MASTERS, SLOTS
from command import CommandTest, needs_servers
import server as servers

LIMITS = ("-l", "user:0.001/s,burst=1", "-l", "ip:0.001/s,burst=1")
VERSION = ".".join(map(str, servers.version_of(servers.program("redis"))))
LOSES_ALL = "appendonly is no: a restart loses all buckets"
NO_REPLICA = "no replica: when a master dies, its slots fail and its buckets are lost"
FAILOVER = "a failover loses the last writes, which replicas haven't received"


def slots_of(index):
    """How many the fixture gives to a master."""
    return SLOTS * (index + 1) // MASTERS - SLOTS * index // MASTERS


OTHERWISE = ("otherwise: a request takes one step a slot, and gives back when one rejects "
             "(docs/cluster.md)\n")
TAG = "user={acme}a ip={acme}b have the same hash tag"
KEY = "key_format=redbucket:{zone}:{{{key}}} brings the same key together, in new buckets"
ALONE = "warning: all buckets of a limit are in one slot, and so on one node: "


@needs_servers
class Slots(CommandTest):
    """Nobody is at this address, which what is tested here doesn't wait to find out."""

    def lines(self, query, *names, store="redis+cluster://127.0.0.1:1"):
        """What check says between the limits and the error that the store isn't there."""
        limits = [word for name in names for word in ("-l", f"{name}:1")]
        status, out, err = self.run_command("-s", f"{store}?{query}", *limits, "check")
        self.assertEqual(status, 3)
        self.assertIn("Connection refused", err)
        return out.rpartition("then 1 a second\n")[2]

    def slots(self, query, *names):
        limits = [word for name in names for word in ("-l", f"{name}:1")]
        _, out, _ = self.run_command("-s", f"redis+cluster://127.0.0.1:1?{query}", *limits, "--json",
                                     "check")
        answer = json.loads(out)
        self.assertEqual(list(answer), ["configuration", "store", "limits", "slots", "available"])
        return answer["slots"]

    def test_by_a_tag_in_the_keys(self):
        self.assertEqual(self.lines("timeout=1s", "user", "ip", "api"),
                         "together: user, ip, api: only for keys that begin with the same hash tag\n"
                         f"{OTHERWISE}hint: {TAG}\nhint: {KEY}\n")
        self.assertEqual(self.slots("timeout=1s", "user", "ip"), {
            "together": "same_tag", "groups": [{"limits": ["user", "ip"], "together": "same_tag"}],
            "hints": [TAG, KEY], "one_slot": []})

    def test_by_the_key(self):
        query = "key_format=redbucket:{zone}:{{{key}}}"
        self.assertEqual(self.lines(query, "user", "ip"),
                         "together: user, ip: for the same key, or keys that begin with the same hash "
                         f"tag\n{OTHERWISE}hint: {TAG}\n")
        self.assertEqual(self.slots(query, "user", "ip"), {
            "together": "same_key", "groups": [{"limits": ["user", "ip"], "together": "same_key"}],
            "hints": [TAG], "one_slot": []})

    def test_always_and_on_one_node(self):
        query = "key_format=%7B%7Bapp%7D%7D:{zone}:{key}"
        self.assertEqual(self.lines(query, "user", "ip"),
                         f"together: user, ip: always\n{ALONE}user, ip\n")
        self.assertEqual(self.slots(query, "user", "ip"), {
            "together": "always", "groups": [{"limits": ["user", "ip"], "together": "always"}],
            "hints": [], "one_slot": ["user", "ip"]})

    def test_never(self):
        query = "key_format={{{zone}:{key}}}"
        apart = "apart: all limits, whatever their keys, by this key format\n"
        self.assertEqual(self.lines(query, "user", "ip"), f"{apart}{OTHERWISE}hint: {KEY}\n")
        self.assertEqual(self.slots(query, "user", "ip"), {
            "together": "never", "groups": [], "hints": [KEY], "one_slot": []})

    def test_groups_of_limits_whose_zones_meet_in_a_slot(self):
        query = "key_format={{{zone}}}:{key}"  # foo and z1089 have slot 12182
        self.assertEqual(self.lines(query, "user", "foo", "ip", "z1089"),
                         "together: foo, z1089: always\n"
                         "apart: all other limits, whatever their keys, by this key format\n"
                         f"{OTHERWISE}hint: {KEY}\n{ALONE}user, foo, ip, z1089\n")
        self.assertEqual(self.slots(query, "user", "foo", "ip", "z1089")["groups"],
                         [{"limits": ["foo", "z1089"], "together": "always"}])

    def test_one_limit_is_together_with_nobody(self):
        self.assertEqual(self.lines("timeout=1s", "user"), "")
        self.assertEqual(self.lines("key_format={{{zone}}}:{key}", "user"), f"{ALONE}user\n")
        self.assertEqual(self.slots("timeout=1s", "user"), {"one_slot": []})

    def test_what_counts_is_the_zone(self):
        limits = ("-l", "user:1,zone=foo", "-l", "ip:1,zone=z1089")
        store = ("-s", "redis+cluster://127.0.0.1:1?key_format={{{zone}}}:{key}")
        self.assertIn("together: user, ip: always\n", self.run_command(*store, *limits, "check")[1])

    def test_a_policy_in_front_changes_nothing(self):
        self.assertEqual(self.lines("on_error=closed", "user", "ip"), self.lines("timeout=1s", "user", "ip"))

    def test_other_stores_have_no_slots(self):
        self.assertEqual(self.lines("timeout=1s", "user", "ip", store="redis://127.0.0.1:1"), "")
        self.assertNotIn("slots", self.ask("-s", "memory:", *LIMITS, "check"))

    def test_many_limits_make_few_lines(self):
        names = [f"l{i}" for i in range(300)]
        self.assertEqual(self.lines("timeout=1s", *names).count("\n"), 4)


@needs_servers
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

    def test_a_user_who_may_no_more_than_is_needed(self):
        with Cluster() as cluster:
            for node in cluster.nodes:
                node.ask("ACL", "SETUSER", "bob", "on", ">sesame", "~redbucket:*", "-@all", *(
                    f"+{command}" for command in ("evalsha", "eval", "time", "get", "mget", "exists",
                                                  "setex", "del", "ping", "asking", "cluster|slots")))
            url = cluster.url().replace("://", "://bob:sesame@")
            health = self.ask("-s", url, *LIMITS, "check")["server"]
            self.assertEqual((health["is"], health["slots"], health["warnings"]),
                             ("of unknown version", SLOTS, []))
            self.ask("-s", url, *LIMITS, "request", "user=a", "ip=b")

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

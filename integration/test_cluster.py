"""Clusters of several nodes whose leader moves, on either side: nothing is lost, nothing is there twice, or a fault names it.

The sandbox presents the nodes; messages come into the upstream by its control port, which asks no leader.
"""

import threading
import time

import pytest

from harness import REPLICATE, STREAM, TOPIC, wait_until
from steps import *

VERSIONS = ["0.9.0-edge.5", "0.9.0"]
sides = pytest.mark.parametrize("side", ["upstream", "downstream"])
versions = pytest.mark.parametrize("version", VERSIONS)


class Load:
    """Appends to the upstream until it is left, and counts."""

    def __init__(self, upstream, pause=0.02):
        self.upstream, self.pause, self.written = upstream, pause, 0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.done.wait(self.pause):
            append(self.upstream, 7)
            self.written += 7

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def append(upstream, count, partition=0):
    upstream.control(f"append {STREAM} {TOPIC} {partition} {count}")


def sides_of(lab, version, side, nodes=(1, 2, 3), count=100, **settings):
    """A cluster on one side, a single server on the other, and an appliance that has copied `count` messages."""
    cluster = lab.cluster(side, version)
    single = lab.broker("downstream" if side == "upstream" else "upstream", version)
    upstream, downstream = (cluster, single) if side == "upstream" else (single, cluster)
    create_topic(upstream)
    append(upstream, count)
    appliance = lab.appliance(upstream, downstream, **settings)
    appliance.settings[side] = cluster.url_of(*nodes)
    appliance.start()
    wait_copied(appliance, count)
    return upstream, downstream, cluster, appliance


def assert_equal_sides(upstream, downstream, appliance, count):
    wait_copied(appliance, count)
    expected, found = digests(read(upstream)[0]), digests(read(downstream)[0])
    assert len(expected) == count
    assert found == expected
    assert row_of(appliance)["counters"]["duplicates"] == "0"
    assert not [event for event in appliance.events() if event["kind"] == "fault"]


def wait_node(appliance, cluster, side, node):
    """Until it says that it speaks to this node."""
    address = f"127.0.0.1:{cluster.port_of(node)}"
    wait_until(f"it is at node {node}", lambda: appliance.ask("status")["link"][side]["endpoint"] == address)


@sides
def test_status_says_which_node(lab, side):
    _, _, cluster, appliance = sides_of(lab, "0.9.0", side, nodes=(2,))
    wait_node(appliance, cluster, side, 1)  # the URL named another one: the roster is followed
    said = lab.call([REPLICATE, "status", "--admin", appliance.find_admin()]).stdout
    assert appliance.ask("status")["link"][side]["node"] == "node-1 of 3"
    assert f"connected to node-1 of 3 at 127.0.0.1:{cluster.port_of(1)}" in said
    cluster.lead(3)
    wait_node(appliance, cluster, side, 3)


@versions
@sides
def test_leader_moves_under_load(lab, version, side):
    upstream, downstream, cluster, appliance = sides_of(lab, version, side)
    with Load(upstream) as load:
        for node in (2, 3, 1, 3, 2, 1):
            lab.moment(0.3, 1.5)
            cluster.lead(node)
        wait_node(appliance, cluster, side, 1)
    assert_equal_sides(upstream, downstream, appliance, 100 + load.written)


@versions
@sides
def test_leader_is_killed_under_load(lab, version, side):
    upstream, downstream, cluster, appliance = sides_of(lab, version, side)
    with Load(upstream) as load:
        for dead, next_ in ((1, 2), (2, 3), (3, 1)):
            lab.moment(0.2, 0.8)
            cluster.kill_node(dead)
            lab.moment(0.2, 0.8)  # nobody leads
            cluster.lead(next_)
            wait_node(appliance, cluster, side, next_)
            cluster.start_node(dead)
    assert_equal_sides(upstream, downstream, appliance, 100 + load.written)


@sides
def test_starts_when_only_one_node_is_left(lab, side):
    upstream, downstream, cluster, appliance = sides_of(lab, "0.9.0", side)
    assert appliance.stop() == 0
    cluster.lead(3)
    cluster.kill_node(1)
    cluster.kill_node(2)
    append(upstream, 50)
    appliance.start()
    wait_node(appliance, cluster, side, 3)
    assert_equal_sides(upstream, downstream, appliance, 150)


@versions
def test_sends_are_taken_by_another_node_than_the_leader(lab, version):
    """Found by sending; ends and tails are then read there, because the leader shows an old end."""
    upstream, downstream, cluster, appliance = sides_of(lab, version, "downstream")
    cluster.control("lag 1 on")
    cluster.control("take-sends 3")
    with Load(upstream) as load:
        lab.moment(1, 2)
    wait_copied(appliance, 100 + load.written)
    appliance.kill()  # and again from nothing but the state file
    append(upstream, 50)
    appliance.start()
    wait_copied(appliance, 150 + load.written)
    cluster.control("lag 1 off")
    assert_equal_sides(upstream, downstream, appliance, 150 + load.written)


def test_upstream_node_that_lags_is_waited_for(lab):
    """The leader is gone, and the node that is left shows an old end: that is no loss, and nothing is at its end either."""
    upstream, downstream, cluster, appliance = sides_of(lab, "0.9.0", "upstream")
    cluster.control("lag 2 on")
    cluster.kill_node(3)
    append(upstream, 60)
    wait_copied(appliance, 160)
    cluster.kill_node(1)
    wait_node(appliance, cluster, "upstream", 2)
    wait_row(
        appliance,
        "it waits, and does not know how far it is behind",
        lambda row: row["phase"] == "PHASE_BEHIND" and "messages" not in row.get("lag", {}),
    )
    time.sleep(2)  # much longer than confirm_for
    cluster.control("lag 2 off")
    cluster.lead(2)
    append(upstream, 40)
    assert_equal_sides(upstream, downstream, appliance, 200)


@versions
def test_downstream_loses_its_tail_with_its_leader(lab, version):
    """No connection ends: the node that leads now does not have the newest messages."""
    upstream, downstream, cluster, appliance = sides_of(lab, version, "downstream")
    cluster.control("lag 2 on")
    append(upstream, 80)
    wait_copied(appliance, 180)
    cluster.lead(2)
    wait_event(appliance, "downstream_lost_tail", r"from offset 100 on; sending again from upstream offset 100")
    append(upstream, 20)
    assert_equal_sides(upstream, downstream, appliance, 200)


def test_downstream_loses_its_tail_with_its_leader_under_load(lab):
    upstream, downstream, cluster, appliance = sides_of(lab, "0.9.0", "downstream")
    with Load(upstream) as load:
        for node in (2, 3, 1):
            cluster.control(f"lag {node} on")
            lab.moment(0.5, 1)
            cluster.lead(node)
            wait_node(appliance, cluster, "downstream", node)
    assert_equal_sides(upstream, downstream, appliance, 100 + load.written)
    assert appliance.events("downstream_lost_tail")


@pytest.mark.parametrize("server", ["0.8.0", *VERSIONS])
def test_a_tail_is_lost_behind_an_open_connection(lab, server):
    """Nothing says so. Idle: seen by the downstream's metadata. Under load: by where the next send lands."""
    upstream, downstream, appliance = pair(lab, server, server, messages=300)
    downstream.control(f"lose-tail {STREAM} {TOPIC} 0 40")
    wait_event(appliance, "downstream_lost_tail", r"from offset 260 on")
    assert_equal_sides(upstream, downstream, appliance, 300)

    with Load(upstream, pause=0.005) as load:
        lab.moment(0.3, 0.6)
        downstream.control(f"lose-tail {STREAM} {TOPIC} 0 40")
        wait_event(appliance, "downstream_lost_tail", count=2)
    wait_copied(appliance, 300 + load.written)
    # What landed before it was noticed stands too early: it was sent again in its order, and is counted.
    expected, found = digests(read(upstream)[0]), digests(read(downstream)[0])
    twice = int(row_of(appliance)["counters"]["duplicates"])
    assert len(found) == len(expected) + twice
    early = next((i for i in range(len(expected)) if found[i] != expected[i]), len(expected))
    assert found[early + twice :] == expected[early:]
    assert (twice > 0) == ("own_duplicate" in [gap["cause"] for gap in appliance.gaps()])
    assert not [event for event in appliance.events() if event["kind"] == "fault"]


def test_upstream_loses_its_tail_with_its_leader(lab):
    """What was copied is not there any more, and its offsets come again with other messages."""
    upstream, downstream, cluster, appliance = sides_of(lab, "0.9.0-edge.5", "upstream")
    cluster.control("lag 2 on")
    append(upstream, 30)
    wait_copied(appliance, 130)
    cluster.lead(2)
    wait_node(appliance, cluster, "upstream", 2)
    append(upstream, 40)
    wait_fault(appliance, "upstream_rewound", ["restart"], [r"offset 129"])
    assert len(read(downstream)[0]) == 130, "nothing of the new history was appended"

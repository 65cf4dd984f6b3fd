"""SIGKILL of the link at each named step, by integration/kill_shim; test_kills.py has the random moments.

Each test sees that the step was really met, starts the link again, and finds every message once and in order.
"""

import json
import signal

import pytest

import harness
from harness import faults_of, wait_until
from steps import *

CROSSINGS = [("0.8.0", "0.9.0"), ("0.9.0", "0.8.0")]
crossings = pytest.mark.parametrize("source, target", CROSSINGS, ids=["8_to_9", "9_to_8"])

# While a batch is copied. {up}, {down}: ports. A batch is larger than 2,000 bytes, everything else that is said is smaller.
COPYING = {
    "after_poll": ["recv {up} 2000 1"],
    "after_send_before_ack": ["send {down} 2000 1"],
    "after_ack_before_commit": ["send {down} 2000 1", "recv = 1 1"],
    "in_commit": ["send {down} 2000 1", "write .db-wal 1 1"],
    "in_commit_later_page": ["send {down} 2000 1", "write .db-wal 1 3"],
    "before_fsync_of_commit": ["send {down} 2000 1", "sync .db-wal 0 1"],
}

# After SIGTERM, which finds a send in flight and acknowledgments to commit.
STOPPING = {
    "ack_of_the_drain": ["recv {down} 1 1"],
    "last_commit": ["write .db-wal 1 1"],
    "fsync_of_last_commit": ["sync .db-wal 0 1"],
    "release_of_the_record": ["write .db-wal 1 1", "send {down} 100 1"],
    "checkpoint": ["write .db 1 1"],
    "checkpoint_later_page": ["write .db 1 4"],
    "fsync_of_checkpoint": ["sync .db 0 1"],
}

# At the very first start.
CREATING = {
    "schema": ["write .db.new 1 1"],
    "schema_in_the_log": ["write .db.new-wal 1 5"],
    "fsync_of_the_schema": ["sync .db.new-wal 0 1"],
    "checkpoint_of_the_schema": ["write .db.new 1 6"],
    "before_the_rename": ["rename .db 0 1"],
    "row_of_the_link": ["rename .db 0 1", "write .db-wal 1 1"],
    "fsync_of_the_link": ["sync .db-wal 0 2"],
    "first_record_downstream": ["send {down} 300 1"],
}


def named(steps, upstream, downstream):
    return [step.format(up=upstream.port, down=downstream.port) for step in steps]


def assert_whole(upstream, downstream, appliance, total):
    wait_copied(appliance, total)
    assert_same(downstream, digests(read(upstream)[0]))
    row = row_of(appliance)
    assert row["counters"]["duplicates"] == "0" and appliance.gaps() == [] and appliance.events("fault") == []
    assert appliance.stop() == 0


@crossings
@pytest.mark.parametrize("step", COPYING)
def test_killed_while_copying(lab, source, target, step):
    upstream, downstream, appliance = pair(lab, source, target, messages=20)
    for round_ in range(2):  # the second time above a tail that was adopted
        appliance.kill_at(*named(COPYING[step], upstream, downstream))
        write(upstream, 100, size=400, first_seq=20 + 100 * round_)
        appliance.wait_killed_at_step()
        appliance.start()
        wait_copied(appliance, 120 + 100 * round_)
    assert_whole(upstream, downstream, appliance, 220)


@crossings
@pytest.mark.parametrize("step", STOPPING)
def test_killed_while_stopping(lab, source, target, step):
    upstream, downstream, appliance = pair(lab, source, target, messages=20, commit_interval="10s", commit_max_messages=20)
    downstream.control("delay 300")
    write(upstream, 10, size=400, first_seq=20)
    wait_until("a send is in flight", lambda: int(downstream_end(downstream)) == 30)
    appliance.kill_at(*named(STOPPING[step], upstream, downstream))
    appliance.signal(signal.SIGTERM)
    appliance.wait_killed_at_step()
    downstream.control("delay 0")
    appliance.settings["commit-interval"] = "20ms"
    appliance.start()
    assert_whole(upstream, downstream, appliance, 30)


def downstream_end(broker):
    state = json.loads(broker.control("state"))
    topics = [topic for stream in state["streams"] if stream["name"] == STREAM for topic in stream["topics"]]
    return topics[0]["partitions"][0]["next_offset"] if topics else 0


@crossings
@pytest.mark.parametrize("step", CREATING)
def test_killed_at_the_first_start(lab, source, target, step):
    upstream, downstream = lab.broker("upstream", source), lab.broker("downstream", target)
    create_topic(upstream)
    write(upstream, 50)
    appliance = lab.appliance(upstream, downstream)
    appliance.kill_at(*named(CREATING[step], upstream, downstream))
    appliance.start()
    appliance.wait_killed_at_step()
    appliance.start()
    assert_whole(upstream, downstream, appliance, 50)

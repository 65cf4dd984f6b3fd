"""What a commit outlives (copy.ack), and the position that is stored upstream for others to see (copy.upstream_commit)."""

import json

import pytest

import harness
from harness import STREAM, TOPIC, wait_until
from steps import *
from test_kills import LOAD as LIVE
from test_kills import ENDLESS, downstream_end


@pytest.mark.parametrize("source, target, ack", [("0.9.0", "0.8.0", "flush"), ("0.8.0", "0.9.0", "persisted")])
def test_a_killed_downstream_keeps_what_is_committed(lab, source, target, ack):
    upstream, downstream = lab.broker("upstream", source), lab.broker("downstream", target, disk=True)
    writer = lab.writer(upstream).start(ENDLESS, **LIVE)
    appliance = lab.appliance(upstream, downstream, ack=ack).start()
    wait_until("it copies", lambda: any(int(row["committed"]) > 0 for row in appliance.partitions()))
    for _ in range(8):
        lab.moment(0.3, 0.8)
        downstream.kill()
        appliance.freeze()
        downstream.start()
        kept = [log[-1].offset + 1 if log else 0 for log in downstream.read()]
        for row in appliance.recorded():
            assert downstream_end(row) <= kept[row["id"]["partition"]], (row, kept)
        appliance.thaw()
    writer.stop()
    appliance.wait_caught_up(upstream)
    assert appliance.events("downstream_lost_tail") == []
    assert {row["durability"] for row in appliance.partitions()} == {ack}
    compared = lab.compare(upstream, downstream)
    assert int(compared["equal"]) > 0
    status = lab.call([harness.REPLICATE, "status", "--admin", appliance.find_admin()])
    assert f"ack {ack}: " in status.stdout and "survives a kill" in " ".join(status.stdout.split()), status.stdout


REFUSED = {
    ("flush", "0.9.0"): "has no flush",
    ("persisted", "0.8.0"): "has no durability per topic",
    ("persisted", "0.9.0-edge.5"): "knows no topic option `durability`",
}


@pytest.mark.parametrize("ack, target", REFUSED)
def test_a_promise_that_cant_be_kept_is_refused(lab, ack, target):
    sentence = REFUSED[ack, target]
    upstream, downstream = lab.broker("upstream", "0.8.0"), lab.broker("downstream", target)
    create_topic(upstream)
    check = look(lab, "check", upstream.url, downstream.url, f"--ack={ack}")
    assert check.returncode == 1 and sentence in " ".join(check.stdout.split()), check.stdout
    code, said = run_once(lab, lab.appliance(upstream, downstream, ack=ack))
    assert code == 2 and sentence in said, (code, said)
    assert json.loads(downstream.control("state"))["streams"] == [], "nothing was written"


def test_a_topic_that_is_not_durable_enough_is_a_fault_of_its_own(lab):
    upstream, downstream = lab.broker("upstream", "0.8.0"), lab.broker("downstream", "0.9.0")
    for topic in (TOPIC, "weak"):
        create_topic(upstream, topic)
        write(upstream, 50, topic)
    create_topic(downstream, "weak")
    appliance = lab.appliance(upstream, downstream, ack="persisted").start()
    wait_fault(appliance, "not_durable", ["retry"], ["orders/weak", "durability = persisted"], topic="weak")
    wait_row(appliance, "the other is copied", lambda row: row["committed"] == "50")
    manage(downstream, "delete-topic", STREAM, "weak")
    wait_row(appliance, "it is made anew", lambda row: row["committed"] == "50", topic="weak")
    assert_same(downstream, digests(read(upstream, "weak")[0]), "weak")


def stored(broker, consumer="watcher"):
    lines = manage(broker, "stored-offset", STREAM, TOPIC, consumer).splitlines()
    return {int(partition): int(offset) for partition, offset in map(str.split, lines)}


@pytest.mark.parametrize("source, target", [("0.8.0", "0.9.0"), ("0.9.0", "0.8.0")])
def test_the_position_is_stored_upstream_after_the_commit(lab, source, target):
    upstream, downstream, appliance = pair(
        lab, source, target, messages=400, partitions=2, upstream_commit="after_ack", upstream_commit_consumer="watcher"
    )
    wait_until("it is stored", lambda: stored(upstream) == {0: 199, 1: 199})
    writer = lab.writer(upstream).start(ENDLESS, rate=500, batch=10)
    for _ in range(20):
        seen = stored(upstream)
        committed = {row["id"]["partition"]: int(row["committed"]) for row in appliance.recorded()}
        assert all(offset < committed[partition] for partition, offset in seen.items()), (seen, committed)
    writer.stop()
    appliance.wait_caught_up(upstream)
    ends = {row["id"]["partition"]: int(row["committed"]) - 1 for row in appliance.partitions()}
    assert appliance.stop() == 0
    assert stored(upstream) == ends, "a stop in order stores the last position"
    # It is never resumed from: a state file that knows better wins.
    appliance.settings["upstream-commit"] = "never"
    write(upstream, 20, seed=9)
    appliance.start()
    appliance.wait_caught_up(upstream)
    assert stored(upstream) == ends, "never: nothing is stored"
    lab.compare(upstream, downstream)


def test_an_external_group_is_refused_where_no_server_has_it(lab):
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.8.0")
    create_topic(upstream)
    flags = {"upstream_commit": "after_ack", "upstream_commit_consumer": "group", "upstream_commit_as": "external_group"}
    code, said = run_once(lab, lab.appliance(upstream, downstream, **flags))
    assert code == 2 and "external groups (kind 3) are there from server 0.10 on" in said, (code, said)


def test_a_pin_that_does_not_move_is_an_alarm(lab):
    upstream, downstream, appliance = pair(
        lab,
        "0.8.0",
        "0.9.0",
        messages=100,
        expiry=3600,
        upstream_commit="after_ack",
        upstream_commit_consumer="watcher",
        pin_alarm_after="1s",
    )
    wait_until("it is stored", lambda: stored(upstream) == {0: 99})
    done = lab.call([harness.REPLICATE, "pause", "--admin", appliance.find_admin(), PARTITION])
    assert done.returncode == 0, done.stderr
    write(upstream, 30, seed=7)
    wait_event(appliance, "upstream_pin", "`watcher` holds back upstream retention at offset 100: 30 messages")
    row = wait_row(appliance, "it is in the status", lambda row: row["pin"].get("alarm"))
    assert row["pin"]["messages"] == "30" and row["pin"]["next"] == "100", row
    done = lab.call([harness.REPLICATE, "resume", "--admin", appliance.find_admin(), PARTITION])
    assert done.returncode == 0, done.stderr
    wait_event(appliance, "upstream_pin_released")
    wait_until("it has moved", lambda: stored(upstream) == {0: 129})


@pytest.mark.parametrize("source, target", [("0.8.0", "0.9.0"), ("0.9.0", "0.9.0"), ("0.8.0", "0.8.0")])
def test_messages_say_where_they_were_first_written(lab, source, target):
    upstream, downstream, appliance = pair(lab, source, target, messages=300, provenance="east")
    appliance.kill()
    write(upstream, 300, first_seq=300)
    appliance.start()
    wait_copied(appliance, 600)
    assert appliance.stop() == 0
    before, after = read(upstream)[0], read(downstream)[0]
    assert digests(after) == digests(before)
    added = {there.headers - here.headers for here, there in zip(before, after)}
    assert len(added) == 1 and added.pop() > 5 * len("iggy-replicate."), "each has one block of one size"

    # Switched off, the next run still knows its own tail; a second link keeps what the first one has stamped.
    appliance.settings.pop("provenance")
    write(upstream, 10, first_seq=600)
    appliance.start()
    wait_copied(appliance, 610)
    assert appliance.stop() == 0
    third = lab.broker("third", target)
    second = harness.Appliance(lab, "second", downstream, third, provenance="west").start()
    wait_copied(second, 610)
    assert second.stop() == 0
    last = read(third)[0]
    assert digests(last) == digests(read(upstream)[0])
    assert [message.headers for message in last[:600]] == [message.headers for message in after]

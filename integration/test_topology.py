"""Which topics are copied, where to, and from where on: rules, growth, deletion and rights."""

import datetime
import json

import pytest

import harness
from harness import REPLICATE, STREAM, TOPIC, wait_until
from steps import *

BOTH = ["0.8.0", "0.9.0"]


def streams_of(broker):
    """Names below every stream, the link's own record left out."""
    state = json.loads(broker.control("state"))
    return {
        stream["name"]: sorted(topic["name"] for topic in stream["topics"])
        for stream in state["streams"]
        if stream["name"] != "iggy-replicate"
    }


def linked(appliance):
    """What is copied: "stream/topic" to the number of its partitions."""
    found = {}
    for row in appliance.partitions():
        name = "{stream}/{topic}".format(**row["id"])
        found[name] = found.get(name, 0) + 1
    return found


def notices(appliance):
    return "\n".join(appliance.ask("status")["link"]["notices"])


@pytest.mark.parametrize("source, target", [("0.8.0", "0.9.0"), ("0.9.0", "0.8.0")])
def test_globs_excludes_and_rename(lab, source, target):
    upstream, downstream = lab.broker("upstream", source), lab.broker("downstream", target)
    for stream, topic in [("orders", "events"), ("orders", "audit"), ("orders", "tmp-1"), ("billing", "events"), ("logs", "all")]:
        create_topic(upstream, topic, stream)
        write(upstream, 20, topic, stream)
    appliance = lab.appliance(upstream, downstream, rename="orders/* -> dr-orders/*")
    appliance.settings["topics"] = "orders/*"
    appliance.start("--topics=billing/ev*", "--exclude=*/tmp-?", "--exclude=orders/audit")
    wait_until("both topics are linked", lambda: linked(appliance) == {"orders/events": 1, "billing/events": 1})
    wait_copied(appliance, 40, partitions=2)
    assert streams_of(downstream) == {"dr-orders": ["events"], "billing": ["events"]}
    assert digests(read(downstream, "events", "dr-orders")[0]) == digests(read(upstream, "events", "orders")[0])
    assert digests(read(downstream, "events", "billing")[0]) == digests(read(upstream, "events", "billing")[0])


def test_topic_created_later(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0", messages=10, start="latest")
    create_topic(upstream, "late", partitions=2)
    write(upstream, 30, "late")
    wait_until("it is linked", lambda: linked(appliance) == {"orders/events": 1, "orders/late": 2})
    # Those that appear later begin at their first message, whatever the start policy says.
    wait_until("it is copied", lambda: [len(log) for log in read(downstream, "late")] == [len(log) for log in read(upstream, "late")])
    assert [digests(log) for log in read(downstream, "late")] == [digests(log) for log in read(upstream, "late")]


@pytest.mark.parametrize("server", BOTH)
def test_partitions_grow_under_load(lab, server):
    upstream, downstream, appliance = pair(lab, server, server, messages=100, partitions=2)
    writer = lab.writer(upstream).start(6000, rate=3000, batch=20)
    manage(upstream, "add-partitions", STREAM, TOPIC, "2")
    assert writer.wait() == 0
    write(upstream, 400, seed=9)  # also into the new ones
    wait_copied(appliance, 6500, partitions=4)
    mine, theirs = read(upstream), read(downstream)
    assert len(theirs) == 4 and min(len(log) for log in theirs) > 0
    assert [digests(log) for log in mine] == [digests(log) for log in theirs]


def test_topic_deleted_upstream(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0", messages=50)
    create_topic(upstream, "other")
    write(upstream, 10, "other")
    wait_until("both are copied", lambda: linked(appliance) == {"orders/events": 1, "orders/other": 1})
    wait_copied(appliance, 60, partitions=2)
    manage(upstream, "delete-topic", STREAM, TOPIC)
    wait_until("it is reported", lambda: "orders/events (1 partition) was deleted upstream; what was copied stays" in notices(appliance))
    write(upstream, 10, "other", seed=7)
    wait_row(appliance, "the other topic goes on", lambda row: row["committed"] == "20", topic="other")
    assert len(read(downstream)[0]) == 50
    # After a restart as well.
    assert appliance.stop() == 0
    appliance.start()
    wait_until("it is reported again", lambda: "was deleted upstream" in notices(appliance))
    assert len(read(downstream)[0]) == 50
    assert appliance.stop() == 0


def test_rights_to_create_are_missing(lab):
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.9.0")
    create_topic(upstream)
    write(upstream, 50)
    rights = "read_servers,read_streams,read_topics,poll_messages,send_messages"
    manage(downstream, "create-user", "copier", "secret", f"--rights={rights}")
    appliance = lab.appliance(upstream, downstream, marker="off")
    appliance.settings["downstream"] = f"iggy://copier:secret@127.0.0.1:{downstream.port}"
    appliance.start()
    wait_fault(appliance, "permission", ["retry"], ["stream orders can't be created downstream", "manage_streams"])
    plan = lab.call([REPLICATE, "plan"] + [f"--{key}={appliance.settings[key]}" for key in ("upstream", "downstream", "topics", "marker")])
    assert plan.returncode == 0 or "refuse" in plan.stdout
    # Somebody else makes it: the link finds it, nobody has to resolve anything.
    create_topic(downstream)
    wait_row(appliance, "it is found", lambda row: not row.get("fault", {}).get("kind"))
    wait_copied(appliance, 50)
    assert_same(downstream, digests(read(upstream)[0]))


def test_growth_is_refused(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0", messages=50, create_topics="true")
    assert appliance.stop() == 0
    appliance.settings["create-topics"] = "false"
    manage(upstream, "add-partitions", STREAM, TOPIC, "1")
    write(upstream, 50, seed=7)
    appliance.start()
    wait_fault(appliance, "target_missing", ["retry"], ["1 partition downstream and 2 upstream", "create_topics"], partition=1)
    wait_row(appliance, "the other partition goes on", lambda row: row["committed"] == str(len(read(upstream)[0])))
    manage(downstream, "add-partitions", STREAM, TOPIC, "1")
    wait_row(appliance, "it is found", lambda row: not row.get("fault", {}).get("kind"), partition=1)
    wait_copied(appliance, 100, partitions=2)


def test_nothing_is_created_when_told_so(lab):
    upstream, downstream = lab.broker("upstream", "0.8.0"), lab.broker("downstream", "0.8.0")
    create_topic(upstream)
    write(upstream, 10)
    appliance = lab.appliance(upstream, downstream, create_topics="false").start()
    wait_fault(appliance, "target_missing", ["retry"], ["not there downstream", "create_topics"])
    assert streams_of(downstream) == {}


def test_missing_topic_is_looked_for_at_once(lab):
    upstream, downstream = lab.broker("upstream", "0.8.0"), lab.broker("downstream", "0.8.0")
    create_topic(upstream)
    write(upstream, 10)
    appliance = lab.appliance(upstream, downstream, create_topics="false", reconcile_interval="1h").start()
    wait_fault(appliance, "target_missing", ["retry"], ["not there downstream"])
    create_topic(downstream)
    resolve(appliance, "retry")  # an hour before it would be looked at by itself
    wait_copied(appliance, 10)
    wait_event(appliance, "resolve", "target_missing as retry")


@pytest.mark.parametrize("policy, first", [("earliest", 0), ("latest", 100), ("offset:30", 30), ("offset:5000", 100), ("time", 50)])
@pytest.mark.parametrize("server", BOTH)
def test_start_policies(lab, server, policy, first):
    upstream, downstream = lab.broker("upstream", server), lab.broker("downstream", server)
    create_topic(upstream)
    write(upstream, 50)
    if policy == "time":
        # The policy knows whole seconds: the messages before and behind must be of different ones.
        now = datetime.datetime.now(datetime.timezone.utc)
        boundary = now.replace(microsecond=0) + datetime.timedelta(seconds=1)
        wait_until("the second is over", lambda: datetime.datetime.now(datetime.timezone.utc) > boundary, every=0.01)
        policy = boundary.strftime("timestamp:%Y-%m-%dT%H:%M:%SZ")
    write(upstream, 50, seed=7)
    appliance = lab.appliance(upstream, downstream, start=policy).start()
    wait_copied(appliance, 100)
    assert appliance.stop() == 0  # the policy is used once: a restart goes on
    write(upstream, 10, seed=8)
    appliance.start()
    wait_copied(appliance, 110)
    assert_same(downstream, digests(read(upstream)[0])[first:])
    wait_event(appliance, "start", f"upstream offset {first},")


def test_two_sources_onto_one_target(lab):
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.9.0")
    for stream in ("a", "b"):
        create_topic(upstream, TOPIC, stream)
    appliance = lab.appliance(upstream, downstream, rename="a/* -> all/*")
    appliance.settings["topics"] = "*/events"
    code, said = run_once(lab, appliance, "--rename=b/* -> all/*")
    assert code == 2 and "a/events" in said and "b/events" in said and "all/events" in said, said
    assert streams_of(downstream) == {}

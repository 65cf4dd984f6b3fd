"""Steps that the fault, topology and operating tests share, above harness.py."""

import re

import harness
from harness import LOAD, REPLICATE, STREAM, TOPIC, wait_until

PARTITION = f"{STREAM}/{TOPIC}/0"


def manage(broker, *words):
    """What an operator of the cluster does: `iggy-load manage`. Returns what it printed."""
    done = broker.lab.call([LOAD, "manage", "--url", broker.url, *words])
    assert done.returncode == 0, f"manage {words}: {done.stderr}"
    return done.stdout.strip()


def create_topic(broker, topic=TOPIC, stream=STREAM, partitions=1, expiry=0):
    manage(broker, "create-topic", stream, topic, f"--partitions={partitions}", f"--expiry={expiry}")


def write(broker, count, topic=TOPIC, stream=STREAM, **options):
    """Writes and waits; the topic must be there. Partitions take turns by batch."""
    options = {"batch": 10, **options}
    flags = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
    done = broker.lab.call([LOAD, "write", "--url", broker.url, "--stream", stream, "--topic", topic, f"--count={count}", *flags])
    assert done.returncode == 0, f"write: {done.stderr}"


def read(broker, topic=TOPIC, stream=STREAM):
    """Messages per partition, digests in order."""
    done = broker.lab.call([LOAD, "read", "--url", broker.url, "--stream", stream, "--topic", topic])
    assert done.returncode == 0, f"read: {done.stderr}"
    lines = done.stdout.splitlines()
    partitions = [[] for line in lines if line.startswith("summary ")]
    for line in lines:
        if not line.startswith("summary "):
            message = harness.Message(line)
            partitions[message.partition].append(message)
    return partitions


def digests(messages):
    return [message.digest for message in messages]


def pair(lab, source, target, messages=500, partitions=1, expiry=0, disk=False, **settings):
    """Two brokers, a topic with messages, and an appliance that has copied them."""
    upstream = lab.broker("upstream", source, disk=disk)
    downstream = lab.broker("downstream", target, disk=disk)
    create_topic(upstream, partitions=partitions, expiry=expiry)
    if messages:
        write(upstream, messages)
    appliance = lab.appliance(upstream, downstream, **settings).start()
    wait_copied(appliance, messages, partitions)
    return upstream, downstream, appliance


def wait_copied(appliance, total, partitions=1, seconds=40):
    """Until the committed watermarks sum up to `total`, and all is caught up."""

    def done():
        rows = appliance.partitions()
        faults = harness.faults_of(rows)
        assert not faults, f"faults: {faults}"
        return (
            len(rows) == partitions
            and sum(int(row["committed"]) for row in rows) == total
            and all(row["phase"] == "PHASE_CAUGHT_UP" for row in rows)
        )

    try:
        wait_until(f"{total} messages are committed", done, seconds)
    except harness.Timeout as late:
        rows = [(row["phase"], row["committed"], row["waits_for"]) for row in appliance.partitions()]
        raise harness.Timeout(f"{late}: {rows}") from None


def wait_copied_through_faults(appliance, total, seconds=40):
    """The same of one partition, where faults may come and go by themselves."""
    return wait_row(
        appliance,
        f"{total} messages are committed",
        lambda row: int(row["committed"]) == total and row["phase"] == "PHASE_CAUGHT_UP",
        seconds=seconds,
    )


def row_of(appliance, partition=0, topic=TOPIC):
    for row in appliance.partitions():
        if row["id"]["topic"] == topic and row["id"].get("partition", 0) == partition:
            return row
    return None


def wait_row(appliance, what, condition, partition=0, topic=TOPIC, seconds=40):
    last = {}

    def check():
        last["row"] = row_of(appliance, partition, topic)
        return last["row"] if last["row"] and condition(last["row"]) else None

    try:
        return wait_until(what, check, seconds)
    except harness.Timeout as late:
        raise harness.Timeout(f"{late}; it is {last['row']}") from None


def wait_fault(appliance, kind, exits, facts=(), partition=0, topic=TOPIC, seconds=40):
    """Until the partition stands in this fault; its exits are these, and its sentence says these facts."""
    row = wait_row(
        appliance, f"the fault {kind}", lambda row: row.get("fault", {}).get("kind"), partition, topic, seconds=seconds
    )
    fault = row["fault"]
    assert fault["kind"] == kind, fault
    assert row["phase"] == "PHASE_FAULT"
    assert [way["name"] for way in fault["exits"]] == list(exits), fault
    assert all(len(way["meaning"]) > 20 for way in fault["exits"]), fault
    for fact in facts:
        assert re.search(fact, fault["detail"]), f"{fact!r} is not in {fault['detail']!r}"
    status = appliance.lab.call([REPLICATE, "status", "--admin", appliance.find_admin()])
    assert status.returncode == 1, "a fault is bad news for scripts"
    assert kind in status.stdout and all(f"--as {way}" in status.stdout for way in exits), status.stdout
    return row


def wait_event(appliance, kind, *facts, count=1, seconds=40):
    events = wait_until(
        f"event {kind}", lambda: (lambda found: found if len(found) >= count else None)(appliance.events(kind)), seconds
    )
    assert len(events) == count, events
    for fact in facts:
        assert re.search(fact, events[0]["detail"]), f"{fact!r} is not in {events[0]['detail']!r}"
    return events


def one_gap(appliance, cause):
    gaps = appliance.gaps()
    assert [gap["cause"] for gap in gaps] == [cause], gaps
    return gaps[0]


def run_once(lab, appliance, *flags, seconds=30):
    """`run` that must end by itself: (exit code, everything that it said)."""
    begin = appliance.log_size()
    appliance.start(*flags)
    code = appliance.wait(seconds)
    return code, appliance.log_since(begin)


def look(lab, verb, upstream, downstream, *flags):
    return lab.call(
        [REPLICATE, verb, f"--upstream={upstream}", f"--downstream={downstream}", f"--state={lab.folder}/x.db"]
        + ["--connect-timeout=500ms", "--read-timeout=500ms", *flags]
    )


def resolve(appliance, way, partition=0):
    """Takes an exit and waits until it was carried out: by the partition's next look, not by the command."""
    appliance.resolve({"id": {"stream": STREAM, "topic": TOPIC, "partition": partition}}, way)
    wait_row(appliance, f"{way} is carried out", lambda row: not row.get("fault", {}).get("kind"), partition)


def assert_same(downstream, expected, topic=TOPIC, partition=0):
    """The downstream holds exactly these messages, in this order."""
    found = digests(read(downstream, topic)[partition])
    assert len(found) == len(expected), f"{len(found)} messages, expected {len(expected)}"
    assert found == expected

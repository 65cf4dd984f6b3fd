"""Rights: `check` names every missing one, a withdrawn one is a fault that names it, and its return ends that."""

import pytest

import harness
from harness import STREAM, TOPIC
from steps import *

PAIRS = [("0.8.0", "0.9.0"), ("0.9.0-edge.5", "0.8.0")]
COPY_FROM = f"{STREAM}:read_stream"
COPY_TO = f"read_servers,{STREAM}:manage_topics,{STREAM}:send_messages,iggy-replicate:manage_topics"


def as_user(broker, name="copier"):
    return f"iggy://{name}:secret@127.0.0.1:{broker.port}"


def users(upstream, downstream, of_upstream, of_downstream):
    manage(upstream, "create-user", "copier", "secret", f"--rights={of_upstream}")
    manage(downstream, "create-user", "copier", "secret", f"--rights={of_downstream}")


def brokers(lab, source, target):
    upstream, downstream = lab.broker("upstream", source), lab.broker("downstream", target)
    for broker in (upstream, downstream):
        create_topic(broker)
    create_topic(downstream, "links", "iggy-replicate")
    return upstream, downstream


def check(lab, upstream, downstream, *flags):
    done = look(lab, "check", as_user(upstream), as_user(downstream), f"--topics={STREAM}/*", *flags)
    return done, " ".join(done.stdout.split())


@pytest.mark.parametrize("source, target", PAIRS)
def test_least_rights_are_enough(lab, source, target):
    upstream, downstream = brokers(lab, source, target)
    users(upstream, downstream, COPY_FROM, COPY_TO)
    done, said = check(lab, upstream, downstream)
    assert done.returncode == 0, done.stdout
    assert said.count("rights: all that the link needs") == 2, said
    write(upstream, 50)
    appliance = lab.appliance(upstream, downstream)
    appliance.settings |= {"upstream": as_user(upstream), "downstream": as_user(downstream)}
    appliance.start()
    wait_copied(appliance, 50)
    assert_same(downstream, digests(read(upstream)[0]))


MISSING = {  # rights of both users; the sentences that must be there
    "nothing": (
        "none",
        "none",
        [
            f"upstream user `copier` lacks read_topics on {STREAM}; needed because a rule",
            "downstream user `copier` lacks read_servers; needed to settle an uncertain send",
            "downstream user `copier` lacks poll_messages on iggy-replicate/links; needed for the link's record",
            "downstream user `copier` lacks send_messages on iggy-replicate/links; needed for the link's record",
        ],
    ),
    "poll only": (
        COPY_FROM,
        f"read_servers,{STREAM}:read_stream,iggy-replicate:manage_topics",
        [f"downstream user `copier` lacks send_messages on {STREAM}/{TOPIC}; needed to copy"],
    ),
    "send only": (
        COPY_FROM,
        f"read_servers,{STREAM}:send_messages,iggy-replicate:manage_topics",
        [f"{STREAM}/{TOPIC} can't be read downstream", "read_topic"],
    ),
}


@pytest.mark.parametrize("case", MISSING)
@pytest.mark.parametrize("source, target", PAIRS)
def test_check_names_what_is_missing(lab, source, target, case):
    above, below, sentences = MISSING[case]
    upstream, downstream = brokers(lab, source, target)
    users(upstream, downstream, above, below)
    done, said = check(lab, upstream, downstream)
    assert done.returncode == 1 and "NO GO" in said, said
    for sentence in sentences:
        assert sentence in said, f"{sentence!r} is not in {done.stdout}"


def test_check_names_rights_to_create(lab):
    upstream, downstream = lab.broker("upstream", "0.8.0"), lab.broker("downstream", "0.9.0")
    create_topic(upstream)
    users(upstream, downstream, COPY_FROM, "read_servers,read_streams,send_messages")
    done, said = check(lab, upstream, downstream)
    assert done.returncode == 1, said
    for purpose in (f"create stream {STREAM}", "create topics", "create iggy-replicate/links"):
        assert f"needed to {purpose}" in said, said
    assert "lacks manage_streams" in said and f"lacks manage_topics on {STREAM}" in said, said
    assert harness.json.loads(downstream.control("state"))["streams"] == [], "check changes nothing"


def test_check_of_topics_that_are_named_needs_no_list(lab):
    upstream, downstream = brokers(lab, "0.8.0", "0.9.0")
    users(upstream, downstream, f"{STREAM}/{TOPIC}:read_topic", COPY_TO)
    done = look(lab, "check", as_user(upstream), as_user(downstream), f"--topics={STREAM}/{TOPIC}")
    assert done.returncode == 0, done.stdout
    manage(upstream, "set-rights", "copier", "none")
    done = look(lab, "check", as_user(upstream), as_user(downstream), f"--topics={STREAM}/{TOPIC}")
    said = " ".join(done.stdout.split())
    assert f"upstream user `copier` lacks poll_messages on {STREAM}/{TOPIC}; needed to copy" in said, said


WITHDRAWN = {  # side, rights that are left, the sentence
    "read upstream": ("upstream", "none", r"upstream user `copier` lacks (read_topic|poll_messages) on orders/events"),
    "send downstream": (
        "downstream",
        f"read_servers,{STREAM}:read_stream,iggy-replicate:manage_topics",
        r"downstream user `copier` lacks send_messages on orders/events",
    ),
    "all of the topic downstream": (
        "downstream",
        "read_servers,iggy-replicate:manage_topics",
        r"downstream user `copier` lacks (read_topic|poll_messages|send_messages) on orders/events",
    ),
}


@pytest.mark.parametrize("case", WITHDRAWN)
@pytest.mark.parametrize("source, target", PAIRS)
def test_withdrawn_right_is_a_fault_until_it_is_back(lab, source, target, case):
    side, left, sentence = WITHDRAWN[case]
    upstream, downstream = brokers(lab, source, target)
    users(upstream, downstream, COPY_FROM, COPY_TO)
    write(upstream, 300)
    appliance = lab.appliance(upstream, downstream)
    appliance.settings |= {"upstream": as_user(upstream), "downstream": as_user(downstream)}
    appliance.start()
    wait_copied(appliance, 300)
    broker = {"upstream": upstream, "downstream": downstream}[side]
    manage(broker, "set-rights", "copier", left)
    write(upstream, 20, seed=7)
    wait_fault(appliance, "permission", ["retry"], [sentence])
    assert len(read(downstream)[0]) == 300
    # Looking again without the right finds the same.
    appliance.resolve(row_of(appliance), "retry")
    wait_event(appliance, "fault", sentence, count=2)
    wait_fault(appliance, "permission", ["retry"], [sentence])
    manage(broker, "set-rights", "copier", {"upstream": COPY_FROM, "downstream": COPY_TO}[side])
    resolve(appliance, "retry")
    wait_copied(appliance, 320)
    assert_same(downstream, digests(read(upstream)[0]))
    assert appliance.gaps() == []


def test_withdrawn_right_on_the_links_record_is_named_while_it_waits(lab):
    upstream, downstream = brokers(lab, "0.8.0", "0.9.0")
    users(upstream, downstream, COPY_FROM, COPY_TO)
    write(upstream, 50)
    appliance = lab.appliance(upstream, downstream)
    appliance.settings |= {"upstream": as_user(upstream), "downstream": as_user(downstream)}
    appliance.start()
    wait_copied(appliance, 50)
    manage(downstream, "set-rights", "copier", f"read_servers,{STREAM}:manage_topics,{STREAM}:send_messages")
    wait_row(appliance, "it is written on", lambda row: row["phase"] == "PHASE_CAUGHT_UP")
    writer = lab.writer(upstream).start(100000, rate=20, batch=1, partition=0)
    wait_row(appliance, "it waits for the record", lambda row: "could not be confirmed" in row["waits_for"], seconds=60)
    row = wait_row(appliance, "and says why", lambda row: "manage_topics, send_messages" in row["waits_for"])
    assert "iggy-replicate/links" in row["waits_for"]
    writer.kill()
    manage(downstream, "set-rights", "copier", COPY_TO)
    wait_row(appliance, "it goes on by itself", lambda row: row["phase"] == "PHASE_CAUGHT_UP", seconds=60)
    assert_same(downstream, digests(read(upstream)[0]))

"""Are both sides equal, where is which message, and where do consumers go on: verify, translate, consumers.

One topic of 100,000 messages (ITEST_VERIFY_COUNT), damaged by hand downstream at its first, middle and last message.
"""

import json
import os
import re
import time

import pytest

from harness import REPLICATE, STREAM, TOPIC, wait_until
from steps import PARTITION, manage, pair, read, wait_copied, write

COUNT = int(os.environ.get("ITEST_VERIFY_COUNT", "100000"))
LIVE_SECONDS = int(os.environ.get("ITEST_VERIFY_LIVE_SECONDS", "30"))


def verify(appliance, *flags, code=0):
    begin = time.monotonic()
    done = appliance.lab.call([REPLICATE, "verify", "--admin", appliance.find_admin(), "-o", "json", *flags], seconds=600)
    assert done.returncode == code, f"verify: {done.returncode} {done.stdout} {done.stderr}"
    report = json.loads(done.stdout)
    report["took"] = time.monotonic() - begin
    return report


def rss_mib(process):
    status = open(f"/proc/{process.child.pid}/status").read()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def translate(appliance, offset, *flags, code=0):
    done = appliance.lab.call(
        [REPLICATE, "translate", "--admin", appliance.find_admin(), "-o", "json", PARTITION, offset, *flags]
    )
    assert done.returncode == code, f"translate: {done.returncode} {done.stdout} {done.stderr}"
    return json.loads(done.stdout)


@pytest.mark.parametrize("source, target", [("0.9.0", "0.9.0"), ("0.8.0", "0.9.0")])
def test_every_difference_has_a_name_and_both_offsets(lab, source, target):
    upstream, downstream, appliance = pair(lab, source, target, messages=0)
    write(upstream, COUNT, batch=1000, size=100)
    wait_copied(appliance, COUNT, seconds=300)
    clean = verify(appliance, "--full")
    print(f"{COUNT} messages: {clean['took']:.1f} s, VmHWM {rss_mib(appliance):.0f} MiB")
    assert clean["verdict"] == "VERDICT_EQUAL"
    [partition] = clean["partitions"]
    assert int(partition["messages"]) == COUNT
    assert partition["upstream_digest"] == partition["downstream_digest"] != "0" * 32
    assert int(verify(appliance)["partitions"][0]["messages"]) == 0, "the next run begins where the last one ended"

    # One message is damaged, named, and put right again by the opposite damage.
    last = COUNT - 1
    undo = {
        "flip-byte": lambda at: downstream.control(f"flip-byte {STREAM} {TOPIC} 0 {at}"),
        "swap": lambda at: downstream.control(f"swap {STREAM} {TOPIC} 0 {at}"),
        "insert": lambda at: downstream.control(f"drop {STREAM} {TOPIC} 0 {at}"),
        "duplicate": lambda at: downstream.control(f"drop {STREAM} {TOPIC} 0 {at}"),
    }
    # Where a copy of the message stands twice, the second one is the difference.
    cases = [
        ("flip-byte", "different", 0),
        ("swap", "order", 0),
        ("insert", "extra", 0),
        ("duplicate", "duplicate", 1),
    ]
    for at in (0, COUNT // 2, last):
        for damage, kind, shift in cases:
            place = min(at, last - 1) if damage == "swap" else at
            downstream.control(f"{damage} {STREAM} {TOPIC} 0 {place}")
            found = verify(appliance, "--full", code=1)["partitions"][0]["difference"]
            assert found["kind"] == kind, (damage, at, found)
            expected = str(place + shift)
            assert (found["upstream_offset"], found["downstream_offset"]) == (expected, expected), (damage, at, found)
            undo[damage](place)
    assert verify(appliance, "--full")["verdict"] == "VERDICT_EQUAL"
    for at in (last, COUNT // 2, 0):
        downstream.control(f"drop {STREAM} {TOPIC} 0 {at}")
        found = verify(appliance, "--full", code=1)["partitions"][0]["difference"]
        assert (found["kind"], found["upstream_offset"], found["downstream_offset"]) == ("missing", str(at), str(at)), found


def test_live_load_is_no_difference_and_a_side_that_is_away_is_said(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.8.0", messages=1000, partitions=4)
    writer = lab.writer(upstream)
    writer.start(10_000_000, rate=3000, batch=50, size=200, first_seq=500)
    end = time.monotonic() + LIVE_SECONDS
    runs = messages = 0
    while time.monotonic() < end:
        report = verify(appliance, *(["--full"] if runs % 5 == 0 else []))
        runs += 1
        messages += sum(int(partition["messages"]) for partition in report["partitions"])
    print(f"{runs} runs over {messages} messages under load, no difference; VmHWM {rss_mib(appliance):.0f} MiB")
    assert runs >= 2
    writer.kill()
    throttled = verify(appliance, f"{STREAM}/{TOPIC}/0", "--full", "--rate", "1MiB")
    compared = 2 * sum(int(partition["bytes"]) for partition in throttled["partitions"])
    assert throttled["took"] >= 0.5 * compared / (1 << 20), "the rate is held"
    done = lab.call([REPLICATE, "verify", "--admin", appliance.find_admin(), "nobody/*"])
    assert done.returncode == 2, done.stderr


def test_offsets_translate_over_a_gap_and_from_the_file(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0", messages=100)
    assert translate(appliance, 42)["counterpart"] == "42"
    appliance.stop()
    upstream.control(f"reserve {STREAM} {TOPIC} 0 50")
    write(upstream, 100)
    appliance.start()
    wait_until("the hole is behind", lambda: appliance.partitions() and int(appliance.partitions()[0]["committed"]) == 250)
    up, down = read(upstream)[0], read(downstream)[0]
    assert translate(appliance, up[150].offset)["counterpart"] == str(down[150].offset)
    hole = translate(appliance, 120, code=1)
    assert hole["mapping"] == "MAPPING_GAP" and hole["gap"]["cause"] == "hole" and hole["next"] == "100"
    assert translate(appliance, 250, code=1)["mapping"] == "MAPPING_NOT_COPIED"
    assert translate(appliance, 100, "--from", "downstream")["counterpart"] == "150"
    assert verify(appliance)["partitions"][0]["gaps"][0]["cause"] == "hole", "accepted gaps are listed"
    appliance.stop()
    done = lab.call([REPLICATE, "translate", "--state", appliance.state, "-o", "json", PARTITION, "249"])
    assert done.returncode == 0 and json.loads(done.stdout)["counterpart"] == "199", done.stdout + done.stderr


def stored(broker, name, *flags):
    return manage(broker, "get-offset", STREAM, TOPIC, "0", name, *flags)


@pytest.mark.parametrize("source, target", [("0.9.0", "0.9.0"), ("0.8.0", "0.8.0"), ("0.8.0", "0.9.0-edge.5")])
def test_consumers_go_on_at_the_right_message(lab, source, target, monkeypatch):
    monkeypatch.setenv("IGGY_REPLICATE_CONSUMERS_NAMES", "billing,audit")
    upstream, downstream, appliance = pair(lab, source, target, messages=200, consumer_interval="500ms")
    manage(upstream, "store-offset", STREAM, TOPIC, "0", "billing", "119")
    manage(upstream, "store-offset", STREAM, TOPIC, "0", "workers", "57", "--group")
    both = lambda: (stored(downstream, "billing"), stored(downstream, "workers", "--group"))
    wait_until("both are moved", lambda: both() == ("119", "57"))
    assert stored(downstream, "audit") == "none", "what is not stored upstream is not stored downstream"

    manage(upstream, "store-offset", STREAM, TOPIC, "0", "billing", "150")
    wait_until("it goes on", lambda: stored(downstream, "billing") == "150")
    manage(downstream, "store-offset", STREAM, TOPIC, "0", "billing", "180")
    rows = {(row["kind"], row["name"]): row for row in appliance.ask("consumers", "sync")["consumers"]}
    assert rows["consumer", "billing"]["state"] == "ahead" and stored(downstream, "billing") == "180", "never moved back"
    assert rows["group", "workers"]["state"] == "synced"
    assert rows["consumer", "audit"]["state"] == "none"

    manage(upstream, "delete-offset", STREAM, TOPIC, "0", "billing")
    wait_until(
        "the deletion is reported",
        lambda: any(row["state"] == "deleted" for row in appliance.ask("consumers")["consumers"]),
    )
    assert stored(downstream, "billing") == "180"

    # The cut-over: after the last sync the upstream is gone. Nothing is skipped, nothing beyond that comes twice.
    manage(upstream, "store-offset", STREAM, TOPIC, "0", "audit", "199")
    appliance.ask("consumers", "sync")
    upstream.kill()
    processed = int(stored(downstream, "audit"))
    assert processed == len(read(downstream)[0]) - 1, "it has processed everything there"
    assert "consumers_sync" in [event["kind"] for event in appliance.events()]


def test_external_groups_are_refused_with_a_sentence(lab):
    upstream, downstream = lab.broker("upstream", "0.8.0"), lab.broker("downstream", "0.9.0")
    appliance = lab.appliance(upstream, downstream, external_groups="kafka.cg.a").start()
    assert appliance.wait(30) != 0
    assert "external groups exist from server 0.10 on" in appliance.log_since(0)

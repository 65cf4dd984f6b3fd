"""Mishaps at both ends and of the state file: each ends as a named state with its ways out, or repairs itself exactly.

Every test looks at four things: the kind of the fault, the facts in its sentence, its exits, and what both sides hold in
the end.
"""

import pathlib
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

import harness
from harness import REPLICATE, STREAM, TOPIC, wait_until
from steps import *

BOTH = ["0.8.0", "0.9.0"]
PLACE = f"{STREAM} {TOPIC}"


# ----------------------------------------------------------------------------------------------------------------------
# Upstream


@pytest.mark.parametrize("server", BOTH)
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_upstream_topic_recreated(lab, server, running):
    upstream, downstream, appliance = pair(lab, server, server)
    old = digests(read(downstream)[0])
    if not running:
        assert appliance.stop() == 0
    upstream.control(f"recreate {PLACE}")
    write(upstream, 20, seed=7)
    if not running:
        appliance.start()
    # 0.8 moves created_at by itself at its first restart: within 10 s only the content tells.
    if server == "0.8.0":
        wait_fault(appliance, "upstream_rewound", ["restart"], [r"offset 19 holds message \w{32}", r"message \w{32} was copied"])
    else:
        wait_fault(appliance, "upstream_recreated", ["restart"], [r"created at \d+ µs, recorded is \d+ µs"])
    assert_same(downstream, old)
    resolve(appliance, "restart")
    wait_copied(appliance, 20)
    assert_same(downstream, old + digests(read(upstream)[0]))
    row = row_of(appliance)
    assert row["incarnation"] == "2" and "fault" not in row
    wait_event(appliance, "resolve", r"as restart by \w+@", "incarnation 2")


@pytest.mark.parametrize("server", BOTH)
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_upstream_purged(lab, server, running):
    upstream, downstream, appliance = pair(lab, server, server)
    old = digests(read(downstream)[0])
    if not running:
        assert appliance.stop() == 0
    upstream.control(f"purge {PLACE}")
    if running:
        wait_event(appliance, "upstream_lost", "500 messages")
        assert row_of(appliance)["phase"] == "PHASE_BEHIND"
    write(upstream, 20, seed=7)
    if not running:
        appliance.start()
    wait_fault(appliance, "upstream_rewound", ["restart"], [r"offset 19 holds message \w{32}"])
    resolve(appliance, "restart")
    wait_copied(appliance, 20)
    assert_same(downstream, old + digests(read(upstream)[0]))


@pytest.mark.parametrize("server", BOTH)
def test_messages_expired_before_they_were_copied(lab, server):
    upstream, downstream, appliance = pair(lab, server, server, expiry=1)
    old = digests(read(downstream)[0])
    assert appliance.stop() == 0
    write(upstream, 100, seed=7)
    time.sleep(1.5)  # retention explains a gap only when messages could have grown that old
    upstream.control(f"trim {PLACE} 0 before=540")
    kept = digests(read(upstream)[0])
    assert len(kept) == 60
    time.sleep(1.5)  # longer than the expiry: only then can it explain what is missing
    appliance.start()
    row = wait_fault(appliance, "retention", ["accept", "retry"], [r"500 to 540 \(40\) expired", "oldest kept is 540"])
    assert (row["fault"]["upstream_begin"], row["fault"]["upstream_end"]) == ("500", "540")
    gap = one_gap(appliance, "retention")
    assert (gap["upstream_begin"], gap["upstream_end"], gap["resolved_as"]) == ("500", "540", "")
    open_gaps = lab.call([REPLICATE, "gaps", "--open", "--admin", appliance.find_admin()])
    assert open_gaps.returncode == 1 and "retention" in open_gaps.stdout
    assert_same(downstream, old)
    resolve(appliance, "accept")
    wait_copied(appliance, 600)
    assert_same(downstream, old + kept)
    gap = one_gap(appliance, "retention")
    assert gap["resolved_as"] == "accept" and "@" in gap["resolved_by"]
    assert row_of(appliance)["counters"]["skipped"] == "40"


@pytest.mark.parametrize("server", BOTH)
def test_expiry_behind_the_watermark_is_normal(lab, server):
    upstream, downstream, appliance = pair(lab, server, server, expiry=3600)
    old = digests(read(downstream)[0])
    assert appliance.stop() == 0
    upstream.control(f"trim {PLACE} 0 before=500")
    write(upstream, 10, seed=7)
    appliance.start()
    wait_copied(appliance, 510)
    assert_same(downstream, old + digests(read(upstream)[0]))
    assert appliance.gaps() == []


def test_upstream_lost_its_tail_and_goes_on_above_it(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0")
    old = digests(read(downstream)[0])
    upstream.control(f"lose-tail {PLACE} 0 50")
    upstream.control(f"reserve {PLACE} 0 1000")  # as a newer server does after a crash
    write(upstream, 30, seed=7)
    row = wait_row(appliance, "new messages are copied", lambda row: row["counters"]["copied"] == "530")
    assert "fault" not in row
    assert_same(downstream, old + digests(read(upstream)[0])[450:])
    gap = one_gap(appliance, "hole")
    assert (gap["upstream_begin"], gap["upstream_end"], gap["resolved_as"]) == ("500", "1450", "hole")


def test_upstream_lost_its_tail_and_nothing_was_issued_again(lab):
    upstream, downstream, appliance = pair(lab, "0.8.0", "0.8.0")
    old = digests(read(downstream)[0])
    upstream.control(f"lose-tail {PLACE} 0 50")
    wait_event(appliance, "upstream_lost", "lost 50 messages", "450 to 500")
    wait_row(appliance, "it waits", lambda row: row["phase"] == "PHASE_BEHIND" and "ends at 450" in row["waits_for"])
    assert_same(downstream, old)
    # A restart finds the same, and says it again at most once.
    assert appliance.stop() == 0
    appliance.start()
    wait_row(appliance, "it waits again", lambda row: row["phase"] == "PHASE_BEHIND")
    assert "fault" not in row_of(appliance)


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
@pytest.mark.parametrize("again", [10, 50, 80], ids=["below", "just_to", "beyond"])
def test_upstream_lost_its_tail_and_issued_the_offsets_again(lab, running, again):
    upstream, downstream, appliance = pair(lab, "0.8.0", "0.8.0")
    old = digests(read(downstream)[0])
    if not running:
        assert appliance.stop() == 0
    upstream.control(f"lose-tail {PLACE} 0 50")
    write(upstream, again, seed=7)
    if not running:
        appliance.start()
    elif again == 50:
        write(upstream, 1, seed=8)  # the end stands where it stood: only what comes next can tell
        again += 1
    wait_fault(appliance, "upstream_rewound", ["restart"], [r"offset \d+ holds message \w{32}, and message \w{32} was copied"])
    assert_same(downstream, old)
    resolve(appliance, "restart")
    wait_copied(appliance, 450 + again)
    assert_same(downstream, old + digests(read(upstream)[0]))


def test_hole_of_a_reservation(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0")
    upstream.control(f"reserve {PLACE} 0 1000")
    write(upstream, 10, seed=7)
    wait_row(appliance, "it goes on above the hole", lambda row: row["counters"]["copied"] == "510")
    gap = one_gap(appliance, "hole")
    assert (gap["upstream_begin"], gap["upstream_end"], gap["resolved_as"]) == ("500", "1500", "hole")
    assert row_of(appliance)["counters"]["skipped"] == "0", "a hole is no loss"
    assert_same(downstream, digests(read(upstream)[0]))
    wait_event(appliance, "hole", "500 to 1500")


def test_gap_in_the_middle_that_nothing_explains(lab):
    upstream, downstream, appliance = pair(lab, "0.8.0", "0.8.0")
    old = digests(read(downstream)[0])
    assert appliance.stop() == 0
    write(upstream, 100, seed=7)
    upstream.control(f"trim {PLACE} 0 before=550")  # the topic has neither expiry nor size limit
    appliance.start()
    wait_fault(appliance, "unknown_gap", ["accept", "retry"], [r"500 to 550 \(50\) are missing", "no retention explains"])
    assert one_gap(appliance, "unknown")["resolved_as"] == ""
    resolve(appliance, "accept")
    wait_copied(appliance, 600)
    assert_same(downstream, old + digests(read(upstream)[0]))


# ----------------------------------------------------------------------------------------------------------------------
# Downstream


@pytest.mark.parametrize("server", BOTH)
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_downstream_lost_its_tail(lab, server, running):
    upstream, downstream, appliance = pair(lab, server, server)
    if not running:
        assert appliance.stop() == 0
    downstream.control(f"lose-tail {PLACE} 0 100")
    if running:
        downstream.control("cut-all")  # a crash ends its connections
    else:
        appliance.start()
    write(upstream, 10, seed=7)
    wait_event(appliance, "downstream_lost_tail", "offset 400", "100 offsets")
    wait_copied(appliance, 510)
    assert_same(downstream, digests(read(upstream)[0]))
    assert row_of(appliance)["counters"]["duplicates"] == "0"


@pytest.mark.parametrize("server", BOTH)
def test_downstream_purged(lab, server):
    upstream, downstream, appliance = pair(lab, server, server)
    assert appliance.stop() == 0
    downstream.control(f"purge {PLACE}")
    appliance.start()
    # No expiry explains an empty topic of the same creation: lost, so everything is sent again.
    wait_event(appliance, "downstream_lost_tail", "500 offsets")
    wait_copied(appliance, 500)
    assert_same(downstream, digests(read(upstream)[0]))


@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_downstream_topic_recreated(lab, running):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0")
    if not running:
        assert appliance.stop() == 0
    downstream.control(f"recreate {PLACE}")
    if not running:
        appliance.start()
    else:
        write(upstream, 10, seed=7)
    row = wait_fault(
        appliance, "downstream_recreated", ["recopy", "adopt"], [r"ends at \d+, recorded is 500", "created_at"]
    )
    before = digests(read(downstream)[0])
    everything = digests(read(upstream)[0])
    assert len(before) <= (10 if running else 0)
    # What it would mean is said in numbers.
    ways = {way["name"]: way["consequence"] for way in row["fault"]["exits"]}
    assert f"{len(everything)} messages are upstream" in ways["recopy"], ways
    assert "goes on at upstream offset 500" in ways["adopt"], ways
    resolve(appliance, "recopy")
    wait_copied(appliance, len(everything))
    assert_same(downstream, before + everything)


def test_downstream_rewritten_by_others(lab):
    upstream, downstream, appliance = pair(lab, "0.8.0", "0.8.0")
    assert appliance.stop() == 0
    downstream.control(f"purge {PLACE}")
    downstream.control(f"append {PLACE} 0 600")
    strangers = digests(read(downstream)[0])
    appliance.start()
    wait_fault(
        appliance,
        "downstream_recreated",
        ["recopy", "adopt"],
        [r"offset 0 holds message \w{32}, and another one was written there"],
    )
    resolve(appliance, "recopy")
    wait_copied(appliance, 500)
    assert_same(downstream, strangers + digests(read(upstream)[0]))


def test_rewritten_downstream_is_adopted(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0")
    assert appliance.stop() == 0
    downstream.control(f"recreate {PLACE}")
    write(upstream, 10, seed=7)
    appliance.start()
    wait_fault(appliance, "downstream_recreated", ["recopy", "adopt"])
    resolve(appliance, "adopt")
    wait_copied(appliance, 510)
    assert_same(downstream, digests(read(upstream)[0])[500:])
    gap = one_gap(appliance, "downstream_recreated")
    assert (gap["upstream_begin"], gap["upstream_end"], gap["resolved_as"]) == ("0", "500", "adopt")
    wait_event(appliance, "resolve", "downstream_recreated as adopt by", "goes on at upstream offset 500")


def test_lost_state_file_is_replaced_by_adopting_the_copy(lab):
    upstream, downstream, appliance = pair(lab, "0.8.0", "0.9.0")
    assert appliance.stop() == 0
    write(upstream, 30, seed=7)
    for path in lab.folder.glob("appliance.db*"):
        path.unlink()
    appliance.start()
    wait_fault(appliance, "downstream_not_empty", ["adopt", "restart"], ["no record", "holds 500 messages"])
    resolve(appliance, "adopt")
    wait_copied(appliance, 530)
    assert_same(downstream, digests(read(upstream)[0]))
    gap = one_gap(appliance, "unverified")
    assert (gap["upstream_begin"], gap["upstream_end"], gap["resolved_as"]) == ("0", "484", "adopt")
    wait_event(appliance, "resolve", "16 messages are equal", "upstream offset 484")


def test_policies_take_exits_by_themselves(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0", messages=100, policy_foreign_writer="accept")
    old = digests(read(downstream)[0])
    downstream.control(f"append {PLACE} 0 3")
    strangers = digests(read(downstream)[0])[100:]
    write(upstream, 10, seed=7)
    wait_copied_through_faults(appliance, 110)
    assert_same(downstream, old + strangers + digests(read(upstream)[0])[100:])
    assert one_gap(appliance, "foreign_writer")["resolved_by"] == "policy"
    assert wait_event(appliance, "resolve", "foreign_writer as accept by policy")[0]["actor"] == "policy"
    settings = lab.call([REPLICATE, "status", "--settings", "--admin", appliance.find_admin()]).stdout
    assert "policies.foreign_writer" in settings and "accept" in settings


@pytest.mark.parametrize("server", BOTH)
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_stranger_writes_downstream(lab, server, running):
    upstream, downstream, appliance = pair(lab, server, server)
    old = digests(read(downstream)[0])
    if not running:
        assert appliance.stop() == 0
    downstream.control(f"append {PLACE} 0 3")
    strangers = digests(read(downstream)[0])[500:]
    write(upstream, 10, seed=7)
    if not running:
        appliance.start()
    wait_fault(appliance, "foreign_writer", ["accept"], [r"downstream offset 500 holds message \w{32}", "not ours", r"next is \w{32} at 500"])
    resolve(appliance, "accept")
    wait_copied(appliance, 510)
    assert_same(downstream, old + strangers + digests(read(upstream)[0])[500:])
    gap = one_gap(appliance, "foreign_writer")
    assert "offsets 500 to 503" in gap["detail"] and gap["resolved_as"] == "accept"


def test_downstream_permission_withdrawn_and_restored(lab):
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.8.0")
    create_topic(upstream)
    write(upstream, 500)
    rights = "read_servers,manage_streams,read_streams,manage_topics,read_topics,poll_messages,send_messages"
    manage(downstream, "create-user", "copier", "secret", f"--rights={rights}")
    appliance = lab.appliance(upstream, downstream)
    appliance.settings["downstream"] = f"iggy://copier:secret@127.0.0.1:{downstream.port}"
    appliance.start()
    wait_copied(appliance, 500)
    manage(downstream, "set-rights", "copier", "read_servers,read_streams,read_topics,poll_messages")
    write(upstream, 10, seed=7)
    wait_fault(appliance, "permission", ["retry"], ["send"])
    assert len(read(downstream)[0]) == 500
    manage(downstream, "set-rights", "copier", rights)
    resolve(appliance, "retry")
    wait_copied(appliance, 510)
    assert_same(downstream, digests(read(upstream)[0]))


def test_record_that_the_target_can_never_take(lab):
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.8.0")
    create_topic(upstream, partitions=2)
    write(upstream, 20)
    write(upstream, 1, partition=0, size=64_000_001, batch=1, seed=7)
    write(upstream, 10, partition=0, seed=8)
    appliance = lab.appliance(upstream, downstream, read_timeout="10s").start()
    big = read(upstream)[0][10]
    wait_fault(appliance, "invalid_record", ["skip", "retry"], ["64000001|64,000,001", "offset 10", big.id])
    wait_row(appliance, "the other partition goes on", lambda row: row["committed"] == "10", partition=1)
    assert [len(log) for log in read(downstream)] == [10, 10]
    assert row_of(appliance)["committed"] == "10"
    write(upstream, 10, partition=1, seed=9)
    wait_row(appliance, "the other partition goes on", lambda row: row["committed"] == "20", partition=1)
    resolve(appliance, "skip")
    wait_copied(appliance, 41, partitions=2)
    kept = digests(read(upstream)[0])
    assert_same(downstream, kept[:10] + kept[11:])
    gap = one_gap(appliance, "invalid_record")
    assert (gap["upstream_begin"], gap["upstream_end"], gap["resolved_as"]) == ("10", "11", "skip")
    assert big.id in gap["detail"] and row_of(appliance)["counters"]["skipped"] == "1"


def test_skipped_records_are_exported_and_replayed(lab):
    """The target grows: first a 0.8 server, then a 0.9 one that holds the same messages (here: a copy of the copy)."""
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.8.0")
    create_topic(upstream)
    write(upstream, 20)
    write(upstream, 1, size=64_000_001, batch=1, seed=7)
    write(upstream, 10, seed=8)
    folder = lab.folder / "left-out"
    appliance = lab.appliance(
        upstream, downstream, read_timeout="10s", invalid_records="skip", invalid_records_export=str(folder)
    ).start()
    wait_copied(appliance, 31)
    kept = digests(read(upstream)[0])
    assert_same(downstream, kept[:20] + kept[21:])
    gap = one_gap(appliance, "invalid_record")
    assert (gap["resolved_as"], gap["resolved_by"]) == ("skip", "policy")
    exported = pathlib.Path(gap["file"])
    assert exported.is_relative_to(folder) and exported.stat().st_size > 64_000_001
    assert exported.stat().st_mode & 0o077 == 0 and folder.stat().st_mode & 0o077 == 0
    assert exported.read_bytes().startswith(b"iggy-replicate-record 1\nstream ")
    # The limit is what it was: it is named, and the row is as before.
    admin = ["--admin", appliance.find_admin()]
    preview = lab.call([REPLICATE, "gaps", "replay", "--dry-run", *admin])
    assert preview.returncode == 0 and "the order changes" in " ".join(preview.stdout.split()), preview.stdout
    assert lab.call([REPLICATE, "gaps", "replay", gap["id"], "--yes", *admin]).returncode == 0
    wait_event(appliance, "replay_failed", "64000001|64,000,001")
    wait_copied(appliance, 31)
    assert one_gap(appliance, "invalid_record")["resolved_as"] == "skip"
    assert lab.call([REPLICATE, "gaps", "replay", "77", "--yes", *admin]).returncode == 2
    assert_same(downstream, kept[:20] + kept[21:])


# ----------------------------------------------------------------------------------------------------------------------
# Sends that fail under load: exactly once, whatever became of the answer

TROUBLE = {
    "replies_dropped": ["drop-reply 2"],
    "cut_after_append": ["cut-after-append 2"],
    "cut_before_append": ["cut-before-append 2"],
    "everything": ["cut-after-append 1", "drop-reply 1", "cut-before-append 1"],
    "connections_cut": ["cut-all"],
}


# A 0.8 server answers in order while the connection lives: silence is waited out there, not resolved.
@pytest.mark.parametrize(
    "server, trouble",
    [(s, t) for s in ("0.8.0", "0.9.0-edge.5", "0.9.0") for t in TROUBLE if s != "0.8.0" or "drop" not in str(TROUBLE[t])],
)
def test_sends_in_trouble(lab, server, trouble):
    upstream, downstream, appliance = pair(lab, server, server, messages=100, partitions=2, read_timeout="400ms")
    writer = lab.writer(upstream).start(8000, rate=4000, batch=20, size="10-500")
    for _ in range(3):
        before = sum(int(row["committed"]) for row in appliance.partitions())
        for command in TROUBLE[trouble]:
            downstream.control(command)
        wait_until(
            "it goes on",
            lambda: sum(int(row["committed"]) for row in appliance.partitions()) >= min(before + 1000, 8100),
        )
    assert writer.wait() == 0
    wait_copied(appliance, 8100, partitions=2)
    for mine, theirs in zip(read(upstream), read(downstream)):
        assert digests(mine) == digests(theirs)
    assert all(row["counters"]["duplicates"] == "0" for row in appliance.partitions())


@pytest.mark.parametrize("status", [57, 58], ids=["not_accepted", "not_committed"])
@pytest.mark.parametrize("server", ["0.9.0-edge.5", "0.9.0"])
def test_transient_refusals(lab, server, status):
    upstream, downstream, appliance = pair(lab, server, server, messages=100)
    downstream.control(f"refuse {status} 5")
    write(upstream, 1000, batch=50)
    wait_copied(appliance, 1100)
    assert_same(downstream, digests(read(upstream)[0]))
    assert row_of(appliance)["counters"]["duplicates"] == "0"


@pytest.mark.parametrize("server", BOTH)
def test_slow_downstream(lab, server):
    upstream, downstream, appliance = pair(lab, server, server, messages=100)
    downstream.control("delay 150")
    write(upstream, 500, batch=50)
    wait_copied(appliance, 600, seconds=40)
    assert_same(downstream, digests(read(upstream)[0]))
    assert row_of(appliance)["counters"]["duplicates"] == "0"


@pytest.mark.parametrize("server", BOTH)
@pytest.mark.parametrize("side", ["upstream", "downstream"])
def test_side_that_stands_still(lab, server, side):
    upstream, downstream, appliance = pair(lab, server, server, messages=100, read_timeout="500ms", stuck_after="1s")
    still = {"upstream": upstream, "downstream": downstream}[side]
    write(upstream, 500, batch=50)
    still.control("pause")
    if side == "upstream":
        wait_row(appliance, "its lag is unknown", lambda row: "messages" not in row.get("lag", {}))
    else:
        time.sleep(1.5)
    still.control("resume")
    wait_copied(appliance, 600)
    assert_same(downstream, digests(read(upstream)[0]))
    assert row_of(appliance)["counters"]["duplicates"] == "0"


def test_silent_downstream_is_waited_out_and_nothing_is_skipped(lab):
    """A full disk: neither sends nor logins are answered, so there is never a second send that could count."""
    upstream, downstream, appliance = pair(lab, "0.9.0-edge.5", "0.9.0-edge.5", messages=100, read_timeout="400ms")
    downstream.control("cut-before-append 0")
    old = digests(read(downstream)[0])
    downstream.control("disk-full on")
    write(upstream, 10, seed=7)
    wait_row(
        appliance,
        "it says that the downstream does not answer",
        lambda row: "answer" in row["waits_for"],
        seconds=20,
    )
    assert row_of(appliance)["committed"] == "100"
    assert len(old) == 100


# ----------------------------------------------------------------------------------------------------------------------
# State file


def test_state_file_deleted(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.8.0")
    old = digests(read(downstream)[0])
    assert appliance.stop() == 0
    for path in lab.folder.glob("appliance.db*"):
        path.unlink()
    appliance.start()
    wait_fault(appliance, "downstream_not_empty", ["adopt", "restart"], ["no record", f"{STREAM}/{TOPIC}/0 holds 500 messages", "next offset 500"])
    assert_same(downstream, old)
    resolve(appliance, "restart")
    wait_copied(appliance, 500)
    assert_same(downstream, old + digests(read(upstream)[0]))


def test_state_file_of_another_pair(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0")
    assert appliance.stop() == 0
    elsewhere = lab.broker("elsewhere", "0.9.0")
    other = harness.Appliance(lab, "other", upstream, elsewhere).start()
    wait_copied(other, 500)
    assert other.stop() == 0
    before = read(elsewhere)[0]
    other.settings["state"] = appliance.state
    code, said = run_once(lab, other)
    assert code == 1
    assert "state file" in said and "belongs to a link into cluster" in said and "give the state file of this pair" in said
    assert digests(read(elsewhere)[0]) == digests(before)


def test_second_process_on_one_state_file(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0")
    second = harness.Appliance(lab, "second", upstream, downstream, state=appliance.state)
    code, said = run_once(lab, second)
    assert code == 1
    assert "appliance.db" in said and "another process" in said
    write(upstream, 10, seed=7)
    wait_copied(appliance, 510)
    assert_same(downstream, digests(read(upstream)[0]))


def test_second_process_on_a_copied_state_file(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0", messages=100)
    copy = lab.folder / "copy.db"
    done = lab.call([REPLICATE, "state", "backup", "--state", appliance.state, copy])
    assert done.returncode == 0, done.stderr
    writer = lab.writer(upstream).start(12_000, rate=3000, batch=20)
    second = harness.Appliance(lab, "second", upstream, downstream, state=copy).start()
    assert second.wait(30) == 1, "it watches, and hears the first"
    said = " ".join(second.log_since(0).split())
    assert "fenced" in said and "holds it and is alive" in said and "stop that process first" in said, said
    assert writer.wait() == 0
    wait_copied(appliance, 12_100)
    assert_same(downstream, digests(read(upstream)[0]))
    assert row_of(appliance)["counters"]["duplicates"] == "0"
    # An old state file, once the newer generation has been held.
    assert appliance.stop() == 0
    appliance.start()
    wait_copied(appliance, 12_100)
    assert appliance.stop() == 0
    code, said = run_once(lab, second)
    assert code == 1 and "old or copied state file" in " ".join(said.split()), said


def test_two_links_into_one_topic(lab):
    """A lost state file makes a twin: it watches, and ends when the first shows that it lives."""
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0", messages=100)
    twin = harness.Appliance(lab, "twin", upstream, downstream).start()
    write(upstream, 400, seed=7)
    wait_copied(appliance, 500)
    assert twin.ask("status").get("partitions", []) == [], "it touches nothing while it watches"
    assert twin.wait(30) == 1
    said = " ".join(twin.log_since(0).split())
    assert "copies from the same upstream into the same topics and is alive" in said and "stop that link first" in said, said
    assert_same(downstream, digests(read(upstream)[0]))


def test_state_folder_is_full(lab):
    folder = lab.folder / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", folder], capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        upstream, downstream, appliance = pair(
            lab, "0.9.0", "0.9.0", messages=100, state=folder / "link.db", uncommitted_batches_max=3, batch_bytes="64KiB"
        )
        # Somebody reads the file: its journal can't begin anew in the room that it has, and has to grow.
        reader = sqlite3.connect(f"file:{folder / 'link.db'}?mode=ro", uri=True, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM link").fetchall()
        hog = folder / "hog"
        with open(hog, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        write(upstream, 6000, batch=50, size=500)
        wait_until("status says that the state file can't be written", lambda: appliance.ask("status")["link"]["store_error"])
        # A commit may be under way, or may just have found room.
        said = lambda row: row["waits_for"] + appliance.ask("status")["link"]["store_error"]
        wait_row(appliance, "copying stops", lambda row: "the state file" in row["waits_for"] and "full" in said(row))
        words = [REPLICATE, "status", "--admin", appliance.find_admin()]
        wait_until("status ends with 1", lambda: lab.call(words).returncode == 1 and "state file" in lab.call(words).stdout)
        stopped_at = int(row_of(appliance)["acked"])
        assert stopped_at < 6100, "what can not be committed is not sent for ever"
        write(upstream, 100, seed=7)
        # The journal's own pages can make room for a commit now and then; never for all of them.
        assert int(row_of(appliance)["acked"]) < 6200, "nothing is sent while nothing can be committed"
        hog.unlink()
        reader.close()
        wait_copied(appliance, 6200, seconds=40)
        assert_same(downstream, digests(read(upstream)[0]))
        assert appliance.ask("status")["link"]["store_error"] == ""
        assert appliance.stop() == 0
    finally:
        for process in lab.processes:
            process.kill()
        subprocess.run(["umount", folder], check=True)


def test_state_folder_is_read_only(lab):
    folder = lab.folder / "readonly"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", folder], capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0", messages=100, state=folder / "link.db")
        assert appliance.stop() == 0
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        code, said = run_once(lab, appliance)
        assert code == 1
        assert "link.db" in said and ("read-only" in said.lower() or "readonly" in said.lower()), said
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
        write(upstream, 10, seed=7)
        appliance.start()
        wait_copied(appliance, 110)
        assert_same(downstream, digests(read(upstream)[0]))
    finally:
        for process in lab.processes:
            process.kill()
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("place", ["header", "pages", "empty", "text"])
def test_state_file_is_damaged(lab, place):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0", messages=100)
    appliance.kill()
    for suffix in ("-wal", "-shm"):
        path = lab.folder / f"appliance.db{suffix}"
        if path.exists() and place != "pages":
            path.unlink()
    if place == "pages":
        done = lab.call(["/usr/bin/python3", "-c", f"import sqlite3; sqlite3.connect('{lab.folder}/appliance.db').execute('PRAGMA wal_checkpoint(TRUNCATE)')"])
        assert done.returncode == 0
    content = bytearray(appliance.state.read_bytes())
    if place == "header":
        content[:64] = b"\xa5" * 64
    elif place == "pages":
        for page in range(1, len(content) // 4096):
            content[page * 4096 : page * 4096 + 512] = b"\xa5" * 512
    elif place == "empty":
        content = bytearray()
    else:
        content = bytearray(b"this is no database\n" * 400)
    appliance.state.write_bytes(content)
    code, said = run_once(lab, appliance)
    assert code == 1
    assert "appliance.db" in said and "backup" in said, said
    assert appliance.state.read_bytes() == bytes(content), "a damaged file is evidence: it stays as it is"
    assert len(read(downstream)[0]) == 100
    check = lab.call([REPLICATE, "state", "check", "--state", appliance.state])
    assert check.returncode == 1, check.stdout


# ----------------------------------------------------------------------------------------------------------------------
# Loops


def test_both_urls_are_one_cluster(lab):
    cluster = lab.broker("cluster", "0.9.0")
    create_topic(cluster)
    write(cluster, 50)
    code, said = run_once(lab, lab.appliance(cluster, cluster))
    assert code == 2
    assert "is the same as link.upstream_url" in said and "link.rename" in said, said
    assert len(read(cluster)[0]) == 50


def test_one_cluster_with_a_rename(lab):
    cluster = lab.broker("cluster", "0.9.0")
    create_topic(cluster)
    write(cluster, 50)
    appliance = lab.appliance(cluster, cluster, rename=f"{STREAM}/* -> dr-{STREAM}/*").start()
    wait_copied(appliance, 50)
    assert digests(read(cluster, stream=f"dr-{STREAM}")[0]) == digests(read(cluster)[0])


def test_one_cluster_by_another_name(lab):
    """The text of the URLs differs; only the record that one side shows to the other tells."""
    cluster = lab.broker("cluster", "0.8.0")
    create_topic(cluster)
    write(cluster, 50)
    appliance = lab.appliance(cluster, cluster)
    appliance.settings["downstream"] = f"iggy://iggy:iggy@localhost:{cluster.port}"
    code, said = run_once(lab, appliance)
    assert code == 2 and f"{STREAM}/{TOPIC}" in said, said
    assert len(read(cluster)[0]) == 50


def test_reverse_link(lab):
    a, b, there = pair(lab, "0.9.0", "0.9.0", messages=50)
    back = harness.Appliance(lab, "back", b, a)
    code, said = run_once(lab, back)
    assert code == 2
    assert "circle" in said and f"{STREAM}/{TOPIC}" in said and "exclude" in said, said
    assert len(read(a)[0]) == 50 and len(read(b)[0]) == 50
    assert there.running()

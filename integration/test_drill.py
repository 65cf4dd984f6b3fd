"""The drill: a real kill, and a report that equals what its journal says."""

import json
import os
import threading

import pytest

import harness
from harness import REPLICATE, wait_until
from steps import create_topic, manage, pair, write

FAST = ["--load-for", "4", "--after-for", "1", "--rate", "100", "--consumer-interval", "500ms"]
# As many messages as one send of the drill holds. At 100 a second a prediction that is 0.1 s old is within it.
BATCH = 10


def drill(lab, upstream, downstream, *flags, ok=(0,)):
    urls = ["--upstream", upstream.url, "--downstream", downstream.url]
    done = lab.call([REPLICATE, "drill", *urls, "-o", "json", *FAST, *flags])
    assert done.returncode in ok, f"drill {flags}: {done.returncode}\n{done.stdout}{done.stderr}"
    return json.loads(done.stdout) if done.stdout else done


def brokers(lab, source="0.8.0", target="0.9.0"):
    return lab.broker("upstream", source, disk=True), lab.broker("downstream", target)


def journal_of(report):
    """Acknowledged (partition, sequence), in order."""
    with open(report["journal"]) as lines:
        return [tuple(map(int, line.split()[:2])) for line in lines if not line.startswith("?")]


def streams_of(broker, report):
    """Whether the drill's stream is still there: creating it says so."""
    done = broker.lab.call(
        [harness.LOAD, "read", "--url", broker.url, "--stream", f"iggy-replicate-drill-{report['id']}", "--topic", "load"]
    )
    return done.returncode == 0


# ITEST_DRILLS=10: that many, each with its seed and so with its moment of the kill.
PAIRS = [("0.8.0", "0.9.0"), ("0.9.0", "0.8.0"), ("0.9.0", "0.9.0")]
DRILLS = [(*PAIRS[seed % 3], seed) for seed in range(int(os.environ.get("ITEST_DRILLS", "3")))]


@pytest.mark.parametrize("source,target,seed", DRILLS)
def test_killed_process(lab, source, target, seed):
    upstream, downstream = brokers(lab, source, target)
    report = drill(lab, upstream, downstream, "--kill-pid", str(upstream.child.pid), "--seed", str(seed))
    journal = journal_of(report)
    assert len(journal) == len(set(journal)) and len(journal) > int(report["acknowledged"]) > 300
    lost, predicted = int(report["rpo_messages"]), int(report["stated"]["messages"])
    assert report["predicted"]["unknown_partitions"] == 0
    # At the default poll_interval: what the upstream took since the last look is estimated.
    predicted += int(report["stated"]["unseen_messages"])
    assert int(report["prediction_error"]) == predicted - lost
    assert abs(predicted - lost) <= BATCH, report
    assert {each["position"] for each in report["consumers"]} == {"stored"}, report
    phases = ["detect", "predict", "fail over", "move consumers", "first write", "first read"]
    assert [phase["name"] for phase in report["phases"]] == phases
    assert int(report["rto_micros"]) == sum(int(phase["micros"]) for phase in report["phases"])
    assert {each["skips"] for each in report["consumers"]} == {"0"} and len(report["consumers"]) == 2, report
    for counted in ("lost_after", "duplicates", "out_of_order", "damaged"):
        assert report[counted] == "0", report
    print(f"RPO {lost} messages (predicted {predicted}), RTO {int(report['rto_micros']) / 1e6:.2f} s")
    # Nothing is left where it could be deleted; where it could not, it is said.
    assert not streams_of(downstream, report)
    assert len(report["left"]) == 1 and report["left"][0].startswith("upstream"), report["left"]
    upstream.start()
    urls = ["--upstream", upstream.url, "--downstream", downstream.url]
    done = lab.call([REPLICATE, "drill", *urls, "--cleanup", report["id"]])
    assert done.returncode == 0, done.stderr
    assert not streams_of(upstream, report)


@pytest.mark.parametrize("mode,source,target", [("keep", "0.8.0", "0.9.0"), ("rebuild", "0.9.0", "0.8.0")])
def test_the_way_back_lists_what_the_journal_lost(lab, mode, source, target):
    upstream = lab.broker("upstream", source, disk=True)
    downstream = lab.broker("downstream", target)
    # A small command, because the sandbox's command line belongs to the harness: it asks for a restart and waits for it.
    asked, done = lab.folder / "restart-asked", lab.folder / "restart-done"
    restart = f"touch {asked}; until [ -e {done} ]; do sleep 0.05; done"

    def bring_back():
        wait_until("the drill asks for the upstream", asked.exists, 60)
        upstream.wait(10)
        upstream.start()  # it lives as long as this thread
        done.touch()
        over.wait(120)

    over = threading.Event()
    helper = threading.Thread(target=bring_back)
    helper.start()
    kill = ["--kill-pid", str(upstream.child.pid), "--failback", mode, "--restart-command", restart]
    try:
        report = drill(lab, upstream, downstream, *kill)
        gone = [not streams_of(broker, report) for broker in (upstream, downstream)]
    finally:
        over.set()
        helper.join()
    back = report["failback"]
    assert back["mode"] == mode and back["orphans"] == back["expected"], report
    # What the upstream had acknowledged and saved; what it took and never answered may be there as well.
    assert int(back["orphans"]) <= int(report["rpo_messages"]) + 4 * BATCH, report
    assert back["missing"] == "0" and back["duplicates"] == "0" and not report.get("left"), report
    assert gone == [True, True]


def test_predictions_hold_against_heartbeats(lab):
    upstream, downstream, appliance = pair(lab, "0.8.0", "0.9.0", messages=100)
    urls = ["--upstream", upstream.url, "--downstream", downstream.url]
    done = lab.call([REPLICATE, "drill", "--predict", "--heartbeat", "5", "--rate", "100", *urls, "-o", "json"])
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    print(report)
    assert int(report["looks"]) >= 5 and int(report["acknowledged"]) > 300 and not report.get("left"), report
    assert int(report["worst_error"]) <= BATCH, report
    assert appliance.running() and len(appliance.partitions()) == 1, "the link beside it saw nothing of that"


def test_a_silent_upstream_is_noticed_by_the_link(lab):
    """A black hole: on 0.8 a writer waits for ever, the link does not."""
    upstream, downstream = brokers(lab)
    stop = f"kill -STOP {upstream.child.pid}"
    report = drill(lab, upstream, downstream, "--kill-command", stop, "--read-timeout", "2s")
    upstream.thaw()
    assert report["detected_by"] == "link", report
    assert {each["skips"] for each in report["consumers"]} == {"0"}, report


def test_thresholds_decide_the_exit_code(lab):
    upstream, downstream = brokers(lab)
    report = drill(lab, upstream, downstream, "--kill-pid", str(upstream.child.pid), "--max-rto-seconds", "0.000001", ok=(1,))
    assert len(report["exceeded"]) == 1 and "RTO" in report["exceeded"][0], report


def test_refuses_a_stream_that_it_did_not_make(lab):
    upstream, downstream = brokers(lab)
    create_topic(upstream, "precious", stream="iggy-replicate-drill-mine")
    write(upstream, 10, topic="precious", stream="iggy-replicate-drill-mine")
    urls = ["--upstream", upstream.url, "--downstream", downstream.url, "--id", "mine"]
    done = lab.call([REPLICATE, "drill", *urls, *FAST, "--kill-pid", str(upstream.child.pid)])
    assert done.returncode == 1 and "not made by us" in done.stderr, done.stderr
    assert upstream.running(), "nothing was killed"
    manage(upstream, "delete-topic", "iggy-replicate-drill-mine", "precious")


def test_needs_one_way_to_kill(lab):
    upstream, downstream = brokers(lab)
    for ways in ([], ["--kill-pid", "1", "--kill-command", "true"]):
        done = lab.call([REPLICATE, "drill", "--upstream", upstream.url, "--downstream", downstream.url, *ways])
        assert done.returncode == 2 and "--kill-container" in done.stderr, done.stderr


def test_predict_says_what_a_running_link_would_lose_now(lab):
    upstream, downstream, appliance = pair(lab, "0.8.0", "0.9.0", messages=100)
    done = lab.call([REPLICATE, "drill", "--predict", "--admin", appliance.find_admin(), "-o", "json"])
    assert done.returncode == 0 and json.loads(done.stdout)["messages"] == "0", done.stdout + done.stderr
    lab.call([REPLICATE, "pause", "--admin", appliance.find_admin(), "orders/events/0"])
    write(upstream, 42, first_seq=100, batch=42)

    def predicted():
        done = lab.call([REPLICATE, "drill", "--predict", "--admin", appliance.find_admin(), "-o", "json"])
        return json.loads(done.stdout)["messages"] == "42"

    wait_until("the prediction has seen them", predicted)
    limit = ["drill", "--predict", "--admin", appliance.find_admin(), "--max-rpo-messages", "41"]
    assert lab.call([REPLICATE, *limit]).returncode == 1
    assert appliance.running(), "nothing was ended"

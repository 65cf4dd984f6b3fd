"""The drill: a real kill, and a report that equals what its journal says."""

import json

import pytest

import harness
from harness import REPLICATE, wait_until
from steps import create_topic, manage, pair, write

FAST = ["--load-for", "1.5", "--after-for", "1", "--rate", "1500", "--poll-interval", "10ms", "--commit-interval", "20ms"]


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


@pytest.mark.parametrize("source,target,seed", [("0.8.0", "0.9.0", 1), ("0.9.0", "0.8.0", 2), ("0.9.0", "0.9.0", 3)])
def test_killed_process(lab, source, target, seed):
    upstream, downstream = brokers(lab, source, target)
    report = drill(lab, upstream, downstream, "--kill-pid", str(upstream.child.pid), "--seed", str(seed))
    journal = journal_of(report)
    assert len(journal) == len(set(journal)) and len(journal) > int(report["acknowledged"]) > 500
    lost, predicted = int(report["rpo_messages"]), int(report["predicted"]["messages"])
    assert report["predicted"]["unknown_partitions"] == 0
    # What was seen last is at most a poll interval old; the kill may cut a send per partition in two.
    assert abs(predicted - lost) <= 50, report
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

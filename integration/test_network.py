"""What a network does to a link, by proxy.py: answers that are lost, cuts of many time-outs, black holes, halves of
connections, delay and loss; and a link that stood still itself. Each ends with equal sides and nothing copied twice.

Time-outs are those of harness.IMPATIENT: connect 1 s, read 2 s. A cut of CUT seconds is to them what two minutes are to the
defaults.
"""

import time

import pytest

import harness
from harness import STREAM, TOPIC, faults_of, wait_until
from steps import *

PAIRS = [("0.8.0", "0.9.0"), ("0.9.0", "0.8.0")]
pairs = pytest.mark.parametrize("source, target", PAIRS, ids=["8_to_9", "9_to_8"])
sides = pytest.mark.parametrize("side", ["upstream", "downstream"])
CUT = 8

ENDLESS = 10**9
LOAD = {"rate": 2000, "batch": 20, "size": "200-2000"}


class Spoiled:
    """A link under load whose way to `side` ("upstream", "downstream" or both) leads through a proxy."""

    def __init__(self, lab, source, target, *sides, disk=False, **load):
        self.lab = lab
        self.upstream, self.downstream = lab.broker("upstream", source, disk=disk), lab.broker("downstream", target)
        self.writer = lab.writer(self.upstream).start(ENDLESS, **{**LOAD, **load})
        wait_until("the writer has begun", lambda: self.writer.journal_path.exists() and any(self.writer.journal()))
        self.appliance = lab.appliance(self.upstream, self.downstream)
        for side in sides:
            self.proxy = lab.proxy({"upstream": self.upstream, "downstream": self.downstream}[side])
            self.appliance.settings[side] = f"iggy://iggy:iggy@127.0.0.1:{self.proxy.port}"
        self.appliance.start()
        wait_until("something is copied", lambda: self.copied() > 500)

    def copied(self):
        return sum(int(row["counters"]["copied"]) for row in self.appliance.partitions())

    def wait_goes_on(self, seconds):
        before, begin = self.copied(), time.monotonic()
        wait_until("the copy goes on", lambda: self.copied() > before + 200, seconds)
        return time.monotonic() - begin

    def assert_equal(self):
        self.writer.stop()
        self.appliance.wait_caught_up(self.upstream)
        assert self.appliance.events("fault") == [] and self.appliance.gaps() == []
        assert all(row["counters"]["duplicates"] == "0" for row in self.appliance.partitions())
        compared = self.lab.compare(self.upstream, self.downstream)
        assert int(compared["equal"]) >= sum(map(len, self.writer.journal())) > 0


@pairs
def test_one_answer_is_lost_again_and_again(lab, source, target):
    link = Spoiled(lab, source, target, "downstream")
    for _ in range(10):
        link.proxy.swallow(1, 2000)  # a batch is larger, what else is said is not
        wait_until("an answer is lost", lambda: link.proxy.swallows == 0)
        link.wait_goes_on(10)
    assert sum(len(log) for log in link.downstream.read()) > 0
    adopted = link.appliance.events("adopted_own_tail")
    assert adopted, "nothing was appended without its answer: the test proves nothing"
    link.assert_equal()


@pairs
@sides
@pytest.mark.parametrize("how", ["black_hole", "half_open", "half_close"])
def test_connections_that_are_not_what_they_seem(lab, source, target, side, how):
    link = Spoiled(lab, source, target, side)
    getattr(link.proxy, how)()
    time.sleep(3)  # past the read time-out
    assert faults_of(link.appliance.partitions()) == {}
    link.proxy.heal()
    link.wait_goes_on(10)
    link.assert_equal()


@sides
@pytest.mark.parametrize("source, target, how", [(*PAIRS[0], "black_hole"), (*PAIRS[1], "black_hole"), (*PAIRS[0], "refuse")])
def test_cut_of_many_time_outs(lab, source, target, side, how):
    link = Spoiled(lab, source, target, side)
    getattr(link.proxy, how)()
    time.sleep(1)
    burnt = link.appliance.cpu_seconds()
    time.sleep(CUT - 1)
    burnt = link.appliance.cpu_seconds() - burnt
    assert faults_of(link.appliance.partitions()) == {}
    status = link.appliance.ask("status")["link"]
    assert not status[side].get("connected") and status[side]["last_error"], status[side]
    assert burnt < 0.25 * CUT, f"{burnt} s of CPU while nobody could be reached"
    link.proxy.heal()
    assert link.wait_goes_on(10) < 5, "it comes back within the largest backoff and a look at both sides"
    assert link.appliance.log_since(link.appliance.begin).count("\n") < 200, "an outage is told, not repeated"
    link.assert_equal()


@pairs
def test_link_stands_still_past_every_time_out(lab, source, target):
    link = Spoiled(lab, source, target)
    for _ in range(2):
        link.appliance.freeze()
        time.sleep(4)
        link.appliance.thaw()
        link.wait_goes_on(10)
    link.assert_equal()


@pairs
def test_upstream_restarts_under_load(lab, source, target):
    link = Spoiled(lab, source, target, disk=True)
    for _ in range(3):
        assert link.upstream.stop() == 0  # in order: all that it acknowledged is saved
        lab.moment(0.1, 2)
        link.upstream.start()
        link.wait_goes_on(15)
    link.assert_equal()


@pairs
def test_long_and_lossy_way(lab, source, target):
    link = Spoiled(lab, source, target, "upstream", "downstream")
    for proxy in lab.proxies:
        proxy.delay, proxy.loss = 0.05, 0.01
    time.sleep(8)
    assert all(proxy.lost > 0 for proxy in lab.proxies)
    behind = sum(map(len, link.writer.journal())) - link.copied()
    assert behind < 2 * LOAD["rate"], f"{behind} messages behind after 8 s at 100 ms: it does not keep up"
    # Lag is right to a few round trips of new messages.
    link.writer.freeze()
    written = sum(len(log) for log in link.upstream.read())
    link.proxy.refuse()  # the downstream: what is behind stays behind

    def lag():
        rows = link.appliance.partitions()
        lags = [int(row["lag"]["messages"]) for row in rows if "messages" in row["lag"]]
        return len(lags) == len(rows) and abs(sum(lags) - (written - sum(int(row["acked"]) for row in rows))) <= 0.05 * written

    wait_until("lag is right", lag, 15)
    link.proxy.heal()
    link.writer.thaw()
    link.assert_equal()

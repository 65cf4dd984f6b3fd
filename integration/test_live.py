"""Live control and what is seen at a glance: throttles, reload, the status page."""

import html.parser
import json
import re
import signal
import time
import urllib.error
import urllib.request

import pytest

from harness import STREAM, TOPIC, wait_until
from steps import *
from test_operating import fetch, metrics_address, sample, verb




def setting(appliance, key):
    return next(each for each in appliance.ask("status", "--settings")["link"]["settings"] if each["key"] == key)


def copied(appliance, topic=TOPIC):
    row = row_of(appliance, topic=topic)
    return int(row["acked"]) if row else 0


# ----------------------------------------------------------------------------------------------------------------------
# Throttles


@pytest.mark.parametrize("source, target", [("0.8.0", "0.9.0"), ("0.9.0", "0.8.0")])
def test_throttle_holds_and_is_changed_at_run_time(lab, source, target):
    upstream, downstream = lab.broker("upstream", source), lab.broker("downstream", target)
    create_topic(upstream)
    write(upstream, 3000, size=1000, batch=100)
    appliance = lab.appliance(upstream, downstream, throttle_link="200KiB/s").start()
    wait_until("it copies", lambda: copied(appliance) > 0)
    begin, start = copied(appliance), time.monotonic()
    time.sleep(5)
    rate = (copied(appliance) - begin) / (time.monotonic() - start)
    assert 60 < rate < 230, f"{rate} messages of 1 KB per second, 200 KiB/s are allowed"
    row = row_of(appliance)
    assert row["phase"] == "PHASE_COPYING" and "throttle of the link" in row["waits_for"], row

    dry = verb(lab, appliance, "throttle", "link", "20KiB/s", "--dry-run")
    assert dry.returncode == 0 and "200KiB/s -> 20KiB/s" in dry.stdout, dry
    assert setting(appliance, "throttle.link")["effective"] == "200KiB/s"
    assert verb(lab, appliance, "throttle", f"{STREAM}/*", "5msg/s").returncode == 0
    held = copied(appliance)
    time.sleep(3)
    assert copied(appliance) - held < 3 * 5 + 500, "what had been read before, and five a second"
    wait_row(appliance, "it says which", lambda row: f"throttle of the topic {STREAM}/{TOPIC}" in row["waits_for"], seconds=10)
    shown = verb(lab, appliance, "throttle").stdout
    assert "throttle.link     200KiB/s" in shown and f"{STREAM}/* 5msg/s  (at run time; configured: nothing)" in shown, shown
    assert setting(appliance, "throttle.topics") | {"set": ""} == {
        "key": "throttle.topics", "set": "", "effective": f"{STREAM}/* 5msg/s", "source": "run time"}

    for words in (("link", "fast"), ("link", "10"), ("nonsense", "1MiB/s"), ("no/such", "off"), ("link",)):
        done = verb(lab, appliance, "throttle", *words)
        assert done.returncode == 2, (words, done)
    assert verb(lab, appliance, "throttle", f"{STREAM}/*", "off").returncode == 0
    assert verb(lab, appliance, "throttle", "link", "off").returncode == 0
    wait_copied(appliance, 3000, seconds=20)
    assert [event["object"] for event in appliance.events("throttle")] == [f"{STREAM}/*", f"{STREAM}/*", "link"]
    assert_same(downstream, digests(read(upstream)[0]))


def test_live_messages_go_before_a_backlog(lab):
    """One topic has a backlog of many minutes at the link's rate, another gets a message now and then."""
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.9.0")
    create_topic(upstream, "backlog", partitions=4)
    write(upstream, 40_000, "backlog", size=1000, batch=500)
    create_topic(upstream, "live")
    write(upstream, 1, "live", size=1000)
    appliance = lab.appliance(upstream, downstream, throttle_link="300KiB/s").start()
    wait_row(appliance, "the live one is caught up", lambda row: row["phase"] == "PHASE_CAUGHT_UP", topic="live")
    slowest = 0
    for number in range(2, 22):
        write(upstream, 1, "live", size=1000, first_seq=number)
        start = time.monotonic()
        wait_row(appliance, "it is there", lambda row: int(row["acked"]) == number, topic="live", seconds=20)
        slowest = max(slowest, time.monotonic() - start)
    left = [row for row in appliance.partitions() if row["id"]["topic"] == "backlog" and row["phase"] == "PHASE_COPYING"]
    assert len(left) == 4, "the backlog was done: the test proves nothing"
    assert slowest < 3, f"a live message took {slowest} s"
    before = sum(int(row["acked"]) for row in left)
    wait_until("the backlog goes on", lambda: sum(int(row["acked"]) for row in appliance.partitions()) > before + 100)
    assert verb(lab, appliance, "throttle", "link", "off").returncode == 0
    wait_copied(appliance, 40_021, partitions=5)
    for topic in ("backlog", "live"):
        assert [digests(log) for log in read(upstream, topic)] == [digests(log) for log in read(downstream, topic)]


# ----------------------------------------------------------------------------------------------------------------------
# Reload


def with_file(lab, upstream, downstream, **settings):
    """An appliance whose rules stand in a file. Returns it and what writes that file."""
    appliance = lab.appliance(upstream, downstream, **settings)
    del appliance.settings["topics"]
    path = lab.folder / "link.toml"

    def configure(text):
        path.write_text(text)

    return appliance, path, configure


def test_reload_while_it_copies(lab):
    upstream, downstream = lab.broker("upstream", "0.8.0"), lab.broker("downstream", "0.9.0")
    for topic in ("kept", "dropped"):
        create_topic(upstream, topic, partitions=2)
        write(upstream, 100, topic)
    appliance, path, configure = with_file(lab, upstream, downstream)
    configure(f'[link]\ntopics = ["{STREAM}/*"]\n')
    appliance.start("--config", path)
    wait_copied(appliance, 200, partitions=4)

    # What is wrong changes nothing, and is said.
    configure(f'[link]\ntopics = ["nonsense"]\n[copy]\nbudget_bytes = "1KiB"\n')
    for words in (["reload"], ["reload", "--dry-run"]):
        refused = verb(lab, appliance, *words)
        assert refused.returncode == 2 and "link.topics" in refused.stderr and "copy.budget_bytes" in refused.stderr, refused
    appliance.signal(signal.SIGHUP)
    wait_event(appliance, "reload_refused", "link.topics", count=2)
    assert len(appliance.partitions()) == 4 and setting(appliance, "link.topics")["effective"] == f"{STREAM}/*"

    # A topic leaves, while both are written.
    configure(f'[link]\ntopics = ["{STREAM}/*"]\nexclude = ["{STREAM}/dropped"]\n[copy]\nbatch_bytes = "1MiB"\nbudget_bytes = "64MiB"\n'
              '[throttle]\nlink = "50MiB/s"\n[log]\nlevel = "debug"\n')
    dry = verb(lab, appliance, "reload", "--dry-run")
    said = " ".join(dry.stdout.split())
    assert dry.returncode == 0 and "needs a restart" in said and "copy.batch_bytes: 4MiB -> 1MiB" in said, dry
    assert set(dry.stdout.split("\n  ")[1:]) >= {"link.exclude"} or "link.exclude" in dry.stdout
    assert len(appliance.partitions()) == 4
    for topic in ("kept", "dropped"):
        write(upstream, 100, topic, seed=7)
    appliance.signal(signal.SIGHUP)
    wait_event(appliance, "reload", "link.exclude", "needs a restart.*copy.batch_bytes")
    wait_until("the topic has left", lambda: {row["id"]["topic"] for row in appliance.partitions()} == {"kept"})
    link = appliance.ask("status", "--settings")["link"]
    assert link["budget_bytes"] == str(64 << 20), link["budget_bytes"]
    effective = {each["key"]: each["effective"] for each in link["settings"]}
    assert effective["throttle.link"] == "50MiB/s" and effective["log.level"] == "debug" and effective["copy.batch_bytes"] == "4MiB"
    size = appliance.log_size()
    upstream.control("cut-all")  # connections are lost and made at level debug
    for topic in ("kept", "dropped"):
        write(upstream, 100, topic, seed=8)
    wait_copied(appliance, 300, partitions=2)
    assert " debug " in appliance.log_since(size), "log.level"
    gone = sum(len(log) for log in read(downstream, "dropped"))
    assert 100 <= gone <= 200

    # It comes back, and goes on where it was.
    configure(f'[link]\ntopics = ["{STREAM}/*"]\n')
    done = verb(lab, appliance, "reload")
    assert done.returncode == 0 and "link.exclude" in done.stdout, done
    wait_copied(appliance, 600, partitions=4)
    again = verb(lab, appliance, "reload")
    assert again.returncode == 0 and "nothing to change" in again.stdout, again
    for topic in ("kept", "dropped"):
        assert [digests(log) for log in read(upstream, topic)] == [digests(log) for log in read(downstream, topic)]
    assert appliance.gaps() == []
    assert [event["actor"] for event in appliance.events("reload")][0] == "SIGHUP"
    assert "@" in appliance.events("reload")[1]["actor"]

    # A restart reads the same file.
    assert appliance.stop() == 0
    appliance.start("--config", path)
    wait_copied(appliance, 600, partitions=4)


def test_reload_again_and_again_under_load_loses_and_repeats_nothing(lab):
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.8.0")
    create_topic(upstream, partitions=4)
    appliance, path, configure = with_file(lab, upstream, downstream)
    wanted, unwanted = f'[link]\ntopics = ["{STREAM}/*"]\n', f'[link]\ntopics = ["{STREAM}/*"]\nexclude = ["{STREAM}/{TOPIC}"]\n'
    configure(wanted)
    appliance.start("--config", path)
    wait_copied(appliance, 0, partitions=4)
    writer = lab.writer(upstream).start(12_000, rate=1500)
    while writer.running():
        for text in (unwanted, wanted):
            configure(text)
            appliance.signal(signal.SIGHUP)
            lab.moment(0.1, 0.9)
    assert writer.wait() == 0
    configure(wanted)
    appliance.signal(signal.SIGHUP)
    wait_copied(appliance, 12_000, partitions=4)
    lab.compare(upstream, downstream)
    assert appliance.gaps() == []
    assert sum(int(row["counters"]["duplicates"]) for row in appliance.partitions()) == 0


# ----------------------------------------------------------------------------------------------------------------------
# An idle link


def test_an_idle_link_stops_at_once(lab):
    upstream, downstream, appliance = pair(lab, "0.8.0", "0.9.0", messages=100, partitions=8, poll_interval="10s")
    start = time.monotonic()
    assert appliance.stop() == 0
    assert time.monotonic() - start < 0.9, "a reader that waits for news hears the stop"


def test_an_idle_link_of_many_topics_asks_little(lab):
    upstream, downstream = lab.broker("upstream", "0.8.0"), lab.broker("downstream", "0.9.0")
    for number in range(40):
        create_topic(upstream, f"topic-{number}", partitions=2)
        write(upstream, 10, f"topic-{number}")
    appliance = lab.appliance(upstream, downstream, poll_interval="100ms", reconcile_interval="1h").start()
    wait_copied(appliance, 400, partitions=80)
    time.sleep(2)
    begin, start = {broker: sum(requests(broker).values()) for broker in (upstream, downstream)}, time.monotonic()
    time.sleep(5)
    for broker, most in ((upstream, 20), (downstream, 12)):
        rate = (sum(requests(broker).values()) - begin[broker]) / (time.monotonic() - start)
        assert rate < most, f"{rate} requests per second to {broker.name}: {requests(broker)}"
    write(upstream, 10, "topic-39", seed=7)
    wait_copied(appliance, 410, partitions=80, seconds=5)


def requests(broker):
    return json.loads(broker.control("stats"))


# ----------------------------------------------------------------------------------------------------------------------
# The status page


class Page(html.parser.HTMLParser):
    """Refuses what does not nest; collects tags, attributes and the text of table rows."""

    OPEN_ENDED = {"meta", "br", "th"}

    def __init__(self, text):
        super().__init__()
        self.stack, self.tags, self.attributes, self.rows, self.text = [], [], [], [], ""
        self.feed(text)
        self.close()
        assert self.stack == [], self.stack

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")
        if tag not in self.OPEN_ENDED:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack and self.stack.pop() == tag, (tag, self.stack)

    def handle_data(self, data):
        if "td" in self.stack:
            self.rows[-1][-1] += data
        elif "style" not in self.stack:
            self.text += data


def page_of(appliance):
    with urllib.request.urlopen(metrics_address(appliance) + "/", timeout=10) as reply:
        return Page(reply.read().decode()), reply.headers


def test_status_page(lab):
    hostile = '<script>alert("1")</script>&amp;\''
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.8.0")
    create_topic(upstream, partitions=2)
    write(upstream, 100)
    create_topic(upstream, hostile)
    write(upstream, 10, hostile)
    appliance = lab.appliance(upstream, downstream).start()
    wait_copied(appliance, 110, partitions=3)
    assert verb(lab, appliance, "pause", f"{STREAM}/{TOPIC}/1").returncode == 0
    page, headers = wait_until("the event is on it", lambda: (found := page_of(appliance)) and any(len(row) == 5 and row[1] == "pause" for row in found[0].rows) and found, 20)
    assert headers["Content-Security-Policy"].startswith("default-src 'none'") and headers["Cache-Control"] == "no-store"
    states = {row[0]: row[1] for row in page.rows if len(row) == 9}
    assert states == {f"{STREAM}/{TOPIC}/0": "caught up", f"{STREAM}/{TOPIC}/1": "paused", f"{STREAM}/{hostile}/0": "caught up"}, states
    assert [row for row in page.rows if len(row) == 9][0][0] == f"{STREAM}/{TOPIC}/1", "what needs attention stands first"
    assert any(len(row) == 5 and row[1] == "pause" and row[2] == f"{STREAM}/{TOPIC}/1" for row in page.rows), page.rows
    assert "running" in page.text and "0 rows, none open" in page.text and "iggy:***@" in page.text, page.text
    assert not set(page.tags) & {"script", "a", "form", "input", "button", "img", "iframe", "link", "object"}, set(page.tags)
    assert {name for name, _ in page.attributes} <= {"lang", "charset", "name", "content", "http-equiv", "class"}
    assert any(name == "content" and "width=device-width" in value for name, value in page.attributes), "readable on a phone"
    for method in ("POST", "PUT", "DELETE"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(metrics_address(appliance) + "/", data=b"x", method=method), timeout=10)
        assert refused.value.code == 405


def test_status_page_shows_a_fault_and_its_open_gap(lab):
    upstream, downstream, appliance = pair(lab, "0.8.0", "0.9.0", messages=100, expiry=3600)
    text = fetch(metrics_address(appliance) + "/metrics")[1]
    where = {"stream": STREAM, "topic": TOPIC, "partition": "0"}
    assert sample(text, "iggy_replicate_retention_left_seconds", **where) == 3600
    assert sample(text, "iggy_replicate_upstream_expiry_seconds", **where) == 3600
    assert sample(text, "iggy_replicate_state_free_bytes") > 0
    appliance.stop()
    write(upstream, 100, seed=7)
    upstream.control(f"trim {STREAM} {TOPIC} 0 before=150")
    appliance.start()
    wait_fault(appliance, "unknown_gap", ["accept", "retry"])  # nothing can have expired within the hour
    wait_until("the gap is counted", lambda: sample(fetch(metrics_address(appliance) + "/metrics")[1], "iggy_replicate_open_gaps", **where) == 1, 20)
    page, _ = page_of(appliance)
    assert any(len(row) == 9 and row[1] == "fault" and "iggy-replicate resolve" in row[8] for row in page.rows), page.rows
    assert any(len(row) == 6 and row[2] == "[100, 150)" and row[4] == "open" for row in page.rows), page.rows
    resolve(appliance, "accept")
    wait_until("it is accepted", lambda: sample(fetch(metrics_address(appliance) + "/metrics")[1], "iggy_replicate_open_gaps", **where) == 0, 20)

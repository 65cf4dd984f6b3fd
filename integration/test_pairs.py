"""100,000 messages across every pair of dialects: equal in id, origin time, header bytes, payload, partition and order.

4 partitions, about half a gigabyte: 90 % up to 2 KB, 9.9 % up to 64 KB, 100 messages of 0.9 to 1 MB; header blocks with
every kind of value, 3 % that do not parse; 3 % without id; origin times of the producer.
"""

import pytest

from harness import has_real, is_legacy

COUNT = 100_000
SEED = 59  # with it, exactly 100 messages are big

PAIRS = [
    ("0.8.0", "0.8.0"),
    ("0.9.0", "0.9.0-edge.5"),
    ("0.8.0", "0.9.0"),
    ("0.9.0-edge.5", "0.8.0"),
    ("real-0.8", "real-0.8"),
    ("real-0.9", "real-0.9"),
    ("real-0.8", "real-0.9"),
    ("real-0.9", "real-0.8"),
]


@pytest.mark.parametrize("source, target", [pair for pair in PAIRS if has_real(*pair)])
def test_every_message_arrives_as_it_was(lab, source, target):
    upstream, downstream = lab.broker("upstream", source), lab.broker("downstream", target)
    writer = lab.writer(upstream)
    appliance = lab.appliance(upstream, downstream, read_timeout="10s")

    # The first half waits as a backlog, the second one arrives while that is copied.
    common = {"size": "profile:mixed", "headers": "garbage:3", "ids": "zero:3", "origin": "1700000000000000+1000"}
    writer.start(COUNT // 2, seed=SEED, batch=250, **common)
    assert writer.wait(120) == 0
    appliance.start()
    writer.start(COUNT // 2, seed=SEED, batch=250, first_seq=COUNT // 8, **common)
    assert writer.wait(120) == 0
    appliance.wait_caught_up(upstream, seconds=120)
    assert appliance.stop() == 0

    written = writer.journal()
    assert [len(log) for log in written] == [COUNT // 4] * 4
    sizes = [int(line.split()[3]) for line in open(writer.journal_path)]
    assert sum(size >= 900_000 for size in sizes) == 100
    # The upstream serves what was written, and the downstream what the upstream serves. A 0.8 server gives messages
    # without id a random one; the link mints theirs before it sends them there.
    if not is_legacy(source):
        assert [[message.digest for message in log] for log in upstream.read()] == written
    lenient = ["--ignore-zero-ids"] if is_legacy(target) else []
    assert lab.compare(upstream, downstream, *lenient)["equal"] == str(COUNT)
    if lenient:
        assert all(int(message.id, 16) != 0 for log in downstream.read() for message in log)

"""Cases from the field that no other file has; docs/TESTING.md says which case is where."""

import pytest

import harness
from harness import STREAM, TOPIC, wait_until
from steps import *

MEBIBYTE = 1 << 20


@pytest.mark.parametrize("source, target", [("0.8.0", "0.9.0"), ("0.9.0", "0.8.0")])
def test_memory_with_a_thousand_partitions(lab, source, target):
    """The budget, 64 MiB for itself and 32 KiB for each partition, while all of them have work at once."""
    upstream, downstream = lab.broker("upstream", source), lab.broker("downstream", target)
    create_topic(upstream, partitions=1000)
    write(upstream, 20_000, batch=20, size=1000)
    appliance = lab.appliance(upstream, downstream, budget_bytes="32MiB", batch_bytes="1MiB").start()
    wait_copied(appliance, 20_000, 1000, 60)
    most = appliance.memory("VmHWM")
    assert most < 32 * MEBIBYTE + 64 * MEBIBYTE + 1000 * 32 * 1024, f"{most / MEBIBYTE} MiB"
    assert appliance.descriptors() < 200, "connections do not grow with partitions"
    assert [digests(log) for log in read(downstream)] == [digests(log) for log in read(upstream)]

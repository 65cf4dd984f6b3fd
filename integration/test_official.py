"""The official Python clients at both ends of a link: one writes, the link copies, the other reads the other side."""

import json
import os
import subprocess

import pytest

from harness import LOAD
from steps import wait_copied

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "official")
VENVS = os.path.join(os.path.dirname(os.environ["ITEST_BIN"]), "official")


def official(version, verb, broker, *words):
    """Runs one of the official clients against a broker; what it printed."""
    venv = os.path.join(VENVS, f"venv-{version}")
    script = os.path.join(HERE, f"through_{version[:3].replace('.', '_')}.py")
    subprocess.run([os.path.join(HERE, "setup_venv.sh"), venv, version], check=True, timeout=300)
    done = subprocess.run([os.path.join(venv, "bin", "python"), script, verb, broker.url, *map(str, words)], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, f"{version} {verb}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("source, target", [("0.8.0", "0.9.0"), ("0.9.0", "0.8.0"), ("0.8.0", "0.8.0"), ("0.9.0", "0.9.0")])
def test_official_clients_write_and_read_through_a_link(lab, source, target):
    upstream = lab.broker("upstream", source)
    downstream = lab.broker("downstream", target)
    official(source, "write", upstream)
    appliance = lab.appliance(upstream, downstream, topics="official/*").start()
    wait_copied(appliance, 300, 2)
    here = json.loads(official(source, "read", upstream))
    there = json.loads(official(target, "read", downstream))
    assert [(m["id"], m["payload"]) for m in there] == [(m["id"], m["payload"]) for m in here]
    assert [m["payload"] for m in there] == [f"from {source[:3]} {i} \u2713" for i in range(300)]
    if "headers" in here[0] and "headers" in there[0]:
        assert [m["headers"] for m in there] == [16 if i % 10 == 0 else 0 for i in range(300)]


@pytest.mark.parametrize("target, count", [("0.9.0", 542), ("0.8.0", 542), ("0.9.0", 100_000)])
def test_typed_headers_survive_kills_and_three_more_messages(lab, target, count):
    """Ids, headers and payloads of the official client, byte by byte, and none twice, whatever is killed when."""
    upstream = lab.broker("upstream", "0.9.0")
    downstream = lab.broker("downstream", target)
    official("0.9.0", "write", upstream, count)
    appliance = lab.appliance(upstream, downstream, topics="official/*").start()
    for _ in range(8):
        lab.moment(0.02, 0.3)
        appliance.kill()
        appliance.start()
    wait_copied(appliance, count, 2)
    appliance.kill()
    official("0.9.0", "write", upstream, 3, count)
    appliance.start()
    wait_copied(appliance, count + 3, 2)
    assert all(row["counters"]["duplicates"] == "0" for row in appliance.partitions()) and appliance.gaps() == []
    sides = [f"--a={upstream.url}", f"--b={downstream.url}", "--stream=official", "--topic=topic"]
    compared = lab.call([LOAD, "compare", *sides])
    assert compared.returncode == 0 and f"equal={count + 3} " in compared.stdout, compared.stdout
    there = json.loads(official(target, "read", downstream, count + 3))
    assert [(int(m["id"]), m["payload"]) for m in there] == [(2**127 + i, f"from 0.9 {i} \u2713") for i in range(count + 3)]
    if target == "0.9.0":  # its client shows headers, and its script has compared their kinds and values
        assert [m["headers"] for m in there] == [16 if i % 10 == 0 else 0 for i in range(count + 3)]

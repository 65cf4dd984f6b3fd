#!/usr/bin/env python3
"""What a link costs while nothing happens: its CPU and memory, and the requests per second that it sends to each side.

Every layout is the same number of partitions in another shape. All of them hold a few messages and are caught up; then
nobody writes for --seconds. Afterwards one message into the last topic shows how soon it is noticed: the time until its
send has come downstream, as that broker counts it, asked every 2 ms.

Brokers are sandboxes, in memory (test brokers, not Apache Iggy).
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import harness  # noqa: E402


def load(broker, *words):
    done = subprocess.run([harness.LOAD, words[0], "--url", broker.url, *map(str, words[1:])], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def requests(broker):
    return json.loads(broker.control("stats"))


def per_second(before, after, seconds):
    return {name: round((count - before.get(name, 0)) / seconds, 1) for name, count in after.items() if count > before.get(name, 0)}


def fill(broker, topics, partitions):
    for number in range(topics):
        load(broker, "manage", "create-topic", "idle", f"topic-{number:04}", "--partitions", partitions)


def append(broker, topic, partition, count):
    broker.control(f"append idle topic-{topic:04} {partition} {count}")


def measure(version, topics, partitions, arguments):
    lab = harness.Lab(f"idle-{topics}x{partitions}")
    try:
        upstream, downstream = (harness.Sandbox(lab, name, version).start() for name in ("upstream", "downstream"))
        fill(upstream, topics, partitions)
        for topic in range(topics):
            append(upstream, topic, 0, 3)
        appliance = harness.Appliance(lab, "appliance", upstream, downstream, topics="idle/*", read_timeout="30s", connect_timeout="5s",
                                      poll_interval=arguments.poll_interval, commit_interval="100ms", reconcile_interval="5s")
        started = time.monotonic()
        appliance.start()

        def caught_up():
            rows = appliance.partitions()
            return len(rows) == topics * partitions and all(row["phase"] == "PHASE_CAUGHT_UP" for row in rows)

        harness.wait_until("everything is caught up", caught_up, 900, every=3)
        caught_up_after = time.monotonic() - started
        time.sleep(3)
        before = requests(upstream), requests(downstream), appliance.cpu_seconds(), time.monotonic()
        if arguments.perf:
            subprocess.run(["perf", "record", "-q", "-F", "499", "-g", "-o", arguments.perf, "-p", str(appliance.child.pid), "--", "sleep", str(arguments.seconds)],
                           check=False)
        else:
            time.sleep(arguments.seconds)
        seconds = time.monotonic() - before[3]
        cpu = appliance.cpu_seconds() - before[2]
        ups, downs = per_second(before[0], requests(upstream), seconds), per_second(before[1], requests(downstream), seconds)
        waited = []
        for _ in range(arguments.pokes):
            time.sleep(1.5)
            sent = requests(downstream).get("send_messages", 0)
            at = time.monotonic()
            append(upstream, topics - 1, partitions - 1, 1)
            while requests(downstream).get("send_messages", 0) == sent:
                time.sleep(0.002)
            waited.append((time.monotonic() - at) * 1000)
        return {"layout": f"{topics} topics of {partitions}", "server": version, "cpu_percent": round(cpu / seconds * 100, 2),
                "upstream_per_second": ups, "downstream_per_second": downs, "rss_mib": round(appliance.memory() / 2**20, 1),
                "peak_mib": round(appliance.memory("VmHWM") / 2**20, 1), "seconds_until_caught_up": round(caught_up_after, 1),
                "noticed_ms": round(statistics.median(waited)) if waited else None}
    finally:
        lab.close(failed=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", nargs="+", default=["1x1000", "10x100", "1000x1"], help="TOPICSxPARTITIONS")
    parser.add_argument("--servers", nargs="+", default=["0.8.0", "0.9.0-edge.5"])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--poll-interval", default="100ms")
    parser.add_argument("--pokes", type=int, default=5)
    parser.add_argument("--perf", help="write a profile of the idle time there")
    arguments = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {harness.BIN}")
    for layout in arguments.layouts:
        for server in arguments.servers:
            topics, partitions = map(int, layout.split("x"))
            print(json.dumps(measure(server, topics, partitions, arguments)), flush=True)


if __name__ == "__main__":
    main()

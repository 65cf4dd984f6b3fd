#!/usr/bin/env python3
"""Measures the appliance beside its limits: `make bench`.

Each figure stands beside a ceiling that is measured in the same round with the same servers on the same cores: a reader of
the upstream and a writer to the downstream at once (`iggy-limits both`; the slower half counts), and the CPU seconds per GB
of a plain read/write relay. Every round ends with a comparison of both sides, message by message. What is printed is the
median and the spread (lowest to highest) of the rounds, and the median of each round's ratio: on a shared machine absolute
numbers wander, ratios less so.

Servers are sandboxes (test brokers, not Apache Iggy), or with IGGY_SERVER_08 / IGGY_SERVER_09 the real ones.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import harness  # noqa: E402

STREAM, SOURCE, TARGET = "bench", "backlog", "ceiling"
LIMITS = Path(harness.BIN) / "iggy-limits"
VERSIONS = {"0.8": "0.8.0", "0.9": "0.9.0-edge.5"}


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def timed(*words):
    """Wall and CPU seconds, and the peak memory in MiB, of one child."""
    start = time.monotonic()
    child = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"bench: {' '.join(map(str, words))} ended with {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def server(lab, name, version):
    real = f"real-{version}"
    if os.environ.get(harness.REAL[real]):
        return harness.RealServer(lab, name, real).start()
    return harness.Sandbox(lab, name, VERSIONS[version]).start()


def create_topic(broker, topic, partitions):
    run(harness.LOAD, "manage", "--url", broker.url, "create-topic", STREAM, topic, "--partitions", partitions)


def drain(lab, versions, size, partitions, total_bytes, rounds, relay):
    """A backlog, copied to its end, `rounds` times; each time into a fresh downstream."""
    count = max(partitions, total_bytes // size)
    upstream = server(lab, "upstream", versions[0])
    create_topic(upstream, SOURCE, partitions)
    batch = max(1, min(1000, 1_000_000 // size))
    run(harness.LOAD, "write", "--url", upstream.url, "--stream", STREAM, "--topic", SOURCE, f"--count={count}", f"--size={size}", f"--batch={batch}")
    gigabytes = count * size / 1e9
    samples = []
    for number in range(rounds):
        downstream = server(lab, f"downstream-{number}", versions[1])
        create_topic(downstream, TARGET, partitions)
        limit = json.loads(run(LIMITS, "both", "--upstream", upstream.url, "--downstream", downstream.url, "--stream", STREAM, "--topic", SOURCE, "--target", TARGET, f"--size={size}"))
        ceiling = min(limit["read_bytes"] / limit["read_seconds"], limit["written_bytes"] / limit["written_seconds"]) / 1e6
        state = lab.folder / f"state-{number}.db"
        wall, cpu, memory = timed(
            harness.REPLICATE, "run", "--until-caught-up", f"--upstream={upstream.url}", f"--downstream={downstream.url}",
            f"--topics={STREAM}/{SOURCE}", f"--state={state}", "--admin-address=127.0.0.1:0", "--metrics-address=off",
        )
        run(harness.LOAD, "compare", "--a", upstream.url, "--b", downstream.url, "--stream", STREAM, "--topic", SOURCE)
        downstream.kill()
        samples.append({"mb_per_second": gigabytes * 1e3 / wall, "ceiling_mb_per_second": ceiling, "ratio": gigabytes * 1e3 / wall / ceiling,
                        "cpu_seconds_per_gb": cpu / gigabytes, "nanoseconds_per_message": (cpu / gigabytes - relay) * gigabytes * 1e9 / count,
                        "memory_mib": memory})
    upstream.kill()
    return {"what": "drain", "from": versions[0], "to": versions[1], "size": size, "partitions": partitions, "messages": count,
            "relay_cpu_seconds_per_gb": relay, "samples": samples,
            "median": {key: statistics.median(sample[key] for sample in samples) for key in samples[0]},
            "spread": {key: [min(sample[key] for sample in samples), max(sample[key] for sample in samples)] for key in samples[0]}}


def table(results):
    lines = ["| servers | message | partitions | copied MB/s (spread) | ceiling MB/s | ratio | CPU s/GB | relay CPU s/GB | ns/message above it | memory MiB |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for result in results:
        median, spread = result["median"], result["spread"]["mb_per_second"]
        lines.append(
            f"| {result['from']} → {result['to']} | {result['size']} B | {result['partitions']} "
            f"| {median['mb_per_second']:.0f} ({spread[0]:.0f}–{spread[1]:.0f}) | {median['ceiling_mb_per_second']:.0f} | {median['ratio']:.2f} "
            f"| {median['cpu_seconds_per_gb']:.2f} | {result['relay_cpu_seconds_per_gb']:.2f} | {median['nanoseconds_per_message']:.0f} | {median['memory_mib']:.0f} |")
    return "\n".join(lines)


def plot(results):
    """Bars of copied MB/s in front of the ceiling, as SVG."""
    width, row = 900, 26
    most = max(max(result["median"]["ceiling_mb_per_second"], result["median"]["mb_per_second"]) for result in results)
    height = row * len(results) + 60
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             '<text x="10" y="20">Drain of a backlog, MB/s of payload: copied (dark) and the ceiling of the same round (light)</text>']
    for index, result in enumerate(results):
        top = 36 + index * row
        scale = (width - 330) / most
        ceiling, copied = result["median"]["ceiling_mb_per_second"] * scale, result["median"]["mb_per_second"] * scale
        label = f"{result['from']} → {result['to']}, {result['size']} B, {result['partitions']} partitions"
        parts += [f'<text x="10" y="{top + 14}">{label}</text>',
                  f'<rect x="250" y="{top}" width="{ceiling:.1f}" height="18" fill="#c9d8ea"/>',
                  f'<rect x="250" y="{top + 4}" width="{copied:.1f}" height="10" fill="#1f5a9c"/>',
                  f'<text x="{255 + max(ceiling, copied):.1f}" y="{top + 14}">{result["median"]["mb_per_second"]:.0f}</text>']
    return "\n".join(parts + ["</svg>"]) + "\n"


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return {"cpu": model.group(1) if model else platform.machine(), "cores": os.cpu_count(), "memory_mib": int(memory.group(1)) // 1024,
            "kernel": platform.release(), "replicate": run(harness.REPLICATE, "--version").strip(),
            "servers": {version: os.environ.get(harness.REAL[f"real-{version}"]) and "real" or f"sandbox {VERSIONS[version]}" for version in VERSIONS}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bytes", type=int, default=400_000_000, help="payload of each backlog")
    parser.add_argument("--pairs", nargs="+", default=["0.8-0.8", "0.9-0.9", "0.8-0.9", "0.9-0.8"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 1000, 65536])
    parser.add_argument("--partitions", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--out", type=Path, default=Path("bench"), help="folder for bench.json and bench.svg")
    arguments = parser.parse_args()
    about = machine()
    print(json.dumps(about, indent=2))
    results = []
    for pair in arguments.pairs:
        for size in arguments.sizes:
            for partitions in arguments.partitions:
                relay_run = json.loads(run(LIMITS, "relay", "--bytes", 1_000_000_000))
                relay = relay_run["cpu_seconds"] / relay_run["bytes"] * 1e9
                lab = harness.Lab(f"bench-{pair}-{size}-{partitions}")
                try:
                    total = arguments.bytes if size > 100 else arguments.bytes // 4
                    results.append(drain(lab, pair.split("-"), size, partitions, total, arguments.rounds, relay))
                finally:
                    lab.close(failed=False)
                print(table(results[-1:]).splitlines()[-1], flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "bench.json").write_text(json.dumps({"machine": about, "settings": vars(arguments) | {"out": str(arguments.out)}, "results": results}, indent=2) + "\n")
    (arguments.out / "bench.svg").write_text(plot(results))
    print("\n" + table(results))
    print(f"\n{arguments.out}/bench.json, {arguments.out}/bench.svg")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A link under a load that grows and shrinks while everything around it fails: `make soak`, not part of the tests.

Both crossings at once, each with its own brokers, writer and link, for SOAK_MINUTES (30). Every few seconds one of: a kill of
the link, connections cut, answers lost, a cut or a black hole of up to 40 s, delay and loss, a broker or the link that stands
still, a broker that restarts. One link is also killed and stopped; the process of the other lives through all of it. After
each round all is quiet until both are caught up; then memory and descriptors are measured. In the end: equal sides, no fault,
no gap, no duplicate; the least memory and descriptors of the last cycle of loads not above those of the first.
"""

import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402
from harness import faults_of, wait_until  # noqa: E402

MINUTES = float(os.environ.get("SOAK_MINUTES", "30"))
RATES = [50, 300, 1000, 2000, 1000, 300]
MEBIBYTE = 1 << 20
AROUND = ["cut", "swallow", "refuse", "black_hole", "half_open", "loss", "freeze_broker", "freeze", "restart"]


class Link:
    def __init__(self, lab, name, source, target, kinds):
        self.lab, self.name, self.kinds = lab, name, kinds
        self.upstream = harness.Sandbox(lab, f"{name}-upstream", source, disk=True).start()
        self.downstream = harness.Sandbox(lab, f"{name}-downstream", target, disk=True).start()
        self.proxies = {"upstream": lab.proxy(self.upstream), "downstream": lab.proxy(self.downstream)}
        self.appliance = harness.Appliance(lab, f"{name}-link", self.upstream, self.downstream, budget_bytes="64MiB")
        for side, proxy in self.proxies.items():
            self.appliance.settings[side] = f"iggy://iggy:iggy@127.0.0.1:{proxy.port}"
        self.appliance.start()
        self.writer = harness.Writer(lab, f"{name}-writer", self.upstream)
        self.written = 0
        self.faults = {}
        self.samples = []  # (minute, resident bytes, descriptors, messages upstream)

    def write(self, rate):
        if self.writer.running():
            self.writer.stop()
        self.written = self.sequence()
        self.writer.start(10**9, rate=rate, batch=max(1, rate // 50), size="50-2000", headers="kinds", first_seq=self.written)

    def sequence(self):
        """The next free number: the journal's last lines have the highest."""
        if not self.writer.journal_path.exists():
            return 0
        with open(self.writer.journal_path, "rb") as journal:
            journal.seek(max(0, journal.seek(0, os.SEEK_END) - 65536))
            words = [line.split() for line in journal.read().decode().splitlines()[1:]]
        numbers = [int(line[-4]) for line in words if len(line) >= 5]
        return max(numbers, default=self.written) + 4 * 1000

    def mishap(self):
        side = self.lab.random.choice(["upstream", "downstream"])
        proxy, broker = self.proxies[side], {"upstream": self.upstream, "downstream": self.downstream}[side]
        moment = lambda shortest, longest: time.sleep(self.lab.random.uniform(shortest, longest))  # noqa: E731
        kind = self.lab.random.choice(self.kinds)
        if kind == "kill":
            self.appliance.kill()
            moment(0, 1)
            self.appliance.start()
        elif kind == "stop":
            assert self.appliance.stop() == 0
            self.appliance.start()
        elif kind == "cut":
            proxy.cut_all()
        elif kind == "swallow":
            self.proxies["downstream"].swallow(self.lab.random.randrange(1, 4), 2000)
        elif kind in ("refuse", "black_hole"):
            getattr(proxy, kind)()
            moment(1, self.lab.random.choice([3, 10, 40]))
            proxy.heal()
        elif kind == "half_open":
            proxy.half_open()
        elif kind == "loss":
            proxy.delay, proxy.loss = 0.05, 0.01
            moment(3, 10)
            proxy.delay = proxy.loss = 0
        elif kind == "freeze_broker":
            broker.freeze()
            moment(1, 6)
            broker.thaw()
        elif kind == "freeze":
            self.appliance.freeze()
            moment(1, 6)
            self.appliance.thaw()
        else:
            assert broker.stop() == 0
            moment(0, 2)
            broker.start()
        self.faults[kind] = self.faults.get(kind, 0) + 1

    def measure(self, minute):
        """Nothing is written any more."""
        self.appliance.wait_caught_up(self.upstream, 300)
        assert faults_of(self.appliance.partitions()) == {}
        messages = sum(log[-1].offset + 1 if log else 0 for log in self.upstream.read())
        sample = (minute, self.appliance.memory(), self.appliance.descriptors(), messages)
        self.samples.append(sample)
        print(f"{minute:5.1f} min  {self.name}  {sample[1] / MEBIBYTE:6.1f} MiB  {sample[2]:4d} descriptors  {messages:9d} messages", flush=True)

    def finish(self):
        self.writer.stop()
        self.appliance.wait_caught_up(self.upstream, 300)
        assert faults_of(self.appliance.partitions()) == {}
        assert self.appliance.events("fault") == []
        assert [gap for gap in self.appliance.gaps() if gap["cause"] != "hole"] == []
        compared = self.lab.compare(self.upstream, self.downstream)
        first, last = self.samples[: len(RATES)], self.samples[-len(RATES) :]
        if len(self.samples) >= 2 * len(RATES):
            for what, index, slack in (("memory", 1, 24 * MEBIBYTE), ("descriptors", 2, 4)):
                # The least of each cycle: a backlog leaves its buffers for a while, a leak never goes.
                before, now = min(sample[index] for sample in first), min(sample[index] for sample in last)
                assert now <= before + slack, f"{what} grows: {before} in the first cycle, {now} in the last"
        return compared


def main():
    lab = harness.Lab("soak")
    done = False
    try:
        links = [
            Link(lab, "8-to-9", "0.8.0", "0.9.0", AROUND),
            Link(lab, "9-to-8", "0.9.0", "0.8.0", [*AROUND, "kill", "stop"]),
        ]
        begin = time.monotonic()
        end = begin + MINUTES * 60
        round_ = 0
        while time.monotonic() < end:
            for link in links:
                link.write(RATES[round_ % len(RATES)])
            calm_at = min(end, time.monotonic() + 30)
            while time.monotonic() < calm_at:
                time.sleep(lab.random.uniform(0.5, 4))
                lab.random.choice(links).mishap()
            for link in links:
                link.writer.stop()
            for link in links:
                link.measure((time.monotonic() - begin) / 60)
            round_ += 1
        print(f"\n{'link':8} {'messages':>10} {'missing':>8} {'extra':>6} {'duplicates':>10} {'MiB at most':>12} {'descriptors':>12}  mishaps")
        for link in links:
            compared = link.finish()
            print(
                f"{link.name:8} {compared['equal']:>10} {compared['missing']:>8} {compared['extra']:>6} {compared['duplicates']:>10} "
                f"{max(s[1] for s in link.samples) / MEBIBYTE:12.1f} {max(s[2] for s in link.samples):12d}  "
                + ", ".join(f"{count} {kind}" for kind, count in sorted(link.faults.items()))
            )
            assert link.appliance.stop() == 0
        done = True
    finally:
        lab.close(failed=not done)


if __name__ == "__main__":
    main()

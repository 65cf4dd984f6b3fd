"""Real processes for the tests of this folder: brokers, writers and the appliance.

A Lab owns a temporary folder and every process that was started in it. It kills only those, and keeps the folder when the
test failed. Conditions are waited for by asking, with a deadline; nothing sleeps and hopes. Several tests may run at once:
what listens has a port that no other test takes, also while it is down.

Environment:
  ITEST_BIN          folder with iggy-replicate, iggy-sandbox, iggy-load (default: build/bin)
  ITEST_SEED         replays the random choices of a failed test
  ITEST_SLOWER       multiplies every deadline, for programs that are slower than optimised ones (default: 1)
  IGGY_SERVER_08/09  real iggy-server binaries; the tests then run against them as well
"""

import ctypes
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from proxy import Proxy

SOURCES = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("ITEST_BIN", SOURCES / "build/bin"))
REPLICATE, SANDBOX, LOAD = (str(BIN / name) for name in ("iggy-replicate", "iggy-sandbox", "iggy-load"))
KILL_SHIM = BIN / "kill_shim.so"
# What a program says that was built with sanitizers and did something wrong. Its exit code may be one that a test wants.
SANITIZER_REPORT = re.compile(r"ERROR: \w+Sanitizer|: runtime error: ")
SLOWER = float(os.environ.get("ITEST_SLOWER") or 1)
REAL = {"real-0.8": "IGGY_SERVER_08", "real-0.9": "IGGY_SERVER_09"}
STREAM, TOPIC = "orders", "events"

# Everything that waits, short: a test sees many failures in its minute.
IMPATIENT = {
    "poll-interval": "10ms",
    "commit-interval": "20ms",
    "connect-timeout": "1s",
    "read-timeout": "2s",
    "drain-timeout": "5s",
    "reconcile-interval": "300ms",
    "confirm-for": "400ms",
    "retry-initial-backoff": "50ms",
    "retry-max-backoff": "300ms",
    "fence-timeout": "500ms",
}


def has_real(*kinds):
    """True when every real server among `kinds` has a binary."""
    return all(kind not in REAL or REAL[kind] in os.environ for kind in kinds)


def is_legacy(kind):
    return kind in ("0.8.0", "real-0.8")


class Timeout(AssertionError):
    pass


def wait_until(what, condition, seconds=30, every=0.05):
    """Returns what `condition` returns as soon as that is true. `what` completes "waited 30 s until …"."""
    seconds *= SLOWER
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Timeout(f"waited {seconds:g} s until {what}")
        time.sleep(every)


_reserved = []  # sockets whose names are the claims


def free_port():
    """A port for this process alone, until it ends. It lies below those that the kernel gives to whoever asks for any,
    so that nobody takes it between two lives of a broker; of the tests that run now, each claims a port by a name."""
    while True:
        port = random.SystemRandom().randrange(10000, 32768)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0iggy-itest-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        _reserved.append(claim)
        return port


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Process:
    """A program with a log file. start() and kill() may alternate."""

    def __init__(self, lab, name):
        self.lab, self.name = lab, name
        self.log = lab.folder / f"{name}.log"
        self.child = None
        lab.processes.append(self)

    def spawn(self, arguments, environment=None, stdout=None):
        assert not self.running(), f"{self.name} runs"
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                [str(argument) for argument in arguments],
                stdin=subprocess.DEVNULL,
                stdout=stdout or log,
                stderr=log,
                env={**os.environ, **(environment or {})},
                preexec_fn=_die_with_parent,
            )

    def running(self):
        return self.child is not None and self.child.poll() is None

    def signal(self, number):
        self.child.send_signal(number)

    def wait(self, seconds=30):
        """Exit code; a signal's is negative."""
        seconds *= SLOWER
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Timeout(f"{self.name} still runs after {seconds:g} s") from None

    def kill(self):
        if self.running():
            self.signal(signal.SIGKILL)
            self.child.wait()

    def stop(self, seconds=30):
        self.signal(signal.SIGTERM)
        return self.wait(seconds)

    def cpu_seconds(self):
        words = pathlib.Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, what="VmRSS"):
        """Bytes: VmRSS now, VmHWM at most so far."""
        status = pathlib.Path(f"/proc/{self.child.pid}/status").read_text()
        return int(re.search(rf"^{what}:\s+(\d+) kB", status, re.MULTILINE).group(1)) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def log_since(self, position):
        with open(self.log, "rb") as log:
            log.seek(position)
            return log.read().decode(errors="replace")

    def log_size(self):
        return self.log.stat().st_size if self.log.exists() else 0


class Broker(Process):
    """What both kinds of server have. The port stays the same over restarts."""

    port = 0

    @property
    def url(self):
        return f"iggy://iggy:iggy@127.0.0.1:{self.port}"

    def read(self, topic=TOPIC):
        """Messages per partition: lists of Message, in order. Retried while a server that has just started is not up."""
        out = self.lab.folder / f"{self.name}.read"

        def attempt():
            done = self.lab.call([LOAD, "read", "--url", self.url, "--stream", STREAM, "--topic", topic, "--out", out])
            return done if done.returncode == 0 else None

        done = wait_until(f"{self.name} can be read", attempt)
        partitions = [[] for line in done.stdout.splitlines() if line.startswith("summary ")]
        with open(out) as lines:
            for line in lines:
                message = Message(line)
                partitions[message.partition].append(message)
        return partitions


class Message:
    """A line of `iggy-load read`. `digest` covers everything that has to be equal on both sides. `headers`: bytes."""

    __slots__ = ("partition", "offset", "id", "headers", "digest")

    def __init__(self, line):
        words = line.split()
        self.partition, self.offset, self.id, self.digest = int(words[0]), int(words[1]), words[2], words[6]
        self.headers = int(words[5])


class Sandbox(Broker):
    def __init__(self, lab, name, version, disk=False, options=()):
        super().__init__(lab, name)
        self.version = version
        self.options = list(options)
        if disk:
            self.options += ["--data", lab.folder / f"{name}.data"]
        self.control_port = 0

    def start(self):
        self.port = self.port or free_port()
        ports = self.lab.folder / f"{self.name}.ports"
        ports.unlink(missing_ok=True)
        self.spawn(
            [SANDBOX, "--server", self.version, "--port-file", ports]
            + ["--listen", f"127.0.0.1:{self.port}", "--control", f"127.0.0.1:{self.control_port}"]
            + self.options
        )
        wait_until(f"{self.name} listens", lambda: ports.exists() or not self.running(), 90, every=0.01)
        assert self.running(), f"{self.name} ended: {self.log.read_text()}"
        self.port, self.control_port, *self.other_ports = map(int, ports.read_text().split())
        return self

    def control(self, line):
        """One command of the control port; its answer without "ok"."""
        with socket.create_connection(("127.0.0.1", self.control_port), timeout=10 * SLOWER) as connection:
            connection.sendall(line.encode() + b"\n")
            answer = connection.makefile().readline().strip()
        assert answer.startswith("ok"), f"{line}: {answer}"
        return answer[2:].strip()


class Cluster(Sandbox):
    """A sandbox that presents several nodes, numbered from 1. `url` is the leader's, for tools that follow nobody."""

    def __init__(self, lab, name, version, nodes=3):
        super().__init__(lab, name, version, options=["--nodes", nodes])
        self.leader = 1

    def port_of(self, node):
        return [self.port, *self.other_ports][node - 1]

    @property
    def url(self):
        return f"iggy://iggy:iggy@127.0.0.1:{self.port_of(self.leader)}"

    def url_of(self, *nodes):
        """What the appliance is given: these nodes, in this order."""
        return "iggy://iggy:iggy@" + ",".join(f"127.0.0.1:{self.port_of(node)}" for node in nodes)

    def lead(self, node):
        """Another node leads, and no connection ends. What that node lags behind is lost."""
        self.control(f"leader {node}")
        self.leader = node

    def kill_node(self, node):
        self.control(f"node {node} down")

    def start_node(self, node):
        self.control(f"node {node} up")


class RealServer(Broker):
    def __init__(self, lab, name, kind):
        super().__init__(lab, name)
        self.kind = kind

    def start(self):
        self.port = self.port or free_port()
        environment = {
            "IGGY_SYSTEM_PATH": str(self.lab.folder / f"{self.name}.data"),
            "IGGY_TCP_ADDRESS": f"127.0.0.1:{self.port}",
            "IGGY_HTTP_ENABLED": "false",
            "IGGY_QUIC_ENABLED": "false",
            "IGGY_WEBSOCKET_ENABLED": "false",
            "IGGY_ROOT_USERNAME": "iggy",
            "IGGY_ROOT_PASSWORD": "iggy",
            "IGGY_SYSTEM_SHARDING_CPU_ALLOCATION": "1",
            "IGGY_SYSTEM_MEMORY_POOL_SIZE": "512MiB",
        }
        if self.kind == "real-0.9":
            environment |= {"IGGY_SHARD_RUNTIME_CAPACITY": "256", "IGGY_SYSTEM_SHARDING_PIN_CORES": "false"}
        self.spawn([os.environ[REAL[self.kind]]], environment)
        wait_until(f"{self.name} listens", lambda: self._listens() or not self.running())
        assert self.running(), f"{self.name} ended: {self.log.read_text()[-2000:]}"
        return self

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class Writer(Process):
    """`iggy-load write`: messages in ascending sequence per partition, none of them ever sent twice."""

    def __init__(self, lab, name, broker):
        super().__init__(lab, name)
        self.broker = broker
        self.journal_path = lab.folder / f"{name}.journal"

    def start(self, count, **options):
        flags = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
        self.spawn(
            [LOAD, "write", "--url", self.broker.url, "--stream", STREAM, "--topic", TOPIC, "--create", "--partitions=4"]
            + [f"--count={count}", "--journal", self.journal_path, "--retry"]
            + flags
        )
        return self

    def journal(self):
        """Digests of acknowledged messages per partition, in order."""
        partitions = [[] for _ in range(4)]
        with open(self.journal_path) as lines:
            for line in lines:
                words = line.split()
                if line.endswith("\n") and len(words) == 5:  # not `? …`: of unknown outcome
                    partitions[int(words[0])].append(words[4])
        return partitions


class Appliance(Process):
    """`iggy-replicate run`, and the other verbs against it."""

    def __init__(self, lab, name, upstream, downstream, **settings):
        super().__init__(lab, name)
        self.state = lab.folder / f"{name}.db"
        self.kill_file = lab.folder / f"{name}.kill"
        self.environment = {"LD_PRELOAD": KILL_SHIM, "KILL_SHIM": self.kill_file}
        self.settings = {
            "upstream": upstream.url,
            "downstream": downstream.url,
            "topics": f"{STREAM}/*",
            "state": self.state,
            "admin-address": "127.0.0.1:0",
            "metrics-address": "127.0.0.1:0",
            **IMPATIENT,
            **{key.replace("_", "-"): value for key, value in settings.items()},
        }
        self.admin = ""

    def start(self, *flags):
        begin = self.log_size()
        settings = [f"--{key}={value}" for key, value in self.settings.items()]
        self.spawn([REPLICATE, "run"] + settings + list(flags), self.environment)
        self.begin = begin
        self.admin = ""
        return self

    def kill_at(self, *steps):
        """Dies by itself once these have happened one after the other, from now on: integration/kill_shim."""
        made = self.kill_file.with_suffix(".made")
        made.write_text("".join(step + "\n" for step in steps))
        made.rename(self.kill_file)

    def wait_killed_at_step(self, seconds=20):
        assert self.wait(seconds) == -signal.SIGKILL
        assert "kill_shim: killed at" in self.log_since(self.begin), "something else killed it"
        self.kill_file.unlink()

    def find_admin(self):
        def search():
            for line in self.log_since(self.begin).splitlines():
                if "admin API on " in line:
                    return line.split("admin API on ")[1].strip()
            assert self.running(), f"{self.name} ended: {self.log_since(self.begin)}"

        if not self.admin:
            self.admin = wait_until("the admin API is up", search, every=0.01)
        return self.admin

    def ask(self, verb, *arguments):
        """Parsed JSON of a run-time verb."""
        done = self.lab.call([REPLICATE, verb, "--admin", self.find_admin(), "-o", "json", *arguments])
        assert done.returncode in (0, 1), f"{verb}: {done.returncode} {done.stdout} {done.stderr}"
        return json.loads(done.stdout)

    def partitions(self):
        return self.ask("status").get("partitions", [])

    def events(self, kind=None):
        found = self.ask("events", "-n", "10000").get("events", [])
        return [event for event in found if kind in (None, event["kind"])]

    def gaps(self):
        return self.ask("gaps").get("gaps", [])

    def resolve(self, partition, way):
        name = "{stream}/{topic}/{partition}".format(**partition["id"])
        done = self.lab.call([REPLICATE, "resolve", "--admin", self.find_admin(), name, "--as", way, "--yes"])
        assert done.returncode == 0, f"resolve {name} --as {way}: {done.stdout} {done.stderr}"

    def recorded(self):
        """Partitions as last committed, from the state file: also while the appliance stands still or is dead."""
        done = self.lab.call([REPLICATE, "state", "show", "--state", self.state, "-o", "json"])
        assert done.returncode == 0, f"state show: {done.stdout} {done.stderr}"
        return sorted(json.loads(done.stdout).get("partitions", []), key=lambda row: row["id"]["partition"])

    def wait_caught_up(self, upstream, seconds=60):
        """Until what upstream holds now is committed. Partitions in a fault end it at once."""
        ends = [log[-1].offset + 1 if log else 0 for log in upstream.read()]

        def done():
            rows = self.partitions()
            faults = faults_of(rows)
            assert not faults, f"faults: {faults}"
            return len(rows) == len(ends) and all(
                int(row["committed"]) >= ends[row["id"]["partition"]] and row["phase"] == "PHASE_CAUGHT_UP" for row in rows
            )

        try:
            wait_until("every partition is caught up", done, seconds, every=0.1)
        except Timeout as late:
            rows = [(row["phase"], row["committed"], row["waits_for"]) for row in self.partitions()]
            raise Timeout(f"{late}, upstream ends {ends}: {rows}") from None


def faults_of(partitions):
    return {
        row["id"]["partition"]: "{kind}: {detail}".format(**row["fault"]) for row in partitions if row.get("fault", {}).get("kind")
    }


class Lab:
    def __init__(self, name):
        # Servers keep their data here: short, because socket and path lengths are limited somewhere.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="iggy-itest-"))
        self.processes = []
        self.proxies = []
        self.seed = int(os.environ.get("ITEST_SEED") or random.randrange(1 << 32))
        self.random = random.Random(self.seed)
        # Real servers hash a password for a good part of a second per login, and a kill before it proves little.
        self.pace = 1
        print(f"{name}: ITEST_SEED={self.seed}", flush=True)

    def moment(self, shortest, longest):
        """Lets a random time pass: what happens next happens at a random moment."""
        time.sleep(self.random.uniform(shortest, longest) * self.pace)

    def call(self, arguments, seconds=120):
        done = subprocess.run(
            [str(argument) for argument in arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds * SLOWER
        )
        assert not SANITIZER_REPORT.search(done.stderr), done.stderr
        return done

    def broker(self, name, kind, disk=False, options=()):
        """A running broker: a sandbox of that version, or a real server ("real-0.8", "real-0.9"; always on disk)."""
        if kind in REAL:
            self.pace = 3
            return RealServer(self, name, kind).start()
        return Sandbox(self, name, kind, disk, options).start()

    def cluster(self, name, version, nodes=3):
        return Cluster(self, name, version, nodes).start()

    def appliance(self, upstream, downstream, **settings):
        if self.pace > 1:
            settings = {"connect_timeout": "10s", **settings}
        return Appliance(self, "appliance", upstream, downstream, **settings)

    def proxy(self, broker):
        self.proxies.append(Proxy(broker.port, self.seed, free_port()))
        return self.proxies[-1]

    def writer(self, broker, name="writer"):
        return Writer(self, name, broker)

    def compare(self, a, b, *flags):
        """Fails unless `b` holds what `a` holds: ids, origin times, header bytes, payloads, partitions, order."""
        done = self.call([LOAD, "compare", "--a", a.url, "--b", b.url, "--stream", STREAM, "--topic", TOPIC, *flags])
        assert done.returncode == 0, f"the sides differ:\n{done.stdout}{done.stderr}"
        return dict(word.split("=") for word in done.stdout.splitlines()[-1].split())

    def close(self, failed):
        for process in reversed(self.processes):
            process.kill()
        for proxy in self.proxies:
            proxy.close()
        logs = {process.name: process.log.read_text(errors="replace") for process in self.processes if process.log.exists()}
        reports = [f"{name}: {log[found.start():][:6000]}" for name, log in logs.items() if (found := SANITIZER_REPORT.search(log))]
        if not failed and not reports:
            shutil.rmtree(self.folder)
            return
        print(f"logs and data are kept in {self.folder}")
        for name, log in logs.items():
            print(f"--- {name}, last lines\n" + "\n".join(log.splitlines()[-25:]))
        assert not reports, "\n".join(reports)

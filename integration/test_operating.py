"""What an operator does and sees: commands, checks before a start, secrets, metrics, logs, lag, the admin API."""

import json
import os
import pathlib
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

import harness
from harness import REPLICATE, STREAM, TOPIC, wait_until
from steps import *

VENV = pathlib.Path(os.environ.get("ITEST_GRPC_VENV", harness.SOURCES / "build/venv-grpc"))


# ----------------------------------------------------------------------------------------------------------------------
# Commands


def verb(lab, appliance, *words):
    return lab.call([REPLICATE, words[0], "--admin", appliance.find_admin(), *words[1:]])


def test_pause_and_resume_survive_a_restart(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0", messages=100, partitions=2)
    dry = verb(lab, appliance, "pause", PARTITION, "--dry-run")
    assert dry.returncode == 0 and "Would be done" in dry.stdout and row_of(appliance)["paused"] is False
    assert verb(lab, appliance, "pause", PARTITION).returncode == 0
    wait_row(appliance, "it is paused", lambda row: row["phase"] == "PHASE_PAUSED")
    assert verb(lab, appliance, "pause", PARTITION).returncode == 0, "pausing what is paused is no error"
    write(upstream, 100, seed=7)
    wait_row(appliance, "the other goes on", lambda row: row["committed"] == "100", partition=1)
    for _ in range(2):
        assert row_of(appliance)["committed"] == "50"
        assert [len(log) for log in read(downstream)] == [50, 100]
        assert appliance.stop() == 0
        appliance.start()
        wait_row(appliance, "it is paused after a restart", lambda row: row["phase"] == "PHASE_PAUSED" and row["paused"])
        wait_row(appliance, "the other runs", lambda row: row["phase"] == "PHASE_CAUGHT_UP", partition=1)
    assert verb(lab, appliance, "resume", "*/*").returncode == 0
    wait_copied(appliance, 200, partitions=2)
    appliance.kill()
    appliance.start()
    wait_copied(appliance, 200, partitions=2)
    assert [digests(log) for log in read(upstream)] == [digests(log) for log in read(downstream)]
    assert [event["kind"] for event in appliance.events() if event["kind"] in ("pause", "resume")] == ["pause", "resume"]
    assert all("@" in event["actor"] for event in appliance.events("pause"))


def test_health_is_about_the_process(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.8.0", messages=10)
    assert verb(lab, appliance, "health", "--ready").returncode == 0
    upstream.kill()
    harness.wait_until("it is not ready", lambda: verb(lab, appliance, "health", "--ready").returncode == 1)
    assert "upstream is not connected" in verb(lab, appliance, "health", "--ready").stdout
    assert verb(lab, appliance, "health").returncode == 0, "a dead upstream is no reason to restart us"


def test_commands_refuse_what_makes_no_sense(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.9.0", messages=10)
    for words, code, fact in [
        (("pause", "no/such"), 2, "matches no partition"),
        (("resolve", PARTITION, "--as", "accept", "--yes"), 2, "no fault"),
        (("resolve", "no/such/0"), 2, "no partition"),
        (("resolve", "nonsense"), 2, "nonsense"),
        (("reset", PARTITION, "--to", "5", "--yes"), 2, "pause it first"),
        (("reset", PARTITION, "--to", "5", "--dry-run"), 2, "pause it first"),
        (("status", "no/such"), 2, "matches no partition"),
        (("lag", "no/such"), 2, "matches no partition"),
        (("status", "["), 2, "["),
    ]:
        done = verb(lab, appliance, *words)
        assert done.returncode == code and fact in done.stdout + done.stderr, (words, done)
    assert row_of(appliance)["generation"] == "1"


@pytest.mark.parametrize("to", [40, 80])
def test_reset(lab, to):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.8.0", messages=60)
    assert verb(lab, appliance, "pause", PARTITION).returncode == 0
    write(upstream, 40, seed=7)
    old = digests(read(downstream)[0])
    dry = verb(lab, appliance, "reset", PARTITION, "--to", str(to), "--dry-run")
    assert dry.returncode == 0 and (f"{to} to 60" in dry.stdout if to < 60 else f"60 to {to}" in dry.stdout), dry
    for words, fact in [((), "--yes"), (("--to", "60", "--dry-run"), "60 already"), (("--to", "5000", "--dry-run"), "ends at 100")]:
        refused = verb(lab, appliance, "reset", PARTITION, *(words or ("--to", str(to))))
        assert refused.returncode == 2 and fact in refused.stderr, refused
    assert row_of(appliance)["committed"] == "60"
    assert verb(lab, appliance, "reset", PARTITION, "--to", str(to), "--yes").returncode == 0
    assert row_of(appliance)["generation"] == "2"
    assert verb(lab, appliance, "resume", PARTITION).returncode == 0
    wait_copied(appliance, 100)
    assert_same(downstream, old + digests(read(upstream)[0])[to:])
    wait_event(appliance, "reset", f"from 60 to {to}")
    gaps = appliance.gaps()
    if to > 60:  # "moving it forward leaves messages out, which the ledger records"
        assert [(gap["upstream_begin"], gap["upstream_end"]) for gap in gaps] == [("60", "80")]
        assert row_of(appliance)["counters"]["skipped"] == "20"
    else:
        assert gaps == []


def test_verbs_without_a_link(lab):
    nobody = f"127.0.0.1:{harness.free_port()}"
    for words in (["status"], ["health"], ["lag"], ["gaps"], ["events"], ["pause", "a/b"], ["resolve", "a/b/0"]):
        done = lab.call([REPLICATE, words[0], "--admin", nobody, *words[1:]])
        assert done.returncode == 3 and nobody in done.stderr, (words, done)


def test_every_verb_helps_with_an_example(lab):
    top = lab.call([REPLICATE, "--help"])
    assert top.returncode == 0
    section = top.stdout.lower().split("subcommands:")[1] if "subcommands:" in top.stdout.lower() else top.stdout
    verbs = re.findall(r"^ {2}([a-z]+) {2,}", section, re.MULTILINE)
    assert {"run", "check", "plan", "status", "lag", "pause", "resume", "gaps", "events", "resolve", "reset", "state"} <= set(verbs)
    for name in verbs:
        done = lab.call([REPLICATE, name, "--help"])
        assert done.returncode == 0 and f"  iggy-replicate {name}" in done.stdout.split("Examples:")[-1], name
        assert "Examples:" in done.stdout, name


# ----------------------------------------------------------------------------------------------------------------------
# Before a start


class Listener:
    """A port that answers every connection with fixed bytes, or never."""

    def __init__(self, answer=None):
        self.answer = answer
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.open = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            self.open.append(connection)
            if self.answer is not None:
                try:
                    connection.recv(4096)
                    connection.sendall(self.answer)
                    connection.close()
                except OSError:
                    pass

    def close(self):
        self.server.close()
        for connection in self.open:
            connection.close()


HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request"


@pytest.fixture
def certificate(lab):
    """A certificate authority and a certificate for localhost and 127.0.0.1 from it; another authority beside."""

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, cwd=lab.folder, capture_output=True)

    for name in ("ca", "other"):
        openssl(*f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -keyout {name}.key -out {name}.pem".split())
    openssl(*"req -newkey rsa:2048 -nodes -subj /CN=broker -keyout server.key -out server.csr".split())
    (lab.folder / "names").write_text("subjectAltName=DNS:localhost,DNS:broker.test,IP:127.0.0.1\n")
    openssl(*"x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem".split())
    return lab.folder


def test_check_and_plan_of_a_good_pair(lab):
    upstream, downstream = lab.broker("upstream", "0.8.0"), lab.broker("downstream", "0.9.0")
    create_topic(upstream, partitions=3)
    create_topic(upstream, "audit")
    check = look(lab, "check", upstream.url, downstream.url)
    assert check.returncode == 0 and check.stdout.endswith("\ngo\n"), check.stdout
    for fact in ("0.8.0, speaks legacy", "0.9.0, speaks vsr-0.11", "4 partitions match", "fsync", "ack = memory"):
        assert fact in " ".join(check.stdout.split()), fact
    as_json = look(lab, "check", upstream.url, downstream.url, "-o", "json")
    assert json.loads(as_json.stdout)["go"] is True
    plan = look(lab, "plan", upstream.url, downstream.url, "--rename=orders/* -> dr/*", "--exclude=orders/audit")
    assert plan.returncode == 0, plan
    for fact in ("create stream dr", "create topic dr/events: 3 partitions", "orders/events -> dr/events", "keeps messages for ever"):
        assert fact in " ".join(plan.stdout.split()), plan.stdout
    assert "audit" not in plan.stdout
    state = json.loads(downstream.control("state"))
    assert state["streams"] == [], "neither changes anything"
    assert not (lab.folder / "x.db").exists()


def test_check_and_plan_foresee_a_target_that_is_not_empty(lab):
    upstream, downstream = lab.broker("upstream", "0.8.0"), lab.broker("downstream", "0.9.0")
    for broker in (upstream, downstream):
        create_topic(broker, partitions=2)
        write(broker, 30)
    for name, code in (("check", 1), ("plan", 1)):
        done = look(lab, name, upstream.url, downstream.url)
        assert done.returncode == code, done
        assert "2 of its partitions hold 30 messages" in " ".join(done.stdout.split()), done.stdout
        assert "downstream_not_empty" in done.stdout


FOUND = {  # what stands there: what a tired person must read
    "closed": r"connection refused|nothing listens|nobody listens",
    "silent": r"no answer|did not answer|does not answer|silent|timed? ?-?out",
    "http": r"HTTP",
    "tls": r"TLS",
    "password": r"user|password|credentials",
    "unknown_host": r"host|resolve|name",
}


@pytest.mark.parametrize("what", FOUND)
def test_check_names_what_it_found(lab, what, request):
    good = lab.broker("good", "0.9.0")
    create_topic(good)
    listener = None
    if what == "closed":
        bad = f"iggy://iggy:sEcReT99@127.0.0.1:{harness.free_port()}"
    elif what in ("silent", "http"):
        listener = Listener(HTTP if what == "http" else None)
        bad = f"iggy://iggy:sEcReT99@127.0.0.1:{listener.port}"
    elif what == "tls":
        folder = request.getfixturevalue("certificate")
        broker = lab.broker("bad", "0.9.0", options=["--tls-cert", folder / "server.pem", "--tls-key", folder / "server.key"])
        bad = f"iggy://iggy:sEcReT99@127.0.0.1:{broker.port}"
    elif what == "password":
        bad = f"iggy://iggy:sEcReT99@127.0.0.1:{good.port}"
    else:
        bad = "iggy://iggy:sEcReT99@no-such-host.invalid:8090"
    check = look(lab, "check", good.url, bad)
    assert check.returncode == 1, check
    assert "NO GO" in check.stdout and "FAIL" in check.stdout
    line = " ".join(check.stdout.split("downstream\n")[1].split())
    assert re.search(FOUND[what], line, re.IGNORECASE), line
    plan = look(lab, "plan", good.url, bad)
    assert plan.returncode == 3, plan
    assert re.search(FOUND[what], plan.stderr, re.IGNORECASE), plan.stderr
    for done in (check, plan):
        assert "sEcReT99" not in done.stdout + done.stderr
    if what in ("http", "tls", "password"):  # a daemon that can never start says so at once
        appliance = lab.appliance(good, good)
        appliance.settings["downstream"] = bad
        code, said = run_once(lab, appliance)
        assert code == 3 and re.search(FOUND[what], said, re.IGNORECASE), said
    if listener:
        listener.close()


def test_wrong_configuration_is_told_at_once(lab):
    file = lab.folder / "link.toml"
    file.write_text('[link]\nupstream_url = "iggy://a:b@h:1"\nnonsense = 1\n[copy]\nbatch_bytes = "1KiB"\n[admin]\naddress = "0.0.0.0:8095"\n')
    done = lab.call([REPLICATE, "run", "--config", file])
    assert done.returncode == 2
    for fact in ("link.nonsense", "link.downstream_url", "copy.batch_bytes", "admin.address"):
        assert fact in done.stderr, done.stderr


def test_dead_first_host(lab):
    upstream, downstream = lab.broker("upstream", "0.8.0"), lab.broker("downstream", "0.9.0")
    create_topic(upstream)
    write(upstream, 50)
    silent = Listener()
    appliance = lab.appliance(upstream, downstream)
    appliance.settings["upstream"] = f"iggy://iggy:iggy@127.0.0.1:{harness.free_port()},127.0.0.1:{upstream.port}"
    appliance.settings["downstream"] = f"iggy://iggy:iggy@127.0.0.1:{silent.port},127.0.0.1:{downstream.port}"
    appliance.start()
    wait_copied(appliance, 50)
    assert_same(downstream, digests(read(upstream)[0]))
    silent.close()


# ----------------------------------------------------------------------------------------------------------------------
# TLS, tokens, secrets


@pytest.mark.parametrize("server", ["0.8.0", "0.9.0"])
def test_tls(lab, certificate, server):
    secured = ["--tls-cert", certificate / "server.pem", "--tls-key", certificate / "server.key"]
    upstream, downstream = lab.broker("upstream", server), lab.broker("downstream", server, options=secured)
    create_topic(upstream)
    write(upstream, 50)
    base = f"iggy://iggy:iggy@127.0.0.1:{downstream.port}?tls=true"
    ca = f"&tls_ca_file={certificate}/ca.pem"
    appliance = lab.appliance(upstream, downstream)
    appliance.settings["downstream"] = f"{base}&tls_domain=broker.test{ca}"
    appliance.start()
    wait_copied(appliance, 50)
    assert appliance.stop() == 0
    for url, fact in [
        (f"{base}&tls_ca_file={certificate}/other.pem", "authority|issuer|self-signed|certificate"),
        (f"{base}&tls_domain=other.test{ca}", "other.test"),
        (base, "authority|issuer|self-signed|certificate"),
    ]:
        check = look(lab, "check", upstream.url, url)
        assert check.returncode == 1, (url, check.stdout)
        line = " ".join(check.stdout.split("downstream\n")[1].split())
        assert re.search(fact, line), line


def test_login_with_a_token(lab):
    upstream, downstream = lab.broker("upstream", "0.8.0"), lab.broker("downstream", "0.9.0")
    create_topic(upstream)
    write(upstream, 50)
    tokens = [manage(broker, "create-token", "link") for broker in (upstream, downstream)]
    appliance = lab.appliance(upstream, downstream)
    appliance.settings["upstream"] = f"iggy://{tokens[0]}@127.0.0.1:{upstream.port}"
    appliance.settings["downstream"] = f"iggy://{tokens[1]}@127.0.0.1:{downstream.port}"
    appliance.start()
    wait_copied(appliance, 50)
    assert_same(downstream, digests(read(upstream)[0]))
    assert_no_secret(lab, appliance, tokens)


def metrics_address(appliance):
    return wait_until(
        "metrics are up", lambda: re.search(r"metrics on (http://[^/]+)/", appliance.log_since(appliance.begin).replace("\\", ""))
    ).group(1)


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def assert_no_secret(lab, appliance, secrets):
    told = {
        "metrics": fetch(metrics_address(appliance) + "/metrics")[1],
        "status": verb(lab, appliance, "status", "-o", "json").stdout,
        "settings": verb(lab, appliance, "status", "--settings", "-o", "json").stdout,
        "settings text": verb(lab, appliance, "status", "--settings").stdout,
        "events": verb(lab, appliance, "events", "-o", "json").stdout,
        "state show": lab.call([REPLICATE, "state", "show", "--state", appliance.state]).stdout,
    }
    for path in lab.folder.glob("appliance*"):
        told[path.name] = path.read_bytes().decode("latin-1")
    for secret in secrets:
        for place, text in told.items():
            assert text and secret not in text, f"{place} holds the secret"


def test_secrets_are_told_to_nobody(lab):
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.8.0")
    create_topic(upstream)
    write(upstream, 50)
    rights = "read_servers,manage_streams,read_streams,manage_topics,read_topics,poll_messages,send_messages"
    manage(upstream, "create-user", "reader", "up-pA55:w%rd", f"--rights={rights}")
    manage(downstream, "create-user", "copier", "d0wn-pA55", f"--rights={rights}")
    file = lab.folder / "secret-url"
    file.write_text(f"iggy://copier:d0wn-pA55@127.0.0.1:{downstream.port}\n")
    token = lab.folder / "admin-token"
    token.write_text("adm1n-T0ken\n")
    appliance = lab.appliance(upstream, downstream, log_level="trace", admin_token_file=token)
    appliance.settings["upstream"] = f"iggy://reader:up-pA55%3Aw%25rd@127.0.0.1:{upstream.port}"
    del appliance.settings["downstream"]
    appliance.settings["downstream-file"] = file
    os.environ["IGGY_REPLICATE_ADMIN_TOKEN_FILE"] = str(token)
    try:
        appliance.start()
        wait_copied(appliance, 50)
        upstream.control("cut-all")
        downstream.control("cut-all")
        write(upstream, 50, seed=7)
        wait_copied(appliance, 100)
        assert_no_secret(lab, appliance, ["up-pA55", "d0wn-pA55", "adm1n-T0ken"])
    finally:
        del os.environ["IGGY_REPLICATE_ADMIN_TOKEN_FILE"]
    assert oct(appliance.state.stat().st_mode)[-3:] == "600"


# ----------------------------------------------------------------------------------------------------------------------
# Metrics, health, logs, lag


def sample(text, name, **labels):
    for line in text.splitlines():
        if line.startswith(name + "{" if labels else name + " ") and all(f'{key}="{value}"' in line for key, value in labels.items()):
            return float(line.split()[-1])
    return None


def test_metrics_and_health(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.8.0", messages=100)
    base = metrics_address(appliance)
    status, text = fetch(base + "/metrics")
    assert status == 200
    where = {"stream": STREAM, "topic": TOPIC, "partition": "0"}
    families = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    assert all(name.startswith("iggy_replicate_") for name, _ in families)
    assert all(name.endswith("_total") for name, kind in families if kind == "counter"), families
    lag = [name for name, _ in families if "lag" in name and "messages" in name]
    assert len(lag) == 1 and sample(text, lag[0], **where) == 0
    assert sample(text, "iggy_replicate_copied_messages_total", **where) == 100 or "100" in text
    assert fetch(base + "/healthz") == (200, "ok\n")
    wait_until("it is ready", lambda: fetch(base + "/readyz")[0] == 200)
    assert fetch(base + "/nonsense")[0] == 404
    downstream.kill()
    wait_until("it is not ready", lambda: fetch(base + "/readyz") == (503, "the downstream is not connected\n"))
    assert fetch(base + "/healthz")[0] == 200
    upstream.kill()
    wait_until("lag is unknown, not 0", lambda: sample(fetch(base + "/metrics")[1], lag[0], **where) is None)
    upstream.start()
    create_topic(upstream)


def test_json_logs_parse(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.8.0", messages=0, log_format="json", log_level="debug")
    write(upstream, 100)
    wait_copied(appliance, 100)
    downstream.control(f"append {STREAM} {TOPIC} 0 2")
    write(upstream, 5, seed=7)
    wait_row(appliance, "a fault", lambda row: row.get("fault", {}).get("kind"))
    assert appliance.stop() == 0
    lines = [json.loads(line) for line in appliance.log_since(0).splitlines() if line.startswith("{")]
    assert len(lines) > 5
    for line in lines:
        assert set(line) == {"time", "level", "message"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["time"])
    errors = [line["message"] for line in lines if line["level"] == "error"]
    assert len(errors) == 1 and "FAULT foreign_writer" in errors[0]


@pytest.mark.parametrize("server", ["0.8.0", "0.9.0"])
def test_lag_is_right(lab, server):
    upstream, downstream, appliance = pair(lab, server, server, messages=0)
    batch = 25
    writer = lab.writer(upstream).start(2000, rate=1000, batch=batch)
    assert writer.wait() == 0
    wait_copied(appliance, 2000)
    row = row_of(appliance)
    assert (row["lag"]["messages"], row["lag"]["age_micros"]) == ("0", "0")
    verb(lab, appliance, "pause", PARTITION)
    wait_row(appliance, "it is paused", lambda row: row["phase"] == "PHASE_PAUSED")
    writer.start(500, rate=1000, batch=batch, first_seq=2000)
    assert writer.wait() == 0
    journal = len(writer.journal()[0])
    assert journal == 2500
    # A quiet point: the writer has ended, nothing is copied.
    row = wait_row(appliance, "lag is seen", lambda row: abs(int(row["lag"].get("messages", 0)) - (journal - 2000)) <= batch)
    lag = verb(lab, appliance, "lag", "-o", "json")
    assert lag.returncode == 0
    upstream.kill()
    wait_row(appliance, "it is unknown", lambda row: "messages" not in row.get("lag", {}) and "upstream_end" not in row)
    lag = verb(lab, appliance, "lag")
    assert lag.returncode == 1 and "unknown" in lag.stdout, lag.stdout
    status = verb(lab, appliance, "status")
    assert status.returncode == 1 and "unknown" in status.stdout


# ----------------------------------------------------------------------------------------------------------------------
# The admin API, seen by a client that is not ours


def ask_admin(lab, address, method, *flags):
    return lab.call([VENV / "bin/python", harness.SOURCES / "integration/admin_client.py", address, method, *flags])


@pytest.fixture(scope="session")
def grpc_venv():
    done = subprocess.run([harness.SOURCES / "integration/setup_grpc_venv.sh", VENV], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no gRPC client from PyPI: {done.stderr[-300:]}")


def test_admin_api_by_reflection(lab, grpc_venv):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.8.0", messages=100)
    address = appliance.find_admin()
    services = ask_admin(lab, address, "services").stdout.split()
    assert {"iggy.replicate.admin.v1.Admin", "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} <= set(services)
    link = json.loads(ask_admin(lab, address, "GetLink").stdout)["link"]
    assert link["state"] == "LINK_STATE_RUNNING" and link["totals"]["lag_messages"] == "0"
    listed = json.loads(ask_admin(lab, address, "ListPartitions", json.dumps({"glob": "orders/*"})).stdout)
    assert [row["committed"] for row in listed["partitions"]] == ["100"]
    assert json.loads(ask_admin(lab, address, "WatchPartitions").stdout)["partitions"][0]["committed"] == "100"
    refused = ask_admin(lab, address, "Pause", json.dumps({"glob": "no/such", "actor": "me@here"}))
    assert refused.returncode == 1 and refused.stdout.startswith("INVALID_ARGUMENT: ") and "matches no partition" in refused.stdout
    anonymous = ask_admin(lab, address, "Pause", json.dumps({"glob": "orders/*"}))
    assert anonymous.returncode == 1 and "actor" in anonymous.stdout


def test_open_admin_address_needs_protection(lab):
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.9.0")
    code, said = run_once(lab, lab.appliance(upstream, downstream, admin_address="0.0.0.0:0"))
    assert code == 2 and "admin.address" in said and "token" in said and "tls" in said.lower(), said


def test_admin_token(lab, grpc_venv):
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.9.0")
    create_topic(upstream)
    token = lab.folder / "token"
    token.write_text("s3cr3t-bearer\n")
    appliance = lab.appliance(upstream, downstream, admin_address="0.0.0.0:0", admin_token_file=token).start()
    address = "127.0.0.1:" + appliance.find_admin().split(":")[-1]
    without = lab.call([REPLICATE, "status", "--admin", address])
    assert without.returncode != 0 and "token" in without.stderr, without
    wrong = lab.folder / "wrong"
    wrong.write_text("guess\n")
    assert lab.call([REPLICATE, "status", "--admin", address, "--admin-token-file", wrong]).returncode != 0
    right = lab.call([REPLICATE, "events", "--admin", address, "--admin-token-file", token])
    assert right.returncode == 0, right.stderr
    refused = ask_admin(lab, address, "services")
    by_others = ask_admin(lab, address, "GetLink", "--token", "s3cr3t-bearer")
    assert by_others.returncode == 0 or refused.returncode == 1


def test_admin_over_tls(lab, certificate):
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.9.0")
    create_topic(upstream)
    appliance = lab.appliance(
        upstream, downstream, admin_address="0.0.0.0:0", admin_tls_cert=certificate / "server.pem", admin_tls_key=certificate / "server.key"
    ).start()
    address = "localhost:" + appliance.find_admin().split(":")[-1]
    right = lab.call([REPLICATE, "events", "--admin", address, "--admin-ca", certificate / "ca.pem"])
    assert right.returncode == 0, right.stderr
    other = lab.call([REPLICATE, "events", "--admin", address, "--admin-ca", certificate / "other.pem"])
    assert other.returncode == 3, other
    plain = lab.call([REPLICATE, "events", "--admin", address])
    assert plain.returncode == 3, plain

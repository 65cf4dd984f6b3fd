"""Certificates that are wrong, expire or are renewed; what is told to whom; see also test_operating.py (TLS, tokens, secrets in
logs and answers), test_hostile.py and test_state_file.py (modes of files)."""

import os
import re
import signal
import subprocess
import time

import pytest

import harness
from harness import REPLICATE, wait_until
from steps import *

sides = pytest.mark.parametrize("side", ["upstream", "downstream"])


class Authority:
    """A certificate authority in the lab's folder, and the certificates it makes."""

    def __init__(self, lab, name):
        self.folder, self.name = lab.folder, name
        self.openssl(f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -keyout {name}.key -out {name}.pem")
        self.pem = lab.folder / f"{name}.pem"

    def openssl(self, words):
        subprocess.run(["openssl", *words.split()], check=True, cwd=self.folder, capture_output=True)

    def issue(self, name, days=2):
        """Certificate and key for localhost; `days` below 0: it has expired."""
        (self.folder / "names").write_text("subjectAltName=DNS:localhost,DNS:broker.test,IP:127.0.0.1\n")
        self.openssl(f"req -newkey rsa:2048 -nodes -subj /CN=broker -keyout {name}.key -out {name}.csr")
        self.openssl(
            f"x509 -req -in {name}.csr -CA {self.name}.pem -CAkey {self.name}.key -CAcreateserial "
            f"-days {days} -extfile names -out {name}.pem"
        )
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"


def secured(certificate):
    return ["--tls-cert", certificate[0], "--tls-key", certificate[1]]


@sides
def test_each_wrong_certificate_has_its_own_sentence(lab, side):
    ours, other = Authority(lab, "ours"), Authority(lab, "other")
    good, expired = ours.issue("good"), ours.issue("expired", days=-1)
    plain = lab.broker("plain", "0.9.0")
    create_topic(plain)
    brokers = {"good": lab.broker("tls", "0.9.0", options=secured(good)), "expired": lab.broker("old", "0.9.0", options=secured(expired))}
    said = {}
    for what, broker, options in [
        ("wrong authority", "good", f"tls_ca_file={other.pem}"),
        ("wrong name", "good", f"tls_ca_file={ours.pem}&tls_domain=elsewhere.test"),
        ("expired", "expired", f"tls_ca_file={ours.pem}"),
        ("no file", "good", f"tls_ca_file={lab.folder}/none.pem"),
    ]:
        url = f"iggy://iggy:iggy@127.0.0.1:{brokers[broker].port}?tls=true&{options}"
        urls = {"upstream": plain.url, "downstream": plain.url, side: url}
        check = lab.call([REPLICATE, "check", *(f"--{key}={value}" for key, value in urls.items()), f"--state={lab.folder}/x.db"])
        assert check.returncode == 1, (what, check.stdout)
        said[what] = " ".join(check.stdout.split(f"{side}\n")[1].split())
    assert "is not trusted" in said["wrong authority"] and "tls_ca_file" in said["wrong authority"], said
    assert "is not for 'elsewhere.test'" in said["wrong name"] and "tls_domain" in said["wrong name"], said
    assert "has expired" in said["expired"] and "renew it" in said["expired"], said
    assert "none.pem' can't be read" in said["no file"], said


@sides
def test_renewed_certificates_and_authorities_are_used_without_a_restart(lab, side):
    first, second = Authority(lab, "first"), Authority(lab, "second")
    authority = lab.folder / "trusted.pem"
    authority.write_bytes(first.pem.read_bytes())
    upstream, downstream = lab.broker("upstream", "0.8.0", disk=True), lab.broker("downstream", "0.8.0", disk=True)
    create_topic(upstream)
    write(upstream, 50)
    secure = {"upstream": upstream, "downstream": downstream}[side]
    secure.options += secured(first.issue("first-of-all"))
    assert secure.stop() == 0
    secure.start()
    appliance = lab.appliance(upstream, downstream)
    appliance.settings[side] = f"iggy://iggy:iggy@127.0.0.1:{secure.port}?tls=true&tls_ca_file={authority}"
    appliance.start()
    wait_copied(appliance, 50)
    for issuer, days, sentence in [(first, -1, "has expired"), (second, 2, "is not trusted"), (second, 2, None)]:
        assert secure.stop() == 0
        secure.options[-4:] = secured(issuer.issue("renewed", days))
        if sentence is None:
            authority.write_bytes(second.pem.read_bytes())
        secure.start()
        if sentence:
            wait_until(f"it says that the certificate {sentence}", lambda: sentence in appliance.log_since(appliance.begin))
    if side == "downstream":  # whose upstream speaks without TLS, as our writer does
        write(upstream, 50, seed=7)
        wait_copied(appliance, 100)
    wait_until("it is connected again", lambda: appliance.ask("status")["link"][side]["connected"])
    assert appliance.running()


def test_renewed_certificate_of_the_admin_api(lab):
    first, second = Authority(lab, "first"), Authority(lab, "second")
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.9.0")
    certificate, key = first.issue("admin")
    appliance = lab.appliance(upstream, downstream, admin_address="0.0.0.0:0", admin_tls_cert=certificate, admin_tls_key=key).start()
    address = "localhost:" + appliance.find_admin().split(":")[-1]

    def answers(authority):
        return lab.call([REPLICATE, "events", "--admin", address, "--admin-ca", authority.pem]).returncode == 0

    assert answers(first) and not answers(second)
    second.issue("admin")  # the same files
    wait_until("the new certificate is used", lambda: answers(second), 10)
    assert not answers(first) and appliance.running()


@pytest.mark.parametrize("broken", ["certificate", "key", "other_key"])
def test_admin_certificate_that_cannot_be_used(lab, broken):
    authority = Authority(lab, "ours")
    certificate, key = authority.issue("admin")
    if broken == "other_key":
        key = authority.issue("another")[1]
    else:
        {"certificate": certificate, "key": key}[broken].write_text("no PEM\n")
    upstream, downstream = lab.broker("upstream", "0.9.0"), lab.broker("downstream", "0.9.0")
    code, said = run_once(lab, lab.appliance(upstream, downstream, admin_tls_cert=certificate, admin_tls_key=key))
    assert code == 2 and str(certificate if broken == "certificate" else key) in " ".join(said.split()), said


def test_password_is_not_seen_in_the_process_list(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.8.0", messages=10)
    arguments = open(f"/proc/{appliance.child.pid}/cmdline").read().replace("\0", " ")
    assert "--topics=orders/*" in arguments and f"127.0.0.1:{upstream.port}" in arguments
    assert "iggy:iggy" not in arguments and "://*********@" in arguments, arguments


def test_a_crash_leaves_no_core_file(lab):
    upstream, downstream, appliance = pair(lab, "0.9.0", "0.8.0", messages=10)
    limits = open(f"/proc/{appliance.child.pid}/limits").read()
    assert re.search(r"^Max core file size\s+0\s", limits, re.MULTILINE), limits
    appliance.signal(signal.SIGSEGV)
    pid, status = os.waitpid(appliance.child.pid, 0)
    assert os.WTERMSIG(status) == signal.SIGSEGV and not os.WCOREDUMP(status)
    appliance.child.returncode = -signal.SIGSEGV
    appliance.start()
    wait_copied(appliance, 10)

"""Starts iggy-sandbox for a test: with sandbox_for("0.8.0", binary) as broker: broker.url, broker.control("state")."""

import contextlib
import re
import socket
import subprocess


class Broker:
    def __init__(self, process, tcp, control):
        self._process = process
        self.port = tcp
        self._control = control
        self.url = f"iggy://iggy:iggy@127.0.0.1:{tcp}"

    def control(self, command):
        with socket.create_connection(("127.0.0.1", self._control), timeout=10) as wire:
            wire.sendall(command.encode() + b"\n")
            answer = wire.makefile().readline().strip()
        assert answer.startswith("ok"), answer
        return answer[3:]


@contextlib.contextmanager
def sandbox_for(server, binary, *flags):
    process = subprocess.Popen([binary, "--server", server, *flags], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        ports = re.match(r"listening tcp=\S+:(\d+) control=\S+:(\d+) ", line)
        assert ports, f"not ready: {line!r}"
        yield Broker(process, int(ports[1]), int(ports[2]))
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0, "the sandbox did not stop in order"

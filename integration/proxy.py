"""A TCP proxy that spoils the way to a broker, as networks and hostile servers do. Threads of the test's own process.

    proxy = Proxy(broker.port); link → proxy.port → broker
    proxy.black_hole()      connections stay open, and nothing passes any more: a cut cable, a firewall that forgot
    proxy.refuse()          connections are cut, new ones refused: a dead host
    proxy.heal()            new connections pass; those that were swallowed are gone, as after a reboot of the way
    proxy.half_close()      the broker seems to have closed its half: the link reads an end, and may still write
    proxy.half_open()       the broker's half is gone without a word, as after a reboot: what the link says next is reset
    proxy.delay = 0.05      each piece of data arrives that much later, in order
    proxy.loss = 0.01       each piece is lost with that chance: it stalls for 0.2 s, as a repeated segment; every tenth cuts
    proxy.answer = f        f(bytes from the broker) gives what the link gets in their place, part by part, for ever if it likes
"""

import queue
import random
import socket
import struct
import threading
import time

PIECE = 65536


class Connection:
    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.unanswered_bytes = 0  # what the link has said since the broker last answered
        self.muted = False  # nothing passes any more
        self.resets = False  # ... and whoever tries is told so
        for start in ((client, server, True), (server, client, False)):
            pieces = queue.Queue(maxsize=256)
            threading.Thread(target=self.take, args=(start[0], pieces), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(pieces, start[1], start[2]), daemon=True).start()

    def take(self, source, pieces):
        while True:
            try:
                data = source.recv(PIECE)
            except OSError:
                data = b""
            pieces.put((time.monotonic() + self.proxy.delay, data))
            if not data:
                return

    def pass_on(self, pieces, target, is_request):
        while True:
            at, data = pieces.get()
            time.sleep(max(0, at - time.monotonic()))
            if self.proxy.loss and self.proxy.random.random() < self.proxy.loss:
                self.proxy.lost += 1
                if self.proxy.lost % 10 == 0:
                    self.cut()
                    return
                time.sleep(0.2)
            if self.muted:
                if self.resets and is_request and data:
                    self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.client.close()
                    return
                if not data:
                    return
                continue
            if not data:
                self.cut()
                return
            if is_request:
                self.unanswered_bytes += len(data)
            else:
                if self.proxy.swallows > 0 and self.unanswered_bytes >= self.proxy.swallow_bytes:
                    self.proxy.swallows -= 1
                    self.cut()
                    return
                self.unanswered_bytes = 0
            spoiled = [data] if is_request or not self.proxy.answer else self.proxy.answer(data)
            try:
                for part in spoiled:
                    target.sendall(part)
            except OSError:
                self.cut()
                return

    def cut(self):
        self.muted = True
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Proxy:
    def __init__(self, target_port, seed=1, port=0):
        self.target_port = target_port
        self.random = random.Random(seed)
        self.delay = 0.0
        self.loss = 0.0
        self.lost = 0
        self.answer = None
        self.swallows = self.swallow_bytes = 0
        self.connections = []
        self.mode = "pass"
        self.listener = None
        self.port = port
        self._listen()

    def _listen(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.mode == "black_hole":
                self.connections.append(Swallowed(client))
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target_port), timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections.append(Connection(self, client, server))

    def swallow(self, count, request_bytes):
        """The next `count` answers to something of at least that size are lost, and their connection with them."""
        self.swallow_bytes = request_bytes
        self.swallows = count

    def black_hole(self):
        self.mode = "black_hole"
        for connection in self.connections:
            connection.muted = True

    def half_open(self):
        for connection in self.connections:
            connection.muted = connection.resets = True
            try:
                connection.server.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def half_close(self):
        for connection in self.connections:
            try:
                connection.client.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    def refuse(self):
        # Closing a listener does not wake its accept(); a shutdown does.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut_all()

    def heal(self):
        if self.mode == "black_hole":
            self.mode = "pass"
            self.cut_all()
        if self.listener.fileno() < 0:
            self._listen()

    def cut_all(self):
        for connection in self.connections:
            connection.cut()
        self.connections = []

    def close(self):
        if self.listener.fileno() >= 0:
            self.refuse()
        self.cut_all()


class Swallowed:
    """A connection that was accepted and goes nowhere."""

    muted = True

    def __init__(self, client):
        self.client = self.server = client

    def cut(self):
        self.client.close()

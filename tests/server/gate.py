# SPDX-License-Identifier: MIT
"""A proxy between browser and server: limits the rate of answers, cuts connections, and keeps its
address while the server is replaced."""
import socket
import threading


class Gate:
    """`target` is the server's port, or None: connections are refused."""

    def __init__(self, target):
        self.target = target
        self.budget = None   # bytes of streams that may still pass; None: unlimited
        self.change = threading.Condition()
        self.sockets = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def allow(self, n_bytes):
        with self.change:
            self.budget = n_bytes
            self.change.notify_all()

    def cut(self):
        """Ends all connections and removes the limit."""
        with self.change:
            self.budget = None
            for s in self.sockets:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.change.notify_all()

    def close(self):
        self.listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target or 1))
            except OSError:
                client.close()
                continue
            with self.change:
                self.sockets |= {client, server}
            threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client, server):
        asking = threading.Thread(target=self._copy, args=(client, server, False), daemon=True)
        asking.start()
        self._copy(server, client, True)
        asking.join()
        client.close()
        server.close()

    def _may_pass(self, n_bytes, to):
        """Waits until n_bytes may pass; False: the other side is gone."""
        with self.change:
            while self.budget is not None and self.budget < n_bytes and to in self.sockets:
                self.change.wait()
            if self.budget is not None:
                self.budget -= n_bytes
            return to in self.sockets

    def _copy(self, come_from, to, is_answer):
        is_stream = False
        try:
            while True:
                data = come_from.recv(256 if is_stream else 65536)
                is_stream = is_stream or (is_answer and b"text/event-stream" in data)
                if not data or (is_stream and not self._may_pass(len(data), to)):
                    break
                to.sendall(data)
        except OSError:
            pass
        with self.change:
            for s in (come_from, to):
                self.sockets.discard(s)
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.change.notify_all()

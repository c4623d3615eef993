"""A relay before a broker that drops some requests, or holds all of them for a while."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.ports import free_ports

__all__ = ["END_TRANSACTION", "INIT_PRODUCER_ID", "PRODUCE", "DroppingRelay", "relayed_broker"]

PRODUCE, INIT_PRODUCER_ID, END_TRANSACTION = 0, 22, 26
"""API keys of Kafka's protocol."""

LENGTH_SIZE = 4
ACCEPT_SECONDS = 0.2


class DroppingRelay:
    """Relays connections to a port of this machine, from its start to the end of a ``with`` block."""

    def __init__(self, port: int, target_port: int) -> None:
        self.dropped = 0
        """How many requests were dropped."""
        self._target_port = target_port
        self._stack = ExitStack()
        self._listening = self._stack.enter_context(socket.create_server(("127.0.0.1", port)))
        self._listening.settimeout(ACCEPT_SECONDS)
        self._ending = threading.Event()
        self._connections: list[tuple[socket.socket, socket.socket]] = []
        self._drops: tuple[int, int] | None = None
        self._is_open = threading.Event()
        self._is_open.set()
        self._thread = threading.Thread(target=self._accept, name="relay", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ending.set()
        self._thread.join()
        for pair in self._connections:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self._stack.close()

    def drop(self, api_key: int, until: int) -> None:
        """Pass no further request with an API key, until one with another key has passed: the client waits."""
        self._drops = api_key, until

    def pass_all(self) -> None:
        """Drop nothing from now on."""
        self._drops = None

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Pass no request within the block, and those that have arrived at its end."""
        self._is_open.clear()
        try:
            yield
        finally:
            self._is_open.set()

    def _accept(self) -> None:
        while not self._ending.is_set():
            with suppress(TimeoutError):
                self._relay(self._listening.accept()[0])

    def _relay(self, client: socket.socket) -> None:
        self._stack.enter_context(client)
        try:
            broker = self._stack.enter_context(socket.create_connection(("127.0.0.1", self._target_port)))
        except ConnectionError:
            client.close()
            return
        self._connections.append((client, broker))
        for target, ends in ((self._pass_requests, (client, broker)), (_pass_all, (broker, client))):
            threading.Thread(target=target, args=ends, name="relay", daemon=True).start()

    def _pass_requests(self, client: socket.socket, broker: socket.socket) -> None:
        with suppress(OSError), client.makefile("rb") as requests:
            while length := requests.read(LENGTH_SIZE):
                request = requests.read(int.from_bytes(length))
                self._is_open.wait()
                if not self._is_dropped(int.from_bytes(request[:2])):
                    broker.sendall(length + request)
        with suppress(OSError):
            broker.shutdown(socket.SHUT_RDWR)

    def _is_dropped(self, api_key: int) -> bool:
        if self._drops is None:
            return False
        dropped, until = self._drops
        if api_key == until:
            self._drops = None
        self.dropped += api_key == dropped
        return api_key == dropped


def _pass_all(broker: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while data := broker.recv(65_536):
            client.sendall(data)
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)


@contextmanager
def relayed_broker() -> Iterator[tuple[EmbeddedBroker, DroppingRelay, str]]:
    """Run a broker with a relay before one of its listeners; yields broker, relay, and the relay's address."""
    plain, behind, relayed, controller = free_ports(4)
    properties = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},RELAYED://127.0.0.1:{behind},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{plain},RELAYED://127.0.0.1:{relayed}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,RELAYED:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    with EmbeddedBroker(port=plain, properties=properties) as broker, DroppingRelay(relayed, behind) as relay:
        yield broker, relay, f"127.0.0.1:{relayed}"

"""Free TCP ports of this machine, for servers that are started later."""

import random
import socket
from contextlib import suppress
from pathlib import Path

HOST = "127.0.0.1"
"""The address of every server of the embedded broker."""

EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""The ports that Linux gives to connections: such a port may be taken before the server has started."""

LOWEST, FALLBACK_END = 20_000, 32_768
"""The first port to try, and the one after the last where the system does not tell which it gives to connections."""


def free_ports(count: int) -> list[int]:
    """Ports that are free now, all different, and that no connection gets. Raises ``OSError`` when there are none."""
    found: list[int] = []
    candidates = range(LOWEST, _first_ephemeral_port())
    for port in random.sample(candidates, len(candidates)):
        with suppress(OSError), socket.create_server((HOST, port)):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"no {count} ports are free from {LOWEST} to {candidates.stop - 1}")


def free_address() -> str:
    """An address of this machine that is free now, as ``host:port``."""
    return f"{HOST}:{free_ports(1)[0]}"


def _first_ephemeral_port() -> int:
    if not EPHEMERAL_PORTS.exists():
        return FALLBACK_END
    return max(int(EPHEMERAL_PORTS.read_text().split()[0]), LOWEST + 1_000)

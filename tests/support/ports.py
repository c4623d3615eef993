"""Free TCP ports of this machine."""

import socket


def free_ports(count: int) -> list[int]:
    """Ports that are free now, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports


def free_address() -> str:
    """``127.0.0.1`` with a port that is free now, as ``host:port``."""
    return f"127.0.0.1:{free_ports(1)[0]}"

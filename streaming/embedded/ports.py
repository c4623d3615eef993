"""Free TCP ports of this machine."""

import socket

from streaming.embedded.broker import HOST


def free_address() -> str:
    """An address of this machine that is free now, as ``host:port``."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        return f"{HOST}:{free.getsockname()[1]}"

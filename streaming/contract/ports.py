"""Ports at which servers listen, checked before anything starts."""

import errno
import socket

from streaming.contract.errors import CannotRun


def require_free_port(host: str, port: int, option: str) -> None:
    """Check that a server can listen at an address of this machine; port 0 takes any.

    option: the option that chooses the port, for the message. Raises CannotRun.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except (OSError, OverflowError) as error:
        raise cannot_listen(host, port, option, error) from error


def cannot_listen(host: str, port: int, option: str, error: OSError | OverflowError) -> CannotRun:
    """The refusal of a server that cannot listen, with the option that helps."""
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return CannotRun(f"port {port} is in use: choose another with {option}")
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return CannotRun(f"cannot listen on {host}:{port} ({reason}): choose another address with {option}")

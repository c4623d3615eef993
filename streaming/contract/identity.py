"""Who vouches for the sender that a request names: a signature in the envelope.

Anyone who can write to ``group-requests`` can name any principal and any host. A gateway knows both: the broker has
authenticated its client. The gateways and the job share a key, with which a gateway signs for any principal. A client
that writes to the topic itself can have a key of its own, with which it signs for its own principal only.

The signature is the HMAC-SHA256 of a MessagePack array, in its shortest encoding: group id, correlation id, api,
version, client id, client host, principal, and the bytes of the body as they are in the envelope's JSON.
"""

import hmac
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import msgspec

from coordinator_logic.messages import RequestEnvelope
from streaming.contract.errors import CannotRun

SHORTEST_KEY_BYTES = 32

USER = "User:"
"""What the principals of users begin with."""

EVERY_USER = f"{USER}*"
"""Stands for every principal in a rule, so no principal can be called so."""

GATEWAY = "Gateway:"
"""What the principals of gateways begin with. No client has such a one: brokers authenticate users."""

KEY_ID_BYTES = 8

_encode = msgspec.msgpack.Encoder().encode


class Signer(Enum):
    """Who has signed a request: a gateway, or the principal that it names."""

    GATEWAY = "gateway"
    PRINCIPAL = "principal"


@dataclass(frozen=True)
class PrincipalKey:
    """The key of a principal's own, and the principal, such as ``User:billing``."""

    principal: str
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class IdentityKeys:
    """The keys with which the job checks signatures: those of gateways, and those of principals, by principal."""

    of_gateways: tuple[bytes, ...] = field(default=(), repr=False)
    of_principals: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict, repr=False)

    def signer(self, envelope: RequestEnvelope, group_id: str) -> Signer | None:
        """Who has signed the request; None if nobody has whose key is known."""
        if envelope.signature is None:
            return None
        if is_signed(envelope, group_id, self.of_gateways):
            return Signer.GATEWAY
        own = self.of_principals.get(envelope.principal or "", ())
        return Signer.PRINCIPAL if is_signed(envelope, group_id, own) else None

    def ids(self) -> list[str]:
        """A name for each key that does not reveal it."""
        return sorted(key_id for _, _, key_id in self._named())

    def only(self, ids: Collection[str]) -> "IdentityKeys":
        """The keys that have these names."""
        gateways: list[bytes] = []
        principals: defaultdict[str, list[bytes]] = defaultdict(list)
        for principal, key, key_id in self._named():
            if key_id in ids:
                (gateways if principal is None else principals[principal]).append(key)
        return IdentityKeys(tuple(gateways), {name: tuple(keys) for name, keys in principals.items()})

    def __bool__(self) -> bool:
        return bool(self.of_gateways or self.of_principals)

    def _named(self) -> Iterator[tuple[str | None, bytes, str]]:
        for key in self.of_gateways:
            yield None, key, _key_id(key, GATEWAY)
        for principal, keys in self.of_principals.items():
            for key in keys:
                yield principal, key, _key_id(key, principal)


NO_KEYS = IdentityKeys()


def _key_id(key: bytes, owner: str) -> str:
    return hmac.digest(key, owner.encode(), "sha256")[:KEY_ID_BYTES].hex()


def signed(envelope: RequestEnvelope, group_id: str, key: bytes) -> RequestEnvelope:
    """The envelope with the signature of a request to this group."""
    return msgspec.structs.replace(envelope, signature=_signature(envelope, group_id, key))


def is_signed(envelope: RequestEnvelope, group_id: str, keys: Sequence[bytes]) -> bool:
    """Whether one of the keys has signed the request. It takes the same time for every wrong signature."""
    signature = envelope.signature
    if signature is None:
        return False
    return any(hmac.compare_digest(signature, _signature(envelope, group_id, key)) for key in keys)


def _signature(envelope: RequestEnvelope, group_id: str, key: bytes) -> bytes:
    content = _encode(
        (
            group_id,
            envelope.correlation_id,
            envelope.api,
            envelope.version,
            envelope.client_id,
            envelope.client_host,
            envelope.principal,
            bytes(envelope.body),
        )
    )
    return hmac.digest(key, content, "sha256")


def read_identity_keys(file: str | None) -> tuple[bytes, ...]:
    """Read the keys of gateways, one a line; none without a file. A gateway signs with the first, the job accepts all.

    Raises:
        CannotRun: the file cannot be read, has no key, or has one of less than 32 bytes.
    """
    if file is None:
        return ()
    keys = tuple(key for _, key in _lines(file, "identity-key-file"))
    if not keys or min(map(len, keys)) < SHORTEST_KEY_BYTES:
        raise CannotRun(f"identity-key-file {file}: a key is a line of {SHORTEST_KEY_BYTES} bytes or more")
    return keys


def read_principal_keys(file: str, option: str = "principal-key-file") -> list[PrincipalKey]:
    """Read keys of principals, in each line a principal, a space and a key; ``option`` has named the file.

    Raises:
        CannotRun: the file cannot be read, or has no key; or lines are wrong, with what is wrong about each.
    """
    found: list[PrincipalKey] = []
    problems = []
    owners: dict[bytes, str] = {}
    for number, line in _lines(file, option):
        name, _, key = line.rpartition(b" ")
        principal = name.strip().decode(errors="replace")
        if not principal.startswith(USER) or principal in (USER, EVERY_USER) or principal.encode() != name.strip():
            problem = f"expected {USER}NAME, a space and the key"
        elif len(key) < SHORTEST_KEY_BYTES:
            problem = f"the key of {principal} has {len(key)} bytes; give it {SHORTEST_KEY_BYTES} or more"
        elif owners.setdefault(key, principal) != principal:
            problem = f"{principal} has the key of {owners[key]}; give each principal a key of its own"
        else:
            found.append(PrincipalKey(principal, key))
            continue
        problems.append(f"{option} {file}: line {number}: {problem}")
    if problems:
        raise CannotRun("\n".join(problems))
    if not found:
        raise CannotRun(f"{option} {file} has no key: expected lines of {USER}NAME, a space and a key")
    return found


def read_principal_key(file: str, option: str = "file") -> PrincipalKey:
    """Read the key with which a client signs: the first one in a file of :func:`read_principal_keys`.

    Raises:
        CannotRun: as there.
    """
    return read_principal_keys(file, option)[0]


def _lines(file: str, option: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not empty, with their numbers from 1. Raises CannotRun."""
    try:
        lines = Path(file).read_bytes().splitlines()
    except OSError as error:
        raise CannotRun(f"{option} {file} cannot be read: {error.strerror}") from error
    return ((number, line.strip()) for number, line in enumerate(lines, 1) if line.strip())

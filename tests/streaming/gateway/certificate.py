"""A server's certificate, and the authority that made it, as PEM files."""

from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

__all__ = ["Certificate", "new_certificate"]


@dataclass(frozen=True)
class Certificate:
    """Paths. ``keystore`` has key and chain in one file, in the formats that a broker reads (KIP-651)."""

    authority: str
    chain: str
    key: str
    keystore: str


def new_certificate(folder: Path) -> Certificate:
    """For servers on this machine."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    made = Certificate(*(str(folder / f"{name}.pem") for name in ("authority", "chain", "key", "keystore")))
    authority.cert_pem.write_to_path(made.authority)
    issued.cert_chain_pems[0].write_to_path(made.chain)
    issued.private_key_pem.write_to_path(made.key)
    key = load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path(made.keystore).write_bytes(pkcs8 + issued.cert_chain_pems[0].bytes())
    return made

"""A server's certificate and its authority, as PEM files."""

from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

__all__ = ["Certificate", "new_certificate"]


@dataclass(frozen=True)
class Certificate:
    """Paths of PEM files. ``keystore`` contains key and chain, in the formats that a broker reads (KIP-651)."""

    authority: str
    chain: str
    key: str
    keystore: str


def new_certificate(folder: Path) -> Certificate:
    """Create a certificate for servers on this machine."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    paths = Certificate(*(str(folder / f"{name}.pem") for name in ("authority", "chain", "key", "keystore")))
    authority.cert_pem.write_to_path(paths.authority)
    issued.cert_chain_pems[0].write_to_path(paths.chain)
    issued.private_key_pem.write_to_path(paths.key)
    key = load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path(paths.keystore).write_bytes(pkcs8 + issued.cert_chain_pems[0].bytes())
    return paths

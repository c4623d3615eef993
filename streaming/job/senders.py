"""Who may send requests, as the job's options say: keys of those who sign, and rules about groups."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from streaming.contract.errors import CannotRun
from streaming.contract.identity import NO_KEYS, IdentityKeys, read_identity_keys, read_principal_keys
from streaming.contract.output.text import counted
from streaming.contract.rights.acl_file import read_group_acls
from streaming.contract.rights.group_acls import EVERYTHING_SIGNED, GroupAcls
from streaming.job.group_batch.starts import Start
from streaming.job.options import JobOptions


class Senders(NamedTuple):
    """The keys with which signatures are checked, and the rules; None: everyone may send everything."""

    keys: IdentityKeys
    acls: GroupAcls | None


ANYONE = Senders(NO_KEYS, None)


def read_senders(options: JobOptions) -> Senders:
    """Read the files that the options name.

    Raises:
        CannotRun: a file cannot be read or is wrong, or signatures are required and there is no key.
    """
    gateways = read_identity_keys(options.identity_key_file)
    principals: defaultdict[str, list[bytes]] = defaultdict(list)
    for own in read_principal_keys(options.principal_key_file) if options.principal_key_file else ():
        if own.key in gateways:
            raise CannotRun(
                f"principal-key-file {options.principal_key_file}: {own.principal} has a key of identity-key-file, "
                "which signs for everyone; give it a key of its own"
            )
        principals[own.principal].append(own.key)
    keys = IdentityKeys(gateways, {name: tuple(found) for name, found in principals.items()})
    acls: GroupAcls | None = EVERYTHING_SIGNED if options.require_signature else None
    if options.group_acl_file is not None:
        acls = read_group_acls(options.group_acl_file)
    if acls is not None and not keys:
        option = "require-signature" if options.group_acl_file is None else "group-acl-file"
        raise CannotRun(
            f"{option} is given, but no key with which a sender could sign: give identity-key-file for gateways, "
            "principal-key-file for clients that write requests themselves, or both"
        )
    return Senders(keys, acls)


def missing_keys(starts: Sequence[Start], keys: IdentityKeys) -> Iterator[str]:
    """What follows from keys that are gone: for a batch that runs again, or for requests that are replayed.

    ``starts`` are the job's starts that its groups need, the present one last.
    """
    start = starts[-1]
    if start.replays:
        needed, what = list(starts[:-1]), "requests that are replayed"
    else:
        needed = [one for one in starts[:-1] if start.open_batch_time and one.epoch == start.open_batch_epoch]
        what = "the batch that runs again"
    gone = {key_id for one in needed for key_id in one.key_ids or ()} - set(keys.ids())
    if gone:
        yield (
            f"{what} may have signatures of {counted(len(gone), 'key')} that identity-key-file and principal-key-file "
            "no longer have, and count as not signed then: stop the job and put the keys back, unless they were stolen"
        )

"""A member's callbacks must be those of its protocol."""

from typing import Any

import pytest

from streaming.client import GroupMember, MemberCallbacks, MemberConfig, PartitionCallbacks


class Classic(MemberCallbacks):
    protocols = assign = on_assigned = None  # type: ignore[assignment]


class Consumer(PartitionCallbacks):
    subscription = on_partitions_assigned = on_partitions_revoked = on_partitions_lost = None  # type: ignore[assignment]


@pytest.mark.parametrize(("callbacks", "protocol"), [(Classic(), "consumer"), (Consumer(), "classic")])
def test_callbacks_of_the_other_protocol_are_refused(callbacks: Any, protocol: Any) -> None:
    client: Any = None
    with pytest.raises(TypeError, match=f"has no callbacks for the protocol '{protocol}'"):
        GroupMember(client, callbacks, MemberConfig(group_id="g", group_protocol=protocol))

"""The callbacks of a member that takes whatever its group does."""

from collections.abc import Mapping, Sequence

from coordinator_logic.messages import JoinedMember
from streaming.client import Generation, MemberCallbacks


class AnyProtocol(MemberCallbacks):
    """Accepts any assignment; as the leader, it assigns its member id to each member."""

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        return [("any", b"")]

    def assign(self, protocol_name: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        return {member.member_id: member.member_id.encode() for member in members}

    def on_assigned(self, generation: Generation, assignment: bytes) -> None:
        pass

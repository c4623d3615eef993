"""The one table of what a person reads in place of a code of Kafka's errors."""

from collections.abc import Mapping

from coordinator_logic.errors import Error
from streaming.client.errors import CoordinatorError, error_of
from streaming.contract.output.text import counted

TRY_AGAIN = "try again"

SENTENCES: Mapping[Error, str] = {
    Error.UNKNOWN_SERVER_ERROR: "the coordinator failed at the request for {group}; its log says why",
    Error.UNKNOWN_TOPIC_OR_PARTITION: "{group} named a topic or partition that does not exist",
    Error.REQUEST_TIMED_OUT: f"the coordinator has not answered about {{group}} in time: {TRY_AGAIN}",
    Error.OFFSET_METADATA_TOO_LARGE: "the metadata of an offset of {group} is too long",
    Error.COORDINATOR_LOAD_IN_PROGRESS: f"the coordinator is starting: {TRY_AGAIN}",
    Error.COORDINATOR_NOT_AVAILABLE: "the coordinator cannot serve {group}: its stored state may be unreadable, see "
    "groups quarantine list",
    Error.NOT_COORDINATOR: f"another coordinator has {{group}} now: {TRY_AGAIN}",
    Error.ILLEGAL_GENERATION: f"{{group}} has rebalanced meanwhile: {TRY_AGAIN}",
    Error.INCONSISTENT_GROUP_PROTOCOL: "the members of {group} use another protocol",
    Error.INVALID_GROUP_ID: "{group} is not a valid group id",
    Error.UNKNOWN_MEMBER_ID: "{group} has no such member",
    Error.INVALID_SESSION_TIMEOUT: "the session timeout is outside of the bounds of the coordinator",
    Error.REBALANCE_IN_PROGRESS: f"{{group}} is in a rebalance: {TRY_AGAIN} when it is Stable, or stop its members",
    Error.TOPIC_AUTHORIZATION_FAILED: "this user may not read or describe a topic of {group}",
    Error.GROUP_AUTHORIZATION_FAILED: "this user may not do this to group {group}",
    Error.UNSUPPORTED_VERSION: "the coordinator is too old or too new for this command: use the same version of both",
    Error.INVALID_CONFIG: "a configuration of {group} has a wrong name or value",
    Error.INVALID_REQUEST: "the coordinator cannot read the request for {group}",
    Error.INVALID_PRODUCER_EPOCH: "a newer producer has the transaction of {group}",
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "this user may not use the transactional id",
    Error.NON_EMPTY_GROUP: "{group} has members: stop them first",
    Error.GROUP_ID_NOT_FOUND: "group {group} does not exist",
    Error.MEMBER_ID_REQUIRED: "a member of {group} has to join again with the id that it was given",
    Error.GROUP_MAX_SIZE_REACHED: "{group} has as many members as the coordinator allows",
    Error.FENCED_INSTANCE_ID: "another process has joined {group} with the same instance id",
    Error.GROUP_SUBSCRIBED_TO_TOPIC: "{group} subscribes to the topic: stop its members first",
    Error.UNSTABLE_OFFSET_COMMIT: f"{{group}} has an offset in an open transaction: {TRY_AGAIN} when it has ended",
    Error.INVALID_UPDATE_VERSION: f"{{group}} has committed meanwhile: {TRY_AGAIN}",
    Error.UNKNOWN_TOPIC_ID: "a topic of {group} was deleted, and perhaps created again",
    Error.FENCED_MEMBER_EPOCH: "a member of {group} has an epoch that is no longer its own",
    Error.UNRELEASED_INSTANCE_ID: "another process uses the instance id in {group}",
    Error.UNSUPPORTED_ASSIGNOR: "the coordinator has no assignor of the name that a member of {group} asks for",
    Error.STALE_MEMBER_EPOCH: f"{{group}} has a newer epoch: {TRY_AGAIN}",
    Error.INVALID_REGULAR_EXPRESSION: "the pattern of topics of a member of {group} is not valid",
}


def sentence_of(error_code: int, group: str) -> str:
    """What an error of the coordinator means for a group, in words."""
    return SENTENCES[error_of(error_code)].format_map({"group": group})


def members_sentence(group: str, members: int) -> str:
    """Why a group cannot be deleted or given other offsets: it has so many members."""
    return f"{group} has {counted(members, 'member')}: stop {'it' if members == 1 else 'them'} first"


def sentence_of_failure(failure: CoordinatorError) -> str:
    """What a failed request means: the coordinator's own reason where it gives one."""
    if failure.group_id is None:
        return failure.message
    sentence = sentence_of(failure.error, failure.group_id)
    return f"{sentence} ({failure.reason})" if failure.reason else sentence

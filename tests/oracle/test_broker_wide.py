"""Comparisons that do not concern a single group: the supported versions, and the list of all groups."""

import asyncio
import uuid
from collections.abc import Sequence

import pytest
from kio.index import load_request_schema
from kio.schema.api_versions.v0.request import ApiVersionsRequest

from coordinator_logic.apis import APIS
from coordinator_logic.handlers.list_groups import list_groups
from coordinator_logic.messages import ListedGroup, ListGroupsRequest, ListGroupsResponse
from coordinator_logic.records import directory_entry
from streaming.embedded.broker import EmbeddedBroker
from tests.oracle.reference_broker import CONFIG, VERSIONS
from tests.oracle.scripts.script import Script
from tests.oracle.scripts.steps import ANONYMOUS, STATES, commit, in_state
from tests.oracle.sides.connection import Connections
from tests.oracle.sides.lockstep import Lockstep
from tests.oracle.sides.logic_side import through_wire
from tests.support.wire_types import from_wire, to_wire

LIST_GROUPS_KEY = 16
ROUNDS = 6
FILTERS = (
    ListGroupsRequest(),
    ListGroupsRequest(states_filter=["Stable"]),
    ListGroupsRequest(states_filter=["stable", "EMPTY"]),
    ListGroupsRequest(states_filter=[" Stable "]),
    ListGroupsRequest(states_filter=["Unknown"]),
    ListGroupsRequest(types_filter=["Classic"]),
    ListGroupsRequest(types_filter=["consumer"]),
    ListGroupsRequest(states_filter=["PreparingRebalance"], types_filter=["classic", "consumer"]),
)

JUDGED_BY_MANAGER = {"ConsumerGroupHeartbeat", "ConsumerGroupDescribe"}
"""Kafka's own group manager judges these in fake time: tests/oracle/consumer."""


def test_all_common_versions_are_under_test(shared_broker: EmbeddedBroker) -> None:
    async def ask() -> dict[int, range]:
        connections = Connections(shared_broker.bootstrap_servers)
        answer = await connections.ask(ApiVersionsRequest())
        connections.close()
        return {key.api_key: range(key.min_version, key.max_version + 1) for key in answer.api_keys}

    theirs = asyncio.run(ask())
    for name, api in APIS.items():
        if api.key is None or name == "FindCoordinator" or name in JUDGED_BY_MANAGER:
            continue
        ours = range(api.min_version, api.max_version + 1)
        assert list(VERSIONS[name]) == [version for version in ours if version in theirs[api.key]], name


@pytest.mark.parametrize("version", range(6))
def test_the_list_of_groups_equals_the_brokers(version: int, shared_broker: EmbeddedBroker) -> None:
    scripts = [Script(state, in_state(state)) for state in STATES]
    scripts.append(Script("offsets only", [commit(0, **ANONYMOUS)]))
    scripts.append(Script("other type", in_state("Stable", protocol_type="connect")))

    async def compare() -> None:
        connections = Connections(shared_broker.bootstrap_servers)
        try:
            await _compare_listings(version, scripts, connections)
        finally:
            connections.close()

    asyncio.run(compare())


async def _play(scripts: Sequence[Script], connections: Connections) -> tuple[str, list[Lockstep]]:
    """Run the scripts until all runs are conclusive; return the common prefix of the group ids, and the runs."""
    for _ in range(ROUNDS):
        prefix = f"listed-{uuid.uuid4().hex[:8]}-"
        runs = [Lockstep(script, f"{prefix}{script.name}", connections, CONFIG) for script in scripts]
        outcomes = await asyncio.gather(*(run.play() for run in runs))
        assert {outcome.difference for outcome in outcomes} == {None}
        reasons = [outcome.inconclusive for outcome in outcomes if outcome.inconclusive is not None]
        if not reasons:
            return prefix, runs
    raise AssertionError(reasons)


async def _compare_listings(version: int, scripts: Sequence[Script], connections: Connections) -> None:
    prefix, runs = await _play(scripts, connections)
    entries = [directory_entry(run.group) for run in runs if run.group is not None]
    wire_type = load_request_schema(LIST_GROUPS_KEY, version)
    for request in FILTERS:
        answer = await connections.ask(to_wire(request, wire_type))
        theirs = [group for group in from_wire(answer, ListGroupsResponse).groups if group.group_id.startswith(prefix)]
        ours = through_wire(list_groups(entries, through_wire(request, wire_type)), type(answer)).groups
        assert sorted(theirs, key=_by_id) == sorted(ours, key=_by_id), request


def _by_id(group: ListedGroup) -> str:
    return group.group_id

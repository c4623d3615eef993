"""Assembles the group side of a gateway: from Kafka's address to the served APIs."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

from streaming.client.directory import GroupDirectory
from streaming.contract.identity import GATEWAY, USER
from streaming.contract.topics import TopicNames
from streaming.gateway.groups.backend import GroupBackend, IsCoordinator
from streaming.gateway.groups.channel import GroupChannel
from streaming.gateway.groups.current_directory import CurrentDirectory
from streaming.gateway.groups.first_contact.broker_groups import BrokerGroups, Brokers
from streaming.gateway.groups.first_contact.contacts import FirstContacts
from streaming.gateway.groups.first_contact.groups_of_journal import GroupsOfJournal
from streaming.gateway.groups.first_contact.take_over import take_over
from streaming.gateway.groups.group_types import GROUP_TYPES
from streaming.gateway.groups.handlers.group_configs import GroupConfigHandlers
from streaming.gateway.groups.large_reads import LargeReads
from streaming.gateway.groups.list_requests import ListRequests
from streaming.gateway.groups.look_schedule import LookSchedule
from streaming.gateway.groups.registry import group_apis, timeout_policies
from streaming.gateway.groups.subscriptions.offset_cleanup import LISTING_SECONDS, OffsetCleanup
from streaming.gateway.groups.subscriptions.topic_notifier import TopicNotifier
from streaming.gateway.groups.timeout_policies import GroupTimeouts, TimeoutPolicies
from streaming.gateway.options import CLIENT_ID, GatewayOptions
from streaming.gateway.security.authorization import Authorizer
from streaming.gateway.security.internal_topics.rules import InternalTopicRules
from streaming.gateway.security.sasl_exchange import ANONYMOUS
from streaming.gateway.security.topic_catalog import ClusterTopics, TopicCatalog
from streaming.gateway.wire.client_request import Caller, ServedApi
from streaming.gateway.wire.forwarding import Forward, forward_upstream
from streaming.gateway.wire.loop_share import LoopShare


@dataclass(frozen=True)
class GroupService:
    """The served group APIs, by key, and what they use: the connections, and the authorizer with its cache.

    caller: the gateway itself, as the caller of its own requests.
    topics_changed: to be called when a client has changed topics of the cluster, or may have, with the names of those
        that were deleted.
    """

    channel: GroupChannel
    directory: GroupDirectory
    authorizer: Authorizer
    caller: Caller
    apis: Mapping[int, ServedApi]
    topics_changed: Callable[[Collection[str]], None]


@asynccontextmanager
async def serving_groups(
    options: GatewayOptions,
    is_coordinator: IsCoordinator,
    cluster: ClusterTopics,
    identity_key: bytes | None = None,
    forward: Forward = forward_upstream,
    timeouts: GroupTimeouts | None = None,
    loop_share: LoopShare | None = None,
    brokers: Brokers | None = None,
    count_contact: Callable[[str], None] = lambda _outcome: None,
) -> AsyncIterator[GroupService]:
    """Serve the group APIs through the coordinator whose topics the options name, while the block runs.

    Neither the coordinator nor Kafka need be available: until they are, the handlers answer retriable errors.
    ``cluster`` requests the metadata of topics as the gateway. ``identity_key`` is that of :class:`GroupChannel`.
    ``forward`` sends a request to a real broker on behalf
    of the client whose request is handled. ``timeouts`` are the defaults of :class:`GroupTimeouts` if omitted.
    ``loop_share`` is the gateway's, by default one of its own. ``brokers`` are asked about groups that are new here;
    None: no group is looked up. ``count_contact`` counts what came of each lookup.
    """
    timeouts = timeouts or GroupTimeouts()
    loop_share = loop_share or LoopShare()
    names = TopicNames(options.topic_prefix)
    directory = GroupDirectory(options.bootstrap_servers, names.directory, CLIENT_ID, options.kafka)
    current = CurrentDirectory(options, directory, timeouts.listing_seconds)
    channel = GroupChannel(options, timeouts.stall_seconds, identity_key, current.pass_on)
    looks = LookSchedule(timeouts.topic_refresh_seconds)
    listings = LookSchedule(max(timeouts.topic_refresh_seconds, LISTING_SECONDS))

    def topics_changed() -> None:
        looks.hasten()
        listings.hasten()

    catalog = TopicCatalog(cluster, timeouts.topic_lookup_seconds, topics_changed)
    internal_topics = InternalTopicRules(
        names, options.internal_topic_users, hides_offsets_topic=options.hide_offsets_topic
    )
    authorizer = Authorizer(catalog, forward, hides=internal_topics.hides)
    user = options.kafka.get("sasl.username")
    # Not the principal of a client that has the same user, whom the job may refuse what the gateway needs.
    caller = Caller(CLIENT_ID, socket.gethostname(), f"{GATEWAY}{user or ANONYMOUS.removeprefix(USER)}")
    contacts = None
    journal = GroupsOfJournal(options.bootstrap_servers, names.journal, options.kafka)
    if brokers is not None and options.first_contact != "off":
        contacts = FirstContacts(
            directory,
            BrokerGroups(brokers).find,
            journal.among,
            partial(take_over, channel, catalog, caller),
            count_contact,
            loop_share.await_slice,
            refuses_offsets=options.first_contact == "refuse",
        )
    backend = GroupBackend(
        channel,
        directory,
        current.is_current,
        authorizer,
        is_coordinator,
        policies=TimeoutPolicies(timeouts, timeout_policies(GROUP_TYPES.values())),
        lists=ListRequests(loop_share),
        reads=LargeReads(directory),
        types=GROUP_TYPES,
        catalog=catalog,
        looks=looks,
        caller=caller,
        internal_topics=internal_topics,
        contacts=contacts,
    )
    configs = GroupConfigHandlers(backend, forward)
    apis = group_apis(backend) | configs.apis
    await channel.start()
    directory.start()
    notifier = TopicNotifier(backend)
    watching = asyncio.gather(notifier.run(), OffsetCleanup(backend, listings).run())
    try:
        yield GroupService(channel, directory, authorizer, caller, apis, notifier.topics_changed)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        journal.close()
        if contacts is not None:
            await contacts.close()
        await asyncio.gather(channel.close(), asyncio.to_thread(directory.close))

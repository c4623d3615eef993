"""Who may do what with a group: asked of the cluster's own rules, which are read again every few seconds."""

import asyncio
import logging
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from streaming.client.errors import CoordinatorNotAvailable
from streaming.client.librdkafka import LibrdkafkaConfig, admin_config
from streaming.gateway.acls import CLUSTER_NAME, GROUP_OPERATIONS, Acls, Operation, Resource, Rule, operation_bits
from streaming.gateway.request import Caller

__all__ = ["Authorizer", "MayNotReadAcls"]

log = logging.getLogger(__name__)

REFRESH_SECONDS = 5.0
ASK_TIMEOUT_SECONDS = 10.0
ANYTHING: Any = None
EVERY_ACL = AclBindingFilter(
    ResourceType.ANY,
    ANYTHING,
    ResourcePatternType.ANY,
    ANYTHING,
    ANYTHING,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


class MayNotReadAcls(Exception):
    """The cluster has an authorizer, and it does not let the gateway read the rules."""


class Authorizer:
    """Decides by the cluster's ACLs; a cluster without an authorizer allows everything.

    Rules are at most :data:`REFRESH_SECONDS` old while Kafka answers, and the last known ones afterwards, as in a
    broker that has lost its controller. Who the super users are cannot be read from a cluster (nor whether what has no
    rule is open): it has to be said, as in ``server.properties``.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        client_id: str,
        config: LibrdkafkaConfig | None = None,
        *,
        super_users: frozenset[str] = frozenset(),
        open_without_rules: bool = False,
    ) -> None:
        self._admin = AdminClient(admin_config(bootstrap_servers, client_id, config or {}))
        self._super_users = super_users
        self._open_without_rules = open_without_rules
        self._acls: Acls | None = None
        self._refreshing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the rules for the first time.

        Raises :class:`MayNotReadAcls`, :class:`CoordinatorNotAvailable` when no broker answers.
        """
        self._acls = await self._read()
        self._refreshing = asyncio.create_task(self._refresh())

    async def close(self) -> None:
        """Read them no more."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)

    def allows(self, caller: Caller, operation: Operation, resource: Resource, name: str) -> bool:
        """Whether the caller may do that with the resource of this name."""
        if self._acls is None:
            return True
        return self._acls.allows(caller.principal, caller.host, operation, resource, name)

    def allows_describing_cluster(self, caller: Caller) -> bool:
        """Whether the caller may describe the cluster, and with it all groups."""
        return self.allows(caller, Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)

    def operations_on_group(self, caller: Caller, group_id: str) -> int:
        """What the caller may do with a group, packed as in DescribeGroups (KIP-430)."""
        return operation_bits(
            operation for operation in GROUP_OPERATIONS if self.allows(caller, operation, Resource.GROUP, group_id)
        )

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                self._acls = await self._read()
            except (MayNotReadAcls, CoordinatorNotAvailable) as failure:
                log.warning("the access rules stay as they are: %s", failure)

    async def _read(self) -> Acls | None:
        asked = self._admin.describe_acls(EVERY_ACL, request_timeout=ASK_TIMEOUT_SECONDS)
        try:
            bindings = await asyncio.wrap_future(asked)
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            if error.code() == KafkaError.SECURITY_DISABLED:
                return None
            if error.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
                raise MayNotReadAcls(
                    "the gateway may not read the cluster's access rules: allow it Describe on the cluster"
                ) from failure
            raise CoordinatorNotAvailable(f"reading the cluster's access rules: {error.str()}") from failure
        rules = [rule for rule in map(_rule, bindings) if rule is not None]
        return Acls(rules, self._super_users, open_without_rules=self._open_without_rules)


def _rule(binding: AclBinding) -> Rule | None:
    """The rule that a binding is; None for one about resources that no group API asks about."""
    kinds: dict[Any, Resource] = {
        ResourceType.TOPIC: Resource.TOPIC,
        ResourceType.GROUP: Resource.GROUP,
        ResourceType.BROKER: Resource.CLUSTER,
        ResourceType.TRANSACTIONAL_ID: Resource.TRANSACTIONAL_ID,
    }
    resource = kinds.get(binding.restype)
    if resource is None:
        return None
    return Rule(
        resource,
        binding.name,
        binding.resource_pattern_type is ResourcePatternType.PREFIXED,
        binding.principal,
        binding.host,
        Operation[AclOperation(binding.operation).name],
        binding.permission_type is AclPermissionType.ALLOW,
    )

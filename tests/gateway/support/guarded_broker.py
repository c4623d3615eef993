"""A broker with Kafka's authorizer, and ACLs that last for one test."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from streaming.cli.commands.acls import EVERY_ACL
from streaming.embedded.broker import EmbeddedBroker
from tests.oracle.reference_broker import await_coordinators
from tests.support.waiting import LIMIT_SECONDS, wait_until

__all__ = ["ANONYMOUS", "CreateAcl", "change_acls", "creating_acls", "filter_of", "guarded_broker"]

ANONYMOUS = "User:ANONYMOUS"
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Resources without an ACL are open, so that creating ACLs itself needs none.
    "allow.everyone.if.no.acl.found": "true",
    # OffsetCommit and OffsetFetch v10, which name topics by their ids, are not final in this release of Kafka.
    "unstable.api.versions.enable": "true",
}
CreateAcl = Callable[..., None]


@contextmanager
def guarded_broker() -> Iterator[EmbeddedBroker]:
    """Run a broker with an authorizer, and with its own coordinator."""
    with EmbeddedBroker(properties=PROPERTIES) as broker:
        asyncio.run(await_coordinators(broker.bootstrap_servers))
        yield broker


@contextmanager
def creating_acls(broker: EmbeddedBroker) -> Iterator[CreateAcl]:
    """Yield a function that creates ACLs until the block ends, and waits until the broker applies them."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    created: list[AclBinding] = []

    def create(
        name: str,
        operation: AclOperation,
        permission: AclPermissionType = AclPermissionType.ALLOW,
        *,
        resource: ResourceType = ResourceType.GROUP,
        pattern: ResourcePatternType = ResourcePatternType.LITERAL,
        principal: str = ANONYMOUS,
        host: str = "*",
    ) -> None:
        binding = AclBinding(resource, name, pattern, principal, host, operation, permission)
        change(admin.create_acls, binding)
        created.append(binding)

    def change(do: Callable[[list[Any]], Mapping[Any, Future[Any]]], which: object) -> None:
        change_acls(admin, do, [which])

    try:
        yield create
    finally:
        for binding in reversed(created):
            change(admin.delete_acls, filter_of(binding))


def change_acls(
    admin: AdminClient, do: Callable[[list[Any]], Mapping[Any, Future[Any]]], which: Sequence[object]
) -> None:
    """Create or delete ACLs that do not exist or do, and wait until the broker applies the change."""

    def current() -> set[AclBinding]:
        """The broker's ACLs; an empty set if one of them denies this request."""
        return set(admin.describe_acls(EVERY_ACL).result(LIMIT_SECONDS))

    def is_applied() -> bool:
        now = current()
        # One that denies or allows this request hides or shows all of them.
        return now != before and (len(now ^ before) == len(which) or not now or not before)

    before = current()
    for future in do(list(which)).values():
        future.result(LIMIT_SECONDS)
    # The controller answers a moment before the broker's authorizer has the change.
    wait_until(is_applied, "the broker's authorizer has the change")


def filter_of(binding: AclBinding) -> Any:
    """The filter that names one ACL."""
    return AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )

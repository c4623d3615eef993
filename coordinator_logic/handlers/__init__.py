"""One small file per API. Each registers its name, key, versions and types; this is the registry.

Nothing else in the project says which APIs and versions there are.
"""

from typing import Any

from coordinator_logic.handlers import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
    topics_deleted,
    txn_offset_commit,
    write_txn_markers,
)
from coordinator_logic.handlers.api import Api

APIS: dict[str, Api[Any]] = {
    api.name: api
    for api in (
        find_coordinator.API,
        join_group.API,
        sync_group.API,
        heartbeat.API,
        leave_group.API,
        offset_commit.API,
        offset_fetch.API,
        describe_groups.API,
        delete_groups.API,
        offset_delete.API,
        txn_offset_commit.API,
        write_txn_markers.API,
        topics_deleted.API,
    )
}
"""The APIs that a request event can name, by name."""

__all__ = ["APIS", "Api"]

"""Grafana's dashboards, written to deploy/grafana: the fleet of groups, the groups that rebalance, and the engine."""

import json
from typing import Any, NamedTuple

__all__ = ["expressions", "files"]

SCHEMA_VERSION = 39
"""Of Grafana 10; later releases migrate a dashboard when they import it."""

WIDTH, HEIGHT, COLUMNS = 12, 8, 2
"""A panel's size, of a grid 24 wide, and how many are side by side."""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Panel(NamedTuple):
    """A graph: its title, its queries by legend, and Grafana's name of the unit."""

    title: str
    queries: dict[str, str]
    unit: str = "short"
    description: str = ""


def _quantile(quantile: str, metric: str, label: str) -> str:
    return f"histogram_quantile({quantile}, sum by (le, {label}) (rate({metric}_bucket[$__rate_interval])))"


FLEET = [
    Panel("Groups by state", {"{{state}}": "sum by (state) (group_coordinator_groups)"}),
    Panel("Members", {"members": "sum(group_coordinator_members)"}),
    Panel(
        "Rebalances a minute", {"completed": "60 * sum(rate(group_coordinator_rebalances_completed_total[5m]))"}, "none"
    ),
    Panel(
        "Offsets a second",
        {
            "committed": "sum(rate(group_coordinator_offsets_committed_total[$__rate_interval]))",
            "deleted": "sum(rate(group_coordinator_offsets_deleted_total[$__rate_interval]))",
            "expired": "sum(rate(group_coordinator_offsets_expired_total[$__rate_interval]))",
        },
    ),
    Panel("Requests a second", {"{{api}}": "sum by (api) (rate(group_coordinator_requests_total[$__rate_interval]))"}),
    Panel(
        "Refused requests a second",
        {
            "{{api}} {{error}}": "sum by (api, error) "
            '(rate(group_coordinator_requests_total{error!="NONE"}[$__rate_interval]))'
        },
    ),
    Panel("Jobs", {"active": "sum(group_coordinator_active)", "standby": "sum(group_coordinator_standby)"}),
    Panel(
        "Committed offsets that went back",
        {"{{cause}}": "sum by (cause) (increase(group_coordinator_offsets_moved_back_total[5m]))"},
        description="Partitions whose committed offset became lower, by a client's commit or an operator's reset.",
    ),
    Panel("Rejected records", {"{{cause}}": "sum by (cause) (increase(group_coordinator_rejects_total[5m]))"}),
]

GROUP = [
    Panel(
        "Groups that have long been rebalancing",
        {"{{group}}": 'max by (group) (group_coordinator_group_rebalancing_seconds{group=~"$group"})'},
        "s",
        "At most ten groups, each once it has rebalanced for 15 s.",
    ),
    Panel("Longest rebalance under way", {"longest": "max(group_coordinator_longest_rebalance_seconds)"}, "s"),
    Panel(
        "Groups that rebalance",
        {"{{state}}": 'sum by (state) (group_coordinator_groups{state=~"PreparingRebalance|CompletingRebalance"})'},
    ),
    Panel(
        "Latency of joining, 99%",
        {
            "{{api}}": "histogram_quantile(0.99, sum by (le, api) (rate("
            'group_coordinator_request_latency_seconds_bucket{api=~"JoinGroup|SyncGroup"}[$__rate_interval])))'
        },
        "s",
        "It includes the wait for the other members.",
    ),
]

ENGINE = [
    Panel("Latency, 99%", {"{{api}}": _quantile("0.99", "group_coordinator_request_latency_seconds", "api")}, "s"),
    Panel(
        "Batch by phase, 90%", {"{{phase}}": _quantile("0.9", "group_coordinator_batch_phase_seconds", "phase")}, "s"
    ),
    Panel(
        "Slow batches by cause",
        {"{{cause}}": "sum by (cause) (increase(group_coordinator_slow_batches_total[$__rate_interval]))"},
        description="Batches that took more than 400 ms.",
    ),
    Panel("Backlog", {"requests": "sum(group_coordinator_backlog_requests)"}),
    Panel("Time to work off the backlog", {"backlog": "max(group_coordinator_backlog_seconds)"}, "s"),
    Panel("Clock skew between brokers and driver", {"skew": "group_coordinator_clock_skew_seconds"}, "s"),
    Panel("Readers", {"{{instance}} {{reader}}": "group_coordinator_reader_alive"}),
    Panel(
        "Gateway: latency by handler, 99%",
        {"{{api}}": _quantile("0.99", "group_coordinator_gateway_handler_seconds", "api")},
        "s",
    ),
    Panel("Gateway: connections", {"{{instance}}": "group_coordinator_gateway_connections"}),
]

DASHBOARDS = {"fleet": FLEET, "group": GROUP, "engine": ENGINE}


def expressions() -> list[str]:
    """Every query of the dashboards, in PromQL."""
    return [query for panels in DASHBOARDS.values() for panel in panels for query in panel.queries.values()]


def files() -> dict[str, str]:
    """The dashboards by name, as Grafana imports them."""
    return {name: json.dumps(_dashboard(name, panels), indent=1) + "\n" for name, panels in DASHBOARDS.items()}


def _dashboard(name: str, panels: list[Panel]) -> dict[str, Any]:
    variables: list[dict[str, Any]] = [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
    if panels is GROUP:
        variables.append({"name": "group", "label": "Group id (regular expression)", "type": "textbox", "query": ".*"})
    return {
        "uid": f"group-coordinator-{name}",
        "title": f"Group coordinator: {name}",
        "tags": ["kafka", "group-coordinator"],
        "schemaVersion": SCHEMA_VERSION,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": variables},
        "panels": [_panel(place, panel) for place, panel in enumerate(panels)],
    }


def _panel(place: int, panel: Panel) -> dict[str, Any]:
    return {
        "id": place + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": {"x": place % COLUMNS * WIDTH, "y": place // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": DATASOURCE, "expr": query, "legendFormat": legend}
            for index, (legend, query) in enumerate(panel.queries.items())
        ],
    }

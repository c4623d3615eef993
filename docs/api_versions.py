"""The table of all APIs, rendered from :mod:`coordinator_logic.apis`."""

from typing import Any

from coordinator_logic.apis import APIS, LIST_GROUPS, Api


def markdown() -> str:
    """Render the table as Markdown: an API a row, in the order of the keys; an event without a key comes last."""
    served = [*APIS.values(), LIST_GROUPS]
    lines = ["| API | key | versions | what a version changed |", "|---|---|---|---|"]
    lines += [_row(api) for api in sorted(served, key=lambda api: (api.key is None, api.key))]
    return "\n".join(lines) + "\n"


def _row(api: Api[Any, Any]) -> str:
    key = "none" if api.key is None else str(api.key)
    versions = f"{api.min_version}-{api.max_version}" if len(api.versions) > 1 else str(api.min_version)
    changes = "<br>".join(f"v{version} {change}" for version, change in api.changes.items())
    return f"| {api.name} | {key} | {versions} | {changes} |"

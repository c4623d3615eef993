"""The name of this distribution, and the versions of what is installed."""

from importlib import metadata

DISTRIBUTION = "spark-group-coordinator"


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution, None if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None

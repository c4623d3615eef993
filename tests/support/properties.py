"""How many random examples a property gets, and whether they are the same in each run.

``make test`` draws the same examples in every run (hypothesis' own profile "ci"), so that it fails only for what has
changed. ``make properties`` draws new ones, and as many as it is given.
"""

import os

from hypothesis import HealthCheck, settings

EXAMPLES_VARIABLE = "PROPERTY_EXAMPLES"
"""The environment variable with the number of new random examples for each property."""

_NEW_EXAMPLES = int(os.environ.get(EXAMPLES_VARIABLE, "0"))


def load_profile() -> None:
    """Choose between fixed and new examples. Call it before the properties are imported."""
    if not _NEW_EXAMPLES:
        settings.load_profile("ci")
        return
    settings.register_profile(
        "new examples",
        max_examples=_NEW_EXAMPLES,
        derandomize=False,
        # With a database, hypothesis would begin with the failures of earlier runs.
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("new examples")


def examples(number: int) -> settings:
    """Give a property ``number`` fixed examples instead of hypothesis' 100; new ones are as many as for the others."""
    return settings(max_examples=_NEW_EXAMPLES or number)

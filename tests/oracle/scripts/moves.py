"""The moves and actors of random scripts, as hypothesis strategies.

The frequency of a value in a tuple is its weight. Changes of these tuples change the scripts of all seeds.
"""

from dataclasses import dataclass
from typing import NamedTuple

from hypothesis import strategies as st

from tests.oracle.reference_broker import TOPICS

ACTORS = 4
# No two sums of these are close: the order in which simultaneous deadlines fire is undefined.
SESSIONS_MS = (690, 1_570, 2_330)
REBALANCES_MS = (870, 1_310, 1_910)
INSTANCES = (None, None, None, "s1", "s1", "s2")
PREFERENCES = (
    ("range",),
    ("range", "sticky"),
    ("sticky", "range"),
    ("roundrobin", "range", "sticky"),
    ("cooperative-sticky",),
)
UNEXPECTED_ACTIONS = (
    "join",
    "sync",
    "heartbeat",
    "leave",
    "leave",
    "commit",
    "commit",
    "fetch",
    "describe",
    "delete",
    "delete offsets",
    "transaction",
    "transaction",
)
ACTIONS = (*("next",) * 24, *UNEXPECTED_ACTIONS)


class Move(NamedTuple):
    """An action of an actor after a pause (ms, or until the next deadline). ``variation`` selects its details."""

    actor: int
    action: str
    variation: int
    pause: str | int


MOVES = st.builds(
    Move,
    st.integers(0, ACTORS - 1),
    st.sampled_from(ACTIONS),
    st.integers(0, 2**16 - 1),
    st.sampled_from((*(0,) * 22, 60, 150, 300, 500, 800, *("deadline",) * 3)),
)


@dataclass(frozen=True)
class Actor:
    """The constant properties of an actor in one script."""

    number: int
    instance: str | None
    session_ms: int
    rebalance_ms: int
    preference: tuple[str, ...]
    topics: tuple[str, ...]


ACTOR_TRAITS = st.tuples(
    st.sampled_from(INSTANCES),
    st.sampled_from(SESSIONS_MS),
    st.sampled_from(REBALANCES_MS),
    st.sampled_from(PREFERENCES[:4]),
    st.sampled_from([TOPICS[:1], TOPICS, TOPICS[1:]]),
)
ACTOR_LISTS = st.sampled_from((1, 2, 2, 3, 3, 4)).flatmap(
    lambda size: st.lists(ACTOR_TRAITS, min_size=size, max_size=size)
)

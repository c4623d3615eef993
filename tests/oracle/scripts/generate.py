"""Generate random scripts with hypothesis, without a broker.

Hypothesis draws the actors and their moves; :class:`ScriptGenerator` turns them into requests.
"""

from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.oracle.scripts.moves import ACTOR_LISTS, MOVES, Actor, Move
from tests.oracle.scripts.script import Script
from tests.oracle.scripts.script_generator import ScriptGenerator


def random_scripts(count: int, *, seed_number: int, requests: int) -> list[Script]:
    """Generate ``count`` scripts with about ``requests`` requests each; the n-th depends on the seed and n only."""
    return [_random_script(seed_number, number, requests) for number in range(count)]


def _random_script(seed_number: int, number: int, requests: int) -> Script:
    drawn: list[Script] = []

    # Hypothesis generates the simplest example first; later examples can be mutations of the second.
    @seed(f"{seed_number}/{number}")
    @settings(
        max_examples=2,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(ACTOR_LISTS, st.lists(MOVES, min_size=requests, max_size=requests))
    def draw(traits_of_actors: list[Any], moves: list[Move]) -> None:
        actors = [Actor(number, *traits) for number, traits in enumerate(traits_of_actors)]
        drawn.append(Script(f"{seed_number}/{number}", ScriptGenerator(actors).steps_for(moves)))

    draw()
    return drawn[-1]

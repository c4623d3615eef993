"""The bounds of the searches."""

from tests.logic.exhaustive.consumers.world import Scope

TWO, THREE = (None, None), (None, None, None)

SCOPES = {
    "one that loses responses": Scope((None,), loses=True, later=(("t", 3),)),
    "two": Scope(TWO),
    "two that lose responses": Scope(TWO, loses=True, keeps_quiet=False),
    "three": Scope(THREE, keeps_quiet=False, has_history=False, leaves=False),
    "a static one": Scope(("i", None), keeps_quiet=False),
    "one that speaks the classic protocol": Scope(TWO, classic=1, keeps_quiet=False, has_history=False),
    "a topic that grows": Scope(TWO, later=(("t", 3),), has_history=False),
    "two subscriptions": Scope(
        TWO, subscriptions=(("t",), ("u",)), topics=(("t", 1), ("u", 1)), keeps_quiet=False, has_history=False
    ),
    "subscriptions and an interval": Scope(
        (None,),
        subscriptions=(("t",), ("u",)),
        topics=(("t", 1), ("u", 1)),
        keeps_quiet=False,
        assignment_interval_ms=1_000,
    ),
    "three subscriptions of one": Scope(
        (None,), subscriptions=(("t",), ("u",), ("t", "u")), topics=(("t", 1), ("u", 1)), keeps_quiet=False
    ),
    "a pattern": Scope(
        TWO, pattern="t.*", topics=(("t", 1),), later=(("t2", 1),), keeps_quiet=False, has_history=False
    ),
    "an assignment interval": Scope(TWO, assignment_interval_ms=1_000, keeps_quiet=False),
}

WIDE_SCOPES = {
    name: SCOPES[name]
    for name in (
        "two that lose responses",
        "three",
        "a topic that grows",
        "two subscriptions",
        "an assignment interval",
    )
}
"""They reach nothing that the others together do not reach."""

LARGE_SCOPES = {
    "two and one that speaks the classic protocol": Scope(
        THREE, classic=1, keeps_quiet=False, has_history=False, leaves=False
    ),
    "three that leave": Scope(THREE, keeps_quiet=False, has_history=False),
    "two static ones": Scope(("i", "j"), keeps_quiet=False),
    "two subscriptions, with history": Scope(
        TWO, subscriptions=(("t",), ("u",)), topics=(("t", 1), ("u", 1)), keeps_quiet=False
    ),
}
"""They take minutes."""

"""Why a drill could not be finished."""


class DrillFailed(Exception):
    """A step of a drill failed, or something that it waits for did not happen; the message names it."""


class DrillSkipped(Exception):
    """The drill cannot be done on this machine; the message says what is missing."""

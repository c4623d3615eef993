"""Errors that the user of a command can correct. The command line prints their messages without a traceback."""


class CannotRun(Exception):
    """The process cannot start or cannot go on. The message has one line for each problem, with its place."""


class BrokersFailed(CannotRun):
    """Kafka's brokers did not do what the process needs now. They may do it a moment later: after an outage, brokers
    come back one after the other.
    """


class BadOptions(Exception):
    """Options are missing or invalid. The message has one line for each problem and names the source of the value."""

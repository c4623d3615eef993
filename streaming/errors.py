"""What can go wrong at the job's start or end in a way that its user can mend."""


class CannotRun(Exception):
    """The job cannot start, or ended by itself. The message is complete: a line per problem, what and where."""

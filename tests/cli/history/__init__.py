"""The commands that read the journal: ``replay``, ``events --publish`` and everything with a time."""

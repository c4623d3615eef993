"""A gateway whose coordinator is the logic itself, and members that a test drives through it."""

"""Wake events: when they are due, when they are appended, and what an idle job does."""

"""The commands about what happened to groups, and what happens now."""

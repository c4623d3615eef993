"""The two coordinators that run a script, and the comparison of their responses."""

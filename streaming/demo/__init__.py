"""The demo: a group's life on one machine, with real processes, real crashes and checks at the end."""

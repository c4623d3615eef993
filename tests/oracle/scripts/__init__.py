"""Scripts of requests: their format, hand-written and random ones, shrinking and printing."""

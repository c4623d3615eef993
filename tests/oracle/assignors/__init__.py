"""Comparison of the assignors and their bytes with the classes of kafka-clients."""

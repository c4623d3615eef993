"""Comparison with a real broker: the same scripts of requests run against its coordinator and against our logic.

``scripts`` generates, shrinks and prints scripts. ``sides`` runs one script against both coordinators and compares the
responses. ``campaign`` runs many scripts concurrently, and ``assignors`` compares assignors with Kafka's Java classes.
"""

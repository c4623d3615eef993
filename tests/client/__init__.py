"""Tests of ``streaming.client``, most of them against a real coordinator or against scripted answers."""

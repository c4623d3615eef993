"""Tests that do not pass through the gateway, by class and method, each with the reason."""

from collections.abc import Mapping

CANNOT_RUN: Mapping[str, str] = {}

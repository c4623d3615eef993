"""Tests of the bytes of subscriptions and assignments."""

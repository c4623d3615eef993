"""Tests of the contract between coordinator and clients."""

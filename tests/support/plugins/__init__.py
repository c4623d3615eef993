"""Plugins of pytest for this project's tests; ``tests/conftest.py`` loads them."""

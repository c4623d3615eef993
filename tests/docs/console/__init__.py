"""What documents give to type, played in real terminals; `python -m tests.docs.console` writes docs/console."""

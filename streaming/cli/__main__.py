"""Run the command as ``python -m streaming.cli``."""

from streaming.cli.main import main

main()

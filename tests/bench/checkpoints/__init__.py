"""How long the commands for checkpoints take with many groups."""

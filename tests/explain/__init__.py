"""What the journal tells."""

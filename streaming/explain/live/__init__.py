"""What happens now in all groups: the fleet as of this second, and the terminal's view of it."""

"""Records that someone outside a group appends: none harms another group, or is taken for more than it is."""

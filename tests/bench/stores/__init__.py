"""What a checkpoint in an object store costs, and what idle groups add to a batch."""

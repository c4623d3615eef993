"""What a checkpoint in an object store costs."""

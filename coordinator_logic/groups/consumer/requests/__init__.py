"""The requests that a consumer group answers in its own way, one file each."""

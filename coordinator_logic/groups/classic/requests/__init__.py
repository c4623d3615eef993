"""The requests of the classic protocol, one file each."""

"""Programs of others, which the tests build or unpack in the cache of the user."""

"""Members of a group in Python; they take the options of Kafka's VerifiableConsumer, and tell what it tells."""

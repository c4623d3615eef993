"""Group members in Python, with the options and events of Kafka's VerifiableConsumer."""

"""Random scripts against Kafka's own group manager, in fake time and without a broker: the judge of consumer groups."""

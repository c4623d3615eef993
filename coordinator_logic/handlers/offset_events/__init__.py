"""The APIs about offsets that Kafka's protocol does not have, one file each. May import what the other handlers may."""

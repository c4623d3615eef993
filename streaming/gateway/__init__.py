"""Kafka's wire protocol and the messages of this project: how the one becomes the other."""

"""Sessions at the keyboard, with what the commands print, and the Kafka client that they use."""

"""Everything that touches Spark, Kafka or a clock: the job, its clients, and the tools around them."""

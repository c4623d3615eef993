"""`make bench`: what the job costs and how quick it is, beside the same query with Spark's default settings."""

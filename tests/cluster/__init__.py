"""The job on a Spark cluster whose hosts have Spark, Java and a Python, and nothing of the job."""

"""Measurements of the job on a Spark cluster."""

"""Checkpoints at s3a://, on a server of S3 that the tests start."""

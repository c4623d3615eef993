"""Jobs as the election sees them."""

from streaming.job.election.announcements import ActiveJob

TRANSACTIONAL_ID = "active-job-of-"


def job(host: str) -> ActiveJob:
    """The description of a job on this host."""
    return ActiveJob(epoch=0, host=host, process_id=1, started_at=0, version="test")

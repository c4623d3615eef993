"""Jobs as the election sees them."""

from streaming.embedded.process_identity import process_identity
from streaming.job.election.announcements import ActiveJob

TRANSACTIONAL_ID = "active-job-of-"


def job(host: str) -> ActiveJob:
    """The description of a job in this process, as if on this host."""
    return ActiveJob(epoch=0, host=host, process_id=1, started_at=0, version="test", process=process_identity())

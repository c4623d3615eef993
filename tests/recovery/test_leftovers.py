"""What a job that is killed leaves in the folder for temporary files, and that the next start clears it."""

from pathlib import Path

from streaming.embedded.broker import EmbeddedBroker
from tests.support.coordinator_process import CoordinatorProcess

SPARKS_FOLDERS = ("spark-*", "blockmgr-*", "artifacts*")


def test_everything_temporary_is_in_one_folder_which_the_next_start_clears(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path, environment={"TMPDIR": str(place)}) as job:
        job.start()
        (first,) = place.iterdir()
        assert [pattern for pattern in SPARKS_FOLDERS if not list(first.glob(pattern))] == []
        job.kill()
        assert first.exists()
        job.start()
        (second,) = place.iterdir()
        assert second != first
        assert job.stop() == 0
    assert list(place.iterdir()) == []

"""Workers and drivers of a cluster that are killed: no commit is lost."""

from pathlib import Path

from tests.cluster.standalone import StandaloneCluster
from tests.support.coordinator_process import READY_LIMIT_SECONDS, CoordinatorProcess, commit_offsets, committed_offsets


def test_commits_go_on_when_a_worker_is_killed_and_on_one_that_joins_later(
    cluster: StandaloneCluster, coordinator: CoordinatorProcess, group: str
) -> None:
    first, second = cluster.workers
    commit_offsets(coordinator, group, 1)
    first.kill()
    commit_offsets(coordinator, group, 2)
    cluster.start_workers(first)
    assert committed_offsets(coordinator, group) == [2]
    second.kill()
    commit_offsets(coordinator, group, 3)
    assert committed_offsets(coordinator, group) == [3]
    assert cluster.executors(first)
    cluster.start_workers(second)


def test_a_standby_with_executors_of_its_own_takes_over_from_a_driver_that_is_killed(
    coordinator: CoordinatorProcess, options: dict[str, object], group: str, tmp_path: Path
) -> None:
    same = {"checkpoint": str(coordinator.checkpoint), "topic-prefix": coordinator.topics.prefix, "standby": True}
    with CoordinatorProcess(coordinator.bootstrap_servers, tmp_path, options | same) as standby:
        standby.launch()
        standby.await_line("that it stands by", lambda line: "standby: the job on" in line, READY_LIMIT_SECONDS)
        commit_offsets(coordinator, group, 7)
        coordinator.kill()
        assert committed_offsets(standby, group) == [7]
        commit_offsets(standby, group, 8)
        assert committed_offsets(standby, group) == [8]

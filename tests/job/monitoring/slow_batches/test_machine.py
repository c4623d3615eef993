"""What is read of Linux's files, and of what other systems have."""

from pathlib import Path

import pytest

from streaming.job.monitoring.slow_batches.machine import Machine, Speed


def test_the_figures_of_linux_are_seconds(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  100 20 300 5000 40 5 6 70 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
    (tmp_path / "pressure").mkdir()
    for name, total in [("cpu", 2_500_000), ("io", 1_000), ("memory", 0)]:
        (tmp_path / "pressure" / name).write_text(
            f"some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"
        )
    (tmp_path / "cpu.stat").write_text("usage_usec 99\nnr_throttled 3\nthrottled_usec 1500000\n")
    used = Machine(tmp_path, tmp_path / "cpu.stat").used()
    assert used["machine-cpu"] == pytest.approx(4.31)
    assert used["stolen"] == pytest.approx(0.7)
    assert used["waiting-for-cpu"] == 2.5
    assert used["waiting-for-disk"] == 0.001
    assert used["waiting-for-memory"] == 0.0
    assert used["throttled"] == 1.5
    assert used["job-cpu"] > 0


def test_a_system_without_these_files_reports_its_processes_and_its_speed(tmp_path: Path) -> None:
    assert Machine(tmp_path, tmp_path / "cpu.stat").used().keys() == {"job-cpu", "slowed"}


def test_a_file_of_another_form_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("processors 2\n")
    assert "machine-cpu" not in Machine(tmp_path, tmp_path / "cpu.stat").used()


def test_what_is_lost_by_a_slow_processor_is_relative_to_its_fastest() -> None:
    speed = Speed()
    assert speed.slowed(10.0, 0.001) == 0.0
    assert speed.slowed(12.0, 0.001) == 0.0
    assert speed.slowed(13.0, 0.002) == 0.5
    assert speed.slowed(14.0, 0.001) == 0.5

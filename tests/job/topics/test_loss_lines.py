"""What a start says of requests that the topic no longer has; without brokers."""

from streaming.job.topics.losses import FORGOTTEN, MEANING, count_replayed, loss_lines, within_log

READ, END = {0: 10, 1: 10}, {0: 100, 1: 100}


def test_requests_that_no_job_had_read_had_no_answer() -> None:
    (line,) = loss_lines("requests", READ, {}, {0: 15, 1: 10}, END)
    assert "lost 5 requests that the job had not read" in line
    assert "(partition 0: offsets 10 to 14)" in line
    assert line.endswith(MEANING)


def test_requests_that_a_later_job_had_answered_are_named_as_lost_changes() -> None:
    forgotten, unread = loss_lines("requests", READ, {0: 13, 1: 40}, {0: 15, 1: 20}, END)
    assert "lost 13 requests that the last active job had answered" in forgotten
    assert "(partition 0: offsets 10 to 12, partition 1: offsets 10 to 19)" in forgotten
    assert forgotten.endswith(FORGOTTEN)
    assert "lost 2 requests that the job had not read" in unread
    assert "(partition 0: offsets 13 to 14)" in unread


def test_a_checkpoint_that_is_not_older_has_lost_no_answered_request() -> None:
    assert loss_lines("requests", READ, {0: 5, 1: 10}, {0: 10, 1: 3}, END) == []


def test_only_requests_that_the_topic_still_has_are_counted_as_read_again() -> None:
    assert count_replayed({0: 10}, {0: 30, 1: 5}, {0: 25, 1: 0}) == 10
    assert count_replayed({0: 10}, {0: 30}, {0: 40}) == 0


def test_requests_that_the_log_does_not_have_were_read_by_nobody() -> None:
    # As another writer names them in an announcement or a journal entry: behind the end, and in no partition.
    assert within_log({0: 2**60, 1: 7, 99: 5}, {0: 20, 1: 10}) == {0: 20, 1: 7}

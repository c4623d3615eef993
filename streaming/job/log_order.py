"""The order in which a group handles the records of a batch."""

from operator import itemgetter

from streaming.job.rows.records import KafkaRecord

_place = itemgetter(0, 1, 2)
"""A record's place in the log: timestamp, partition and offset. No two records share one."""

_log_position = itemgetter(1, 2)
"""A record's partition and offset."""


def sort_records(records: list[KafkaRecord]) -> None:
    """Sort a group's records by timestamp, partition and offset.

    Within a partition, later offsets never come first: if a broker's clock leaps, a record counts as no older than
    those before it in its partition. Otherwise a client's earlier commit could replace its later one.
    """
    if len(records) < 2:
        return
    records.sort(key=_log_position)
    if records[0].partition == records[-1].partition:
        # As nearly always: a group's clients write to one partition.
        return
    records.sort(key=_place)
    if _follows_offsets(records):
        return
    newest: dict[int, int] = {}
    order: dict[tuple[int, int], int] = {}
    for record in sorted(records, key=_log_position):
        newest[record.partition] = max(record.timestamp, newest.get(record.partition, record.timestamp))
        order[record.partition, record.offset] = newest[record.partition]
    records.sort(key=lambda record: (order[record.partition, record.offset], record.partition, record.offset))


def _follows_offsets(records: list[KafkaRecord]) -> bool:
    last: dict[int, int] = {}
    for record in records:
        if record.offset < last.get(record.partition, 0):
            return False
        last[record.partition] = record.offset
    return True

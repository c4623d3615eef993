"""Write the rows for the Kafka sink: answers, dead letters, and records of the journal and the directory.

Errors and dead letters are cut until they fit, and say so; everything else that does not fit raises
:class:`RowTooLarge`.
"""

from functools import lru_cache

import msgspec

from coordinator_logic.apis import APIS
from coordinator_logic.errors import Error
from coordinator_logic.events import ReplyAddress, Response
from coordinator_logic.messages import NO_BODY, GroupChange, Int16, Message, ResponseEnvelope
from coordinator_logic.records import GroupDirectoryEntry, JournalEntry
from streaming.client.key_partition import partition_of_key
from streaming.contract.topics import LONGEST_GROUP_ID_BYTES, TopicNames
from streaming.job import measures
from streaming.job.hostile_records.least_sizes import least_size
from streaming.job.rows.reading import CutFrom, Rejection
from streaming.job.rows.records import DEFAULT_LIMITS, MIN_ROW_BYTES, KafkaRecord, Row, SizeLimits

LONGEST_REASON = 4_000
LONGEST_JSON_CHARACTER = 6
"""The most bytes of a character in JSON: a control character is written as ``\\u0000``."""

_encoder = msgspec.json.Encoder()


class DeadLetter(Message, frozen=True, omit_defaults=True):
    """The value of a record of ``group-rejects``; its key is the key of the rejected record.

    ``partition``, ``offset`` and ``timestamp`` (ms) are those of the rejected record in ``group-requests``, or -1 if no
    record caused the reject (a snapshot that cannot be read, an exception in a timer). A key or a value that is too
    large is cut: ``key_cut_from`` and ``value_cut_from`` are the original sizes in bytes, absent if nothing was cut.
    """

    reason: str
    error_code: Int16
    partition: int
    offset: int
    timestamp: int
    value: bytes | None
    key_cut_from: int = 0
    value_cut_from: int = 0


class RowTooLarge(Exception):
    """A row exceeds the size limit of its topic; the message names the topic and the size."""


class RowWriter:
    """Writes the rows of one group in one batch.

    Args:
        topics: The topics of the rows.
        group_id: The group.
        batch_time: The batch's time, ms since the epoch.
        limits: The sizes that no row exceeds.
        epoch: The epoch of the job, which every answer names.
        keyed_partitions: In how many partitions of the journal and of the directory keys lie; 0 leaves it to the
            producer, which counts the present ones.
    """

    __slots__ = (
        "_batch_time",
        "_directory_partition",
        "_epoch",
        "_group_id",
        "_journal_partition",
        "_limits",
        "_topics",
    )

    def __init__(
        self,
        topics: TopicNames,
        group_id: str,
        batch_time: int,
        limits: SizeLimits = DEFAULT_LIMITS,
        epoch: int = 0,
        keyed_partitions: tuple[int, int] = (0, 0),
    ) -> None:
        in_journal, in_directory = keyed_partitions
        self._journal_partition = _partition_of_group(group_id, in_journal) if in_journal else None
        self._directory_partition = _partition_of_group(group_id, in_directory) if in_directory else None
        self._topics = topics
        self._group_id = group_id
        self._batch_time = batch_time
        self._limits = limits
        self._epoch = epoch

    def response(self, response: Response, directory_change: GroupChange | None = None) -> Row:
        """Write a response; the group's directory entry of the batch shows that change, if there is one.

        Raises :class:`RowTooLarge`.
        """
        if (size := least_size(response.body)) > self._limits.row:
            raise self._too_large(self._topics.responses, f"more than {size}")
        address = response.address
        envelope = ResponseEnvelope(
            api=address.api,
            version=address.version,
            correlation_id=address.correlation_id,
            group_id=response.group_id,
            error_code=response.error_code,
            body=msgspec.Raw(_encoder.encode(response.body)),
            job_epoch=self._epoch,
            directory_change=directory_change or msgspec.UNSET,
        )
        return self._within_limit(self._answer(address, envelope))

    def error(self, address: ReplyAddress, error: Error, reason: str) -> Row:
        """Write the response to a request that could not be handled: an error code and a message, without a body.

        A group id or a reason that does not fit is cut.
        """
        envelope = ResponseEnvelope(
            api=address.api,
            version=address.version,
            correlation_id=address.correlation_id,
            group_id=self._group_id,
            error_code=error,
            body=NO_BODY,
            error_message=reason[:LONGEST_REASON],
            job_epoch=self._epoch,
        )
        row = self._answer(address, envelope)
        if len(row.key or b"") + len(row.value or b"") <= self._limits.row:
            return row
        longest = (self._limits.row - MIN_ROW_BYTES) // LONGEST_JSON_CHARACTER + LONGEST_GROUP_ID_BYTES
        return self._answer(address, msgspec.structs.replace(envelope, group_id=self._group_id[:longest]))

    def reject(self, rejection: Rejection) -> Row:
        """Write the dead letter of a rejected record. A key or a value that does not fit is cut."""
        record, cut_from = rejection.record, rejection.cut_from
        if len(record.key or b"") + _base64_size(len(record.value or b"")) > self._dead_letter_bytes:
            record, cut_from = self._cut(record, cut_from)
        dead_letter = DeadLetter(
            rejection.reason[:LONGEST_REASON],
            rejection.error,
            record.partition,
            record.offset,
            record.timestamp,
            record.value,
            cut_from.key,
            cut_from.value,
        )
        measure = measures.RejectedRecord(rejection.cause)
        return Row(self._topics.rejects, None, record.key, _encoder.encode(dead_letter), measure)

    def journal(self, entry: JournalEntry, moved_back: int = 0) -> Row:
        """Write a journal entry, which made so many committed offsets lower. Raises :class:`RowTooLarge`."""
        topic = self._topics.journal
        if (size := least_size(entry.record)) > self._limits.row:
            raise self._too_large(topic, f"more than {size}")
        measure = measures.of_entry(entry, moved_back)
        value, partition = _encoder.encode(entry), self._journal_partition
        return self._within_limit(Row(topic, partition, entry.group_id.encode(), value, measure))

    def directory(self, entry: GroupDirectoryEntry | None, change: GroupChange | None = None) -> Row:
        """Write the group's directory entry, which shows that change; None writes the tombstone of a deleted group.

        Raises :class:`RowTooLarge`.
        """
        if entry is not None and change is not None:
            entry = msgspec.structs.replace(entry, incarnation=change.incarnation, sequence=change.sequence)
        value = None if entry is None else _encoder.encode(entry)
        key = self._group_id.encode()
        return self._within_limit(Row(self._topics.directory, self._directory_partition, key, value, None))

    def _answer(self, address: ReplyAddress, envelope: ResponseEnvelope) -> Row:
        api = address.api if address.api in APIS else "unknown"
        measure = measures.of_response(api, envelope.error_code, self._batch_time - address.requested_at)
        key, value = address.correlation_id.encode(), _encoder.encode(envelope)
        return Row(self._topics.responses, address.reply_partition, key, value, measure)

    @property
    def _dead_letter_bytes(self) -> int:
        """The most bytes of a record in its dead letter, the value as base64."""
        return self._limits.row - MIN_ROW_BYTES // 2

    def _cut(self, record: KafkaRecord, cut_from: CutFrom) -> tuple[KafkaRecord, CutFrom]:
        """Cut a record so that its dead letter fits: the key to the length that a group id can have, then the value."""
        key, value = record.key, record.value
        if key is not None and len(key) > LONGEST_GROUP_ID_BYTES:
            key, cut_from = key[:LONGEST_GROUP_ID_BYTES], cut_from._replace(key=cut_from.key or len(key))
        room = (self._dead_letter_bytes - len(key or b"")) // 4 * 3
        if value is not None and len(value) > room:
            value, cut_from = value[:room], cut_from._replace(value=cut_from.value or len(value))
        return record._replace(key=key, value=value), cut_from

    def _within_limit(self, row: Row) -> Row:
        size = len(row.key or b"") + len(row.value or b"")
        if size > self._limits.row:
            raise self._too_large(row.topic, str(size))
        return row

    def _too_large(self, topic: str, size: str) -> RowTooLarge:
        return RowTooLarge(f"a record for {topic} has {size} bytes; the limit is {self._limits.row}")


@lru_cache(maxsize=100_000)
def _partition_of_group(group_id: str, partitions: int) -> int:
    return partition_of_key(group_id.encode(), partitions)


def _base64_size(size: int) -> int:
    return (size + 2) // 3 * 4

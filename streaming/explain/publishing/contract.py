"""What the public contract says of the topic ``group-rebalances``."""

from streaming.contract.schema import FurtherTopic
from streaming.explain.publishing.records import PublishedRebalance

FIELDS = {
    "after": "The member's partitions after the rebalance, by topic.",
    "before": "The member's partitions before the rebalance, by topic.",
    "began": "When the rebalance began, ms since the epoch.",
    "came": "The members that came.",
    "causes": "The possible causes, the most probable one first.",
    "ended": "When the rebalance ended, ms since the epoch. Never null here.",
    "evidence": "The entries of the journal that show it; the last one began the rebalance.",
    "generation": "The generation that began, in a consumer group the epoch; null if none did.",
    "groupId": "The group id; also the record's key.",
    "groupType": "`classic`, or `consumer` for a consumer group (KIP-848).",
    "incarnation": "The incarnation of the group in the journal.",
    "isCertain": "Whether no other cause fits the journal.",
    "isCut": "Whether the record would be too large with its lists of members and all of its evidence, and lacks them.",
    "isInterrupted": "Whether another rebalance began before this one was complete.",
    "joined": "When the generation began, in a consumer group when its target was computed, ms since the epoch; null "
    "if that did not happen.",
    "journalPositions": "For the publisher: how far the journal was read, the offset of the next entry by partition.",
    "least": "How many partitions had to change their owner for a balanced assignment to the same members.",
    "member": "The member id; null if no member caused it.",
    "membersAfter": "The number of members at the end; null if it is not known.",
    "membersBefore": "The number of members at the beginning; null if it is not known.",
    "moved": "How many partitions got another owner.",
    "moves": "What moved; null if the assignment before is not known, or there was none.",
    "name": "The client id and host, or the member id if they are not known.",
    "needless": "How many partitions moved without need.",
    "partitions": "How many partitions are assigned.",
    "reason": "Why the member went; null if it came.",
    "record": "The type of the entry's record.",
    "sequence": "The number of the journal's entry with which the rebalance began; of evidence, that of the entry.",
    "shares": "The members whose partitions changed.",
    "since": "When the wait began, ms since the epoch.",
    "text": "Details in words, with the client's own reason where it sent one.",
    "timestamp": "The group's time, ms since the epoch.",
    "trigger": "What began the rebalance.",
    "until": "When the wait ended, ms since the epoch; null if the rebalance ended first.",
    "waitedFor": "The members for which the group waited.",
    "wasEmpty": "Whether it began with the initial delay of an Empty classic group.",
    "went": "The members that went.",
    "what": "What the member was to do.",
}
"""The description of each JSON field, by its name."""

REBALANCES = FurtherTopic("group-rebalances", PublishedRebalance, FIELDS)

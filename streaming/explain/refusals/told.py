"""The refused requests as a part of the story: like ones together, with figures and what is missing."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from streaming.contract.output.text import counted
from streaming.explain.refusals.asked import asked, generation_in, instance_in, member_in, sender_of, shortened
from streaming.explain.refusals.judging import Judge, Judgement
from streaming.explain.replay.world import COMMITS
from streaming.explain.story.model import Refused, RefusedRequest
from streaming.explain.story.triggers import evidence_of

REPEATED_WITHIN_MS = 600_000
"""A refusal so long after the last one like it is told again."""


def refused_of(judge: Judge, since: int | None, notes: Iterable[str] = ()) -> Refused:
    """What a judge has found, after the journal's last entry; requests were read from ``since`` on (ms)."""
    verdicts = judge.finish()
    refusals = _together(verdicts)
    counts = Counter[str]()
    for one in refusals:
        counts[one.name] += one.count
    busiest, count = counts.most_common(1)[0] if counts else (None, 0)
    return Refused(
        since,
        refusals,
        len(verdicts),
        sum(one.count for one in refusals if one.api in COMMITS),
        busiest,
        count,
        [*notes, *_missing(judge)],
    )


def _missing(judge: Judge) -> Iterable[str]:
    if judge.unknown:
        yield (
            f"Left out: {counted(judge.unknown, 'request')} from times for which the journal does not have the "
            "group's members."
        )
    if judge.unexplained:
        yield (
            f"Perhaps refused: {counted(judge.unexplained, 'commit')} that the group would have accepted, but of which "
            "the journal has no entry. The job had other options, or rejected the records."
        )
    for error, count in sorted(judge.by_options.items()):
        yield (
            f"Not shown: {counted(count, 'request')} that the default options refuse with {error}. The journal does "
            "not have the job's own options."
        )
    if judge.has_other_partitions:
        yield "The group also had requests in other partitions, which were not read."


def _together(verdicts: Iterable[Judgement]) -> list[RefusedRequest]:
    refusals: list[RefusedRequest] = []
    places: dict[tuple[object, ...], int] = {}
    for verdict in verdicts:
        request, error, loss = verdict
        body, time = request.body, request.place.timestamp
        key = (
            request.client_id,
            request.client_host,
            request.address.api,
            error,
            member_in(body),
            instance_in(body),
            generation_in(body),
        )
        place = places.get(key)
        if place is not None and time - refusals[place].last <= REPEATED_WITHIN_MS:
            one = refusals[place]
            refusals[place] = msgspec.structs.replace(one, last=max(one.last, time), count=one.count + 1)
            continue
        places[key] = len(refusals)
        instance = instance_in(body)
        refusals.append(
            RefusedRequest(
                time,
                time,
                1,
                request.address.api,
                error.name,
                sender_of(request),
                shortened(member_in(body)),
                None if instance is None else shortened(instance),
                generation_in(body),
                f"{asked(body)}: {loss.text}",
                loss.to,
                request.place.partition,
                request.place.offset,
                evidence_of(loss.entries),
            )
        )
    return refusals

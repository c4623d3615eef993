"""Random scripts: consumers of both protocols that mostly behave, and sometimes do not, while topics and time change.

A script is made while our side plays it, because what a consumer sends next depends on what it was answered.
"""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from coordinator_logic.embedded_protocols import Subscription, TopicPartition, encode_subscription
from coordinator_logic.groups.consumer.patterns import matching_topics
from tests.oracle.consumer.judge import Command
from tests.oracle.consumer.our_side import OurSide
from tests.support.parts import consumer_group, consumer_part

NAMES = ("t0", "t1", "t2", "u0", "absent")
SUBSCRIPTIONS: tuple[list[str], ...] = (["t0"], ["t0"], ["t0", "t1"], ["t0", "t1"], ["t1", "t2"], ["u0", "absent"], [])
PATTERNS = ("t.*", "t[01]", "u.*|t0", "none")
SLEEPS = (1, 100, 500, 500, 1_000, 1_000, 1_000, 3_000, 3_000, 5_000, 5_000, 10_001, 20_000, 45_000)
PROTOCOLS: tuple[list[str], ...] = (["range"], ["range"], ["range", "roundrobin"], ["roundrobin"])
REVOKE_MS = (3_333, 10_777, 60_555)
INSTANCES = (None, None, None, "i0", "i1", "i1")
"""The instance id of each consumer; two share one, as a consumer and the one that replaces it."""


@dataclass
class Actor:
    """A consumer: what it was answered, and what it owns by topic id."""

    member_id: str
    instance_id: str | None
    epoch: int | None = None
    previous_epoch: int = 0
    owned: dict[str, list[int]] = field(default_factory=dict)
    assigned: dict[str, list[int]] = field(default_factory=dict)
    is_classic: bool = False


@dataclass
class Played:
    """A script: its commands, and our side's answer to each."""

    commands: list[Command]
    answers: list[dict[str, Any]]


def play(seed: int, length: int) -> Played:
    """Make and play the script of a seed; it has ``length`` commands after the first."""
    return _Script(Random(seed)).play(length)


def replay(commands: list[Command]) -> Played:
    """Play commands again, of which some may have been left out."""
    ours = OurSide(commands[0])
    answers = [{"error": 0, "group": {"error": 69}}, *(ours.answer(command) for command in commands[1:])]
    return Played(commands, answers)


class _Script:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._topic_ids, self._member_ids = 0, len(INSTANCES)
        described = [self._topic(name, random.randint(1, 4)) for name in ("t0", "t1") if random.random() < 0.9]
        config: dict[str, Any] = {"group.consumer.assignment.interval.ms": random.choice((0, 0, 1_000, 5_000))}
        if random.random() < 0.2:
            config["group.consumer.max.size"] = 2
        self._begin: Command = {"op": "begin", "config": config, "described": described, "deleted": []}
        self._ours = OurSide(self._begin)
        self._actors = [Actor(f"m{number}", instance) for number, instance in enumerate(INSTANCES)]
        self._uses_patterns = random.random() < 0.4
        self._has_classic = random.random() < 0.5

    def play(self, length: int) -> Played:
        played = Played([self._begin], [{"error": 0, "group": {"error": 69}}])
        moves: list[Callable[[], Command]] = [self._follow] * 18 + [self._join, self._sleep, self._sleep]
        moves += [self._odd_beat, self._resubscribe, self._leave, self._change_topics, self._commit, self._operate]
        moves += [self._classic_join] * 3 * self._has_classic
        while len(played.commands) <= length:
            command = self._random.choice(moves)()
            answer = self._ours.answer(command)
            played.commands.append(command)
            played.answers.append(answer)
            if command["op"] == "beat":
                self._learn(command["body"], answer)
            elif command["op"] in ("join", "sync", "heartbeat"):
                self._learn_classic(command, answer)
        return played

    # ---- consumers -----------------------------------------------------------------------------------------

    def _learn(self, body: dict[str, Any], answer: dict[str, Any]) -> None:
        actor = next(each for each in self._actors if each.member_id == body["memberId"])
        if answer["error"]:
            if self._random.random() < 0.8:
                actor.epoch = None
            return
        if answer["memberEpoch"] < 0:
            actor.epoch = None
        elif self._random.random() < 0.9:  # else the answer is lost
            actor.previous_epoch, actor.epoch = actor.epoch or 0, answer["memberEpoch"]
            if answer["assignment"] is not None:
                actor.assigned = answer["assignment"]
            if self._random.random() < 0.8:
                actor.owned = actor.assigned

    def _follow(self) -> Command:
        actor = self._random.choice(self._actors)
        if actor.epoch is None:
            return self._join(actor) if self._random.random() < 0.6 else self._sleep()
        if actor.is_classic:
            return self._follow_classic(actor)
        owned = actor.owned if self._random.random() < 0.7 else None
        if self._random.random() < 0.3:
            actor.owned = owned = actor.assigned
        return self._beat(actor, actor.epoch, owned)

    def _join(self, actor: Actor | None = None) -> Command:
        actor = actor or self._random.choice(self._actors)
        if actor.is_classic:
            # A broker leaves the classic timers of a member that was replaced; they would fence one with the same id.
            self._member_ids += 1
            actor.member_id = f"m{self._member_ids}"
        actor.owned, actor.assigned, actor.is_classic = {}, {}, False
        return self._beat(actor, 0, {}, rebalanceTimeoutMs=self._random.choice(REVOKE_MS), **self._subscription())

    def _subscription(self) -> dict[str, Any]:
        random = self._random
        if self._uses_patterns and random.random() < 0.6:
            names = random.choice(SUBSCRIPTIONS) if random.random() < 0.2 else None
            return {"subscribedTopicRegex": random.choice(PATTERNS), "subscribedTopicNames": names}
        return {"subscribedTopicNames": random.choice(SUBSCRIPTIONS)}

    def _resubscribe(self) -> Command:
        actor = self._random.choice(self._actors)
        subscription = self._subscription()
        if self._uses_patterns and self._random.random() < 0.3:
            subscription["subscribedTopicRegex"] = ""
        owned = actor.owned if self._random.random() < 0.5 else None
        return self._beat(actor, actor.epoch or 1, owned, **subscription)

    def _odd_beat(self) -> Command:
        actor, random = self._random.choice(self._actors), self._random
        epoch = random.choice((actor.previous_epoch, (actor.epoch or 0) + 1, (actor.epoch or 2) - 1, 1))
        listed = [None, {}, actor.owned, actor.assigned, {each.topic_id: [0, 1] for each in self._ours.topics.values()}]
        fields: dict[str, Any] = {"instanceId": random.choice((actor.instance_id, None, "i0", "i9"))}
        if random.random() < 0.3:
            fields["rackId"] = random.choice(("r0", "r1"))
        if random.random() < 0.3:
            fields |= {"rebalanceTimeoutMs": random.choice(REVOKE_MS), **self._subscription()}
        return self._beat(actor, max(1, epoch), random.choice(listed), **fields)

    def _leave(self) -> Command:
        actor = self._random.choice(self._actors)
        is_short = actor.instance_id is not None and self._random.random() < 0.7
        return self._beat(actor, -2 if is_short else -1, None)

    def _beat(self, actor: Actor, epoch: int, owned: dict[str, list[int]] | None, **fields: Any) -> Command:
        listed = None if owned is None else [{"topicId": each, "partitions": owned[each]} for each in owned]
        body = {"memberId": actor.member_id, "memberEpoch": epoch, "instanceId": actor.instance_id, "rackId": None}
        body |= {"rebalanceTimeoutMs": -1, "serverAssignor": None, "subscribedTopicRegex": None}
        body |= {"subscribedTopicNames": None, "topicPartitions": listed, **fields}
        return {"op": "beat", "version": self._random.choice((0, 1, 1)), "body": body}

    # ---- consumers of the classic protocol -----------------------------------------------------------------

    def _classic_join(self, actor: Actor | None = None) -> Command:
        random = self._random
        actor = actor or random.choice(self._actors)
        if not self._ours.has_consumers:
            return self._sleep()
        names = {topic.topic_id: name for name, topic in self._ours.topics.items()}
        owned = actor.owned if actor.is_classic and random.random() < 0.8 else {}
        places = [TopicPartition(names[each], number) for each in owned if each in names for number in owned[each]]
        subscription = Subscription(random.choice(SUBSCRIPTIONS[:3]), owned_partitions=places)
        metadata = b64encode(encode_subscription(subscription)).decode()
        # A conversion arms all sessions at once: they must not end at once.
        session_ms = 20_222 + 13 * self._actors.index(actor)
        protocols = [{"name": name, "metadata": metadata} for name in random.choice(PROTOCOLS)]
        body: dict[str, Any] = {
            "memberId": actor.member_id,
            "groupInstanceId": actor.instance_id,
            "protocolType": "consumer",
        }
        body |= {"sessionTimeoutMs": session_ms, "rebalanceTimeoutMs": random.choice(REVOKE_MS), "protocols": protocols}
        return {"op": "join", "body": body}

    def _follow_classic(self, actor: Actor) -> Command:
        random = self._random
        if not self._ours.has_consumers:
            actor.epoch = None
            return self._sleep()
        body = {"memberId": actor.member_id, "groupInstanceId": actor.instance_id, "generationId": actor.epoch}
        if random.random() < 0.05:
            body["generationId"] = (actor.epoch or 0) - 1
        match random.choice(("heartbeat", "heartbeat", "sync", "join")):
            case "heartbeat":
                return {"op": "heartbeat", "body": body}
            case "sync":
                return {"op": "sync", "body": {**body, "protocolType": "consumer", "protocolName": "range"}}
            case _:
                return self._classic_join(actor)

    def _learn_classic(self, command: Command, answer: dict[str, Any]) -> None:
        actor = next(each for each in self._actors if each.member_id == command["body"]["memberId"])
        if answer["error"] == 0 and command["op"] == "join" and "generation" in answer:
            actor.is_classic, actor.epoch = True, answer["generation"]
        elif answer["error"] == 0 and command["op"] == "sync" and "partitions" in answer:
            ids = {name: topic.topic_id for name, topic in self._ours.topics.items()}
            actor.owned = {}
            for place in answer["partitions"]:
                name, number = place.rsplit("-", 1)
                if name in ids:
                    actor.owned.setdefault(ids[name], []).append(int(number))

    # ---- everything else -----------------------------------------------------------------------------------

    def _sleep(self) -> Command:
        return {"op": "sleep", "ms": self._random.choice(SLEEPS)}

    def _operate(self) -> Command:
        actors = self._random.sample(self._actors, self._random.randint(1, 2))
        instance = self._random.random() < 0.5
        members = [
            {"memberId": "" if instance else each.member_id, "groupInstanceId": each.instance_id if instance else None}
            for each in actors
        ]
        if self._ours.group is None:
            return self._sleep()
        return {"op": "leave", "members": members}

    def _change_topics(self) -> Command:
        known, random = self._ours.topics, self._random
        name = random.choice(NAMES[:-1])
        if not self._concerns_group(name):
            return self._sleep()
        if name not in known:
            return {"op": "topics", "described": [self._topic(name, random.randint(1, 4))], "deleted": []}
        topic = known[name]
        match random.choice(("grow", "delete", "recreate")):
            case "grow":
                grown = {"name": name, "topicId": topic.topic_id, "partitions": topic.partitions + 1}
                return {"op": "topics", "described": [grown], "deleted": []}
            case "delete":
                return {"op": "topics", "described": [], "deleted": [topic.topic_id]}
            case _:
                again = self._topic(name, random.randint(1, 4))
                return {"op": "topics", "described": [again], "deleted": [topic.topic_id]}

    def _concerns_group(self, name: str) -> bool:
        """Whether a topic matches a pattern of the group.

        A broker resolves all patterns when any topic appears, and then forgets deleted topics that they matched; our
        side is not told of topics that do not concern the group.
        """
        group = self._ours.group
        if group is None or consumer_part(group) is None or not consumer_group(group).patterns:
            return True
        return any(matching_topics(pattern, [name]) for pattern in consumer_group(group).patterns)

    def _topic(self, name: str, partitions: int) -> dict[str, Any]:
        self._topic_ids += 1
        return {"name": name, "topicId": f"{self._topic_ids:0>19}{name}A", "partitions": partitions}

    def _commit(self) -> Command:
        actor, random = self._random.choice(self._actors), self._random
        known = sorted(self._ours.topics)
        if not known or self._ours.group is None:
            return self._sleep()
        name, epoch = random.choice(known), actor.epoch or 0
        return {
            "op": "commit",
            "memberId": random.choice((actor.member_id, actor.member_id, actor.member_id, "")),
            "epoch": random.choice((epoch, epoch, actor.previous_epoch, epoch - 1, -1)),
            "isTransactional": random.random() < 0.2,
            "version": random.choice((8, 9, 9, 9)),
            "topic": name,
            "topicId": self._ours.topics[name].topic_id,
            "partition": random.randint(0, 3),
        }

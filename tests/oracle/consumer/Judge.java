package org.apache.kafka.coordinator.group;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.MockCoordinatorTimer;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupState;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.common.metadata.FeatureLevelRecord;

/**
 * Kafka's own GroupMetadataManager as a judge: reads one command a line as JSON, and answers each with one line.
 * It is in Kafka's package because what it calls is visible only there.
 */
public class Judge {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String GROUP = "g";

    private MetadataImage image = MetadataImage.EMPTY;
    private long version = 0;
    private GroupMetadataManagerTestContext context;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Judge judge = new Judge();
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            ArrayNode results = JSON.createArrayNode();
            for (JsonNode command : JSON.readTree(line)) results.add(judge.answer(command));
            answers.println(JSON.writeValueAsString(results));
            answers.flush();
        }
    }

    private ObjectNode answer(JsonNode command) {
        ObjectNode result = JSON.createObjectNode();
        try {
            // No two commands have the same time, and so no two members the same deadline.
            if (context != null) sleep(1);
            switch (command.get("op").asText()) {
                case "begin" -> begin(command);
                case "beat" -> beat(command.get("body"), (short) command.get("version").asInt(), result);
                case "join", "sync", "heartbeat" -> classic(command, result);
                case "leave" -> leave(command.get("members"), result);
                case "sleep" -> sleep(command.get("ms").asLong());
                case "topics" -> changeTopics(command);
                case "commit" -> commit(command);
                default -> throw new IllegalArgumentException(command.toString());
            }
            result.putIfAbsent("error", JSON.getNodeFactory().numberNode(0));
        } catch (ApiException exception) {
            Errors error = Errors.forException(exception);
            // As in OffsetMetadataManager, which the context does not have.
            if (command.path("isTransactional").asBoolean() && error == Errors.STALE_MEMBER_EPOCH) error = Errors.ILLEGAL_GENERATION;
            result.put("error", error.code());
        } catch (RuntimeException | ReflectiveOperationException | IOException exception) {
            result.put("error", -1).put("exception", exception.toString());
        }
        if (context != null) {
            context.processTasks();
            result.set("group", describe());
        }
        return result;
    }

    private void begin(JsonNode command) {
        image = MetadataImage.EMPTY;
        version = 0;
        context = null;
        changeTopics(command);
        GroupMetadataManagerTestContext.Builder builder = new GroupMetadataManagerTestContext.Builder()
            .withMetadataImage(new KRaftCoordinatorMetadataImage(image));
        builder.withConfig("group.consumer.assignors", List.of(new ExactRangeAssignor()));
        command.get("config").fields().forEachRemaining(entry ->
            builder.withConfig(entry.getKey(), entry.getValue().isInt() ? (Object) entry.getValue().asInt() : entry.getValue().asText()));
        context = builder.build();
        // A coordinator gets the cluster's metadata once before it has a group; without it, its patterns look outdated.
        changeTopics(JSON.createObjectNode());
    }

    private void changeTopics(JsonNode command) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        if (version == 0) {
            delta.replay(new FeatureLevelRecord().setName(MetadataVersion.FEATURE_NAME)
                .setFeatureLevel(MetadataVersion.latestProduction().featureLevel()));
        }
        for (JsonNode id : command.path("deleted")) delta.replay(new RemoveTopicRecord().setTopicId(Uuid.fromString(id.asText())));
        for (JsonNode topic : command.path("described")) {
            Uuid id = Uuid.fromString(topic.get("topicId").asText());
            int known = image.topics().getTopic(id) == null ? 0 : image.topics().getTopic(id).partitions().size();
            if (known == 0) delta.replay(new TopicRecord().setTopicId(id).setName(topic.get("name").asText()));
            for (int partition = known; partition < topic.get("partitions").asInt(); partition++) {
                delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(partition).setReplicas(List.of(0)).setIsr(List.of(0))
                    .setLeader(0).setLeaderEpoch(0).setPartitionEpoch(0).setDirectories(List.of(Uuid.fromString("AAAAAAAAAAAAAAAAAAAAZA"))));
            }
        }
        version += 1;
        image = delta.apply(new MetadataProvenance(version, 0, 0, true));
        if (context != null) {
            context.groupMetadataManager.onMetadataUpdate(
                new KRaftCoordinatorMetadataDelta(delta), new KRaftCoordinatorMetadataImage(image));
        }
    }

    /**
     * Lets time pass up to each deadline in turn, and one timer after the other: the context would let two members expire in
     * ignorance of each other, even those with the same deadline.
     */
    private void sleep(long ms) throws ReflectiveOperationException {
        long end = context.time.milliseconds() + ms;
        PriorityQueue<MockCoordinatorTimer.ScheduledTimeout<?>> deadlines = deadlines();
        while (!deadlines.isEmpty() && deadlines.peek().deadlineMs() <= end) {
            MockCoordinatorTimer.ScheduledTimeout<?> next = deadlines.poll();
            List<MockCoordinatorTimer.ScheduledTimeout<?>> others = new ArrayList<>();
            while (!deadlines.isEmpty() && deadlines.peek().deadlineMs() == next.deadlineMs()) others.add(deadlines.poll());
            deadlines.add(next);
            context.sleep(next.deadlineMs() - context.time.milliseconds());
            others.stream().filter(other -> context.timer.timeout(other.key()) == other).forEach(deadlines::add);
        }
        context.sleep(end - context.time.milliseconds());
    }

    @SuppressWarnings("unchecked")
    private PriorityQueue<MockCoordinatorTimer.ScheduledTimeout<?>> deadlines() throws ReflectiveOperationException {
        Field field = context.timer.getClass().getDeclaredField("timeoutQueue");
        field.setAccessible(true);
        return (PriorityQueue<MockCoordinatorTimer.ScheduledTimeout<?>>) field.get(context.timer);
    }

    private void beat(JsonNode body, short apiVersion, ObjectNode result) {
        ConsumerGroupHeartbeatRequestData request = new ConsumerGroupHeartbeatRequestData()
            .setGroupId(GROUP)
            .setMemberId(body.get("memberId").asText())
            .setMemberEpoch(body.get("memberEpoch").asInt())
            .setInstanceId(textOrNull(body.get("instanceId")))
            .setRackId(textOrNull(body.get("rackId")))
            .setRebalanceTimeoutMs(body.get("rebalanceTimeoutMs").asInt())
            .setServerAssignor(textOrNull(body.get("serverAssignor")))
            .setSubscribedTopicRegex(textOrNull(body.get("subscribedTopicRegex")))
            .setSubscribedTopicNames(textsOrNull(body.get("subscribedTopicNames")));
        request.setTopicPartitions(null);
        if (!body.get("topicPartitions").isNull()) {
            List<ConsumerGroupHeartbeatRequestData.TopicPartitions> owned = new ArrayList<>();
            for (JsonNode topic : body.get("topicPartitions")) {
                List<Integer> partitions = new ArrayList<>();
                topic.get("partitions").forEach(partition -> partitions.add(partition.asInt()));
                owned.add(new ConsumerGroupHeartbeatRequestData.TopicPartitions()
                    .setTopicId(Uuid.fromString(topic.get("topicId").asText())).setPartitions(partitions));
            }
            request.setTopicPartitions(owned);
        }
        ConsumerGroupHeartbeatResponseData response = context.consumerGroupHeartbeat(request, apiVersion).response();
        // A deviation (docs/deviations.md): the join timer of a classic group that this heartbeat has upgraded goes on in a
        // broker, and removes members if it ends after a downgrade.
        if (isConsumerGroup()) context.timer.cancel(GroupMetadataManager.classicGroupJoinKey(GROUP));
        result.put("memberId", response.memberId()).put("memberEpoch", response.memberEpoch());
        if (response.assignment() == null) {
            result.putNull("assignment");
            return;
        }
        Map<String, List<Integer>> assignment = new TreeMap<>();
        response.assignment().topicPartitions().forEach(topic -> assignment.put(topic.topicId().toString(), sorted(topic.partitions())));
        result.set("assignment", JSON.valueToTree(assignment));
    }

    /** Only consumer groups with members are compared here; our classic groups are compared with a broker's. */
    private void classic(JsonNode command, ObjectNode result) throws IOException {
        JsonNode body = command.get("body");
        if (!isConsumerGroup()) result.put("skipped", true);
        else if (command.get("op").asText().equals("join")) join(body, result);
        else if (command.get("op").asText().equals("sync")) sync(body, result);
        else heartbeat(body, result);
    }

    /** Whether the group is a consumer group with members. */
    private boolean isConsumerGroup() {
        try {
            return !context.groupMetadataManager.consumerGroup(GROUP).isEmpty();
        } catch (GroupIdNotFoundException exception) {
            return false;
        }
    }

    private void join(JsonNode body, ObjectNode result) throws IOException {
        JoinGroupRequestData request = new JoinGroupRequestData().setGroupId(GROUP).setMemberId(body.get("memberId").asText())
            .setGroupInstanceId(textOrNull(body.get("groupInstanceId"))).setProtocolType(body.get("protocolType").asText())
            .setSessionTimeoutMs(body.get("sessionTimeoutMs").asInt()).setRebalanceTimeoutMs(body.get("rebalanceTimeoutMs").asInt());
        for (JsonNode protocol : body.get("protocols")) {
            request.protocols().add(new JoinGroupRequestData.JoinGroupRequestProtocol()
                .setName(protocol.get("name").asText()).setMetadata(protocol.get("metadata").binaryValue()));
        }
        GroupMetadataManagerTestContext.JoinResult joined = context.sendClassicGroupJoin(request, true, true);
        if (joined.appendFuture != null) joined.appendFuture.complete(null);
        JoinGroupResponseData response = joined.joinFuture.getNow(null);
        if (response == null) {
            result.put("parked", true);
            return;
        }
        result.put("error", response.errorCode());
        if (response.errorCode() == 0) {
            result.put("memberId", response.memberId()).put("generation", response.generationId()).put("protocol", response.protocolName());
        }
    }

    private void sync(JsonNode body, ObjectNode result) {
        SyncGroupRequestData request = new SyncGroupRequestData().setGroupId(GROUP).setMemberId(body.get("memberId").asText())
            .setGroupInstanceId(textOrNull(body.get("groupInstanceId"))).setGenerationId(body.get("generationId").asInt())
            .setProtocolType(body.get("protocolType").asText()).setProtocolName(body.get("protocolName").asText());
        GroupMetadataManagerTestContext.SyncResult synced = context.sendClassicGroupSync(request);
        if (synced.appendFuture != null) synced.appendFuture.complete(null);
        SyncGroupResponseData response = synced.syncFuture.getNow(null);
        if (response == null) {
            result.put("parked", true);
            return;
        }
        result.put("error", response.errorCode());
        if (response.errorCode() == 0) {
            List<String> partitions = ConsumerProtocol.deserializeAssignment(ByteBuffer.wrap(response.assignment())).partitions().stream()
                .map(Object::toString).sorted().toList();
            result.set("partitions", JSON.valueToTree(partitions));
        }
    }

    private void heartbeat(JsonNode body, ObjectNode result) {
        HeartbeatRequestData request = new HeartbeatRequestData().setGroupId(GROUP).setMemberId(body.get("memberId").asText())
            .setGroupInstanceId(textOrNull(body.get("groupInstanceId"))).setGenerationId(body.get("generationId").asInt());
        result.put("error", context.sendClassicGroupHeartbeat(request).response().errorCode());
    }

    private void leave(JsonNode members, ObjectNode result) {
        LeaveGroupRequestData request = new LeaveGroupRequestData().setGroupId(GROUP);
        for (JsonNode member : members) {
            request.members().add(new LeaveGroupRequestData.MemberIdentity()
                .setMemberId(member.get("memberId").asText()).setGroupInstanceId(textOrNull(member.get("groupInstanceId"))));
        }
        ArrayNode errors = result.putArray("errors");
        CoordinatorResult<LeaveGroupResponseData, CoordinatorRecord> left = context.sendClassicGroupLeave(request);
        if (left.replayRecords()) left.records().forEach(context::replay);
        left.response().members().forEach(member -> errors.add(member.errorCode()));
    }

    private void commit(JsonNode command) {
        Group group = context.groupMetadataManager.group(GROUP);
        String memberId = command.get("memberId").asText();
        boolean isTransactional = command.get("isTransactional").asBoolean();
        CommitPartitionValidator validator = group.validateOffsetCommit(
            memberId, null, command.get("epoch").asInt(), isTransactional, (short) command.get("version").asInt());
        validator.validate(command.get("topic").asText(), Uuid.fromString(command.get("topicId").asText()), command.get("partition").asInt());
        // As the offset manager does, which this judge has not: a commit keeps a classic member's session alive.
        if (!isTransactional && group instanceof ClassicGroup classic
            && (classic.isInState(ClassicGroupState.STABLE) || classic.isInState(ClassicGroupState.PREPARING_REBALANCE))) {
            context.groupMetadataManager.rescheduleClassicGroupMemberHeartbeat(classic, classic.member(memberId));
        }
    }

    private JsonNode describe() {
        // Including what is not committed: a conversion to a classic group has no records that the context would replay.
        ConsumerGroupDescribeResponseData.DescribedGroup group =
            context.groupMetadataManager.consumerGroupDescribe(List.of(GROUP), Long.MAX_VALUE).get(0);
        ObjectNode described = JSON.createObjectNode().put("error", group.errorCode());
        if (group.errorCode() != 0) return described;
        described.put("state", group.groupState()).put("epoch", group.groupEpoch()).put("targetEpoch", group.assignmentEpoch());
        ArrayNode members = described.putArray("members");
        group.members().stream().sorted(Comparator.comparing(ConsumerGroupDescribeResponseData.Member::memberId)).forEach(member -> {
            ObjectNode entry = members.addObject();
            entry.put("memberId", member.memberId()).put("instanceId", member.instanceId()).put("epoch", member.memberEpoch());
            entry.put("regex", member.subscribedTopicRegex()).put("type", member.memberType());
            entry.set("names", JSON.valueToTree(member.subscribedTopicNames().stream().sorted().toList()));
            entry.set("assignment", partitions(member.assignment()));
            entry.set("target", partitions(member.targetAssignment()));
        });
        return described;
    }

    private static JsonNode partitions(ConsumerGroupDescribeResponseData.Assignment assignment) {
        Map<String, List<Integer>> byTopic = new TreeMap<>();
        assignment.topicPartitions().stream().filter(topic -> !topic.partitions().isEmpty())
            .forEach(topic -> byTopic.put(topic.topicId().toString(), sorted(topic.partitions())));
        return JSON.valueToTree(byTopic);
    }

    private static List<Integer> sorted(List<Integer> partitions) {
        return partitions.stream().sorted().toList();
    }

    /**
     * The range assignor, told that members subscribe to different topics. The manager may call a group homogeneous that no
     * longer is, when a member has brought a pattern that is not resolved yet. Then the assignor takes the topics of any
     * member for those of all.
     */
    private static class ExactRangeAssignor extends RangeAssignor {
        @Override
        public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) {
            return super.assign(new GroupSpec() {
                @Override
                public Collection<String> memberIds() {
                    return group.memberIds();
                }

                @Override
                public SubscriptionType subscriptionType() {
                    return SubscriptionType.HETEROGENEOUS;
                }

                @Override
                public boolean isPartitionAssigned(Uuid topicId, int partition) {
                    return group.isPartitionAssigned(topicId, partition);
                }

                @Override
                public boolean isPartitionAssignable(Uuid topicId, int partition) {
                    return group.isPartitionAssignable(topicId, partition);
                }

                @Override
                public MemberSubscription memberSubscription(String memberId) {
                    return group.memberSubscription(memberId);
                }

                @Override
                public MemberAssignment memberAssignment(String memberId) {
                    return group.memberAssignment(memberId);
                }
            }, topics);
        }
    }

    private static String textOrNull(JsonNode node) {
        return node == null || node.isNull() ? null : node.asText();
    }

    private static List<String> textsOrNull(JsonNode node) {
        if (node == null || node.isNull()) return null;
        List<String> texts = new ArrayList<>();
        node.forEach(text -> texts.add(text.asText()));
        return texts;
    }
}

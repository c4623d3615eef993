package org.apache.kafka.common.test.junit;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.ConsumerGroupDescribeRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.DeleteGroupsRequestData;
import org.apache.kafka.common.message.DescribeGroupsRequestData;
import org.apache.kafka.common.message.LeaveGroupRequestData.MemberIdentity;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.ListGroupsResponseData.ListedGroup;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ConsumerGroupDescribeRequest;
import org.apache.kafka.common.requests.ConsumerGroupDescribeResponse;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatRequest;
import org.apache.kafka.common.requests.DeleteGroupsRequest;
import org.apache.kafka.common.requests.DescribeGroupsRequest;
import org.apache.kafka.common.requests.DescribeGroupsResponse;
import org.apache.kafka.common.requests.LeaveGroupRequest;
import org.apache.kafka.common.requests.ListGroupsRequest;
import org.apache.kafka.common.requests.ListGroupsResponse;
import org.apache.kafka.server.IntegrationTestUtils;

/** Brings the cluster back to how a test expects to find it: without groups, without settings of groups, without topics. */
final class CleanUp {
    private static final int ATTEMPTS = 20;
    private static final long PAUSE_MS = 400;

    private CleanUp() { }

    static void run(String address) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address, "default.api.timeout.ms", "30000"))) {
            List<Integer> ports = admin.describeCluster().nodes().get().stream().map(Node::port).toList();
            deleteGroups(ports);
            dropGroupSettings(admin);
            deleteTopics(admin);
        }
    }

    private static void deleteGroups(List<Integer> ports) throws Exception {
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            int found = 0;
            for (int port : ports) {
                found += deleteGroupsAt(port);
            }
            if (found == 0) {
                return;
            }
            Thread.sleep(PAUSE_MS);
        }
        System.out.println("groups were left behind");
    }

    private static int deleteGroupsAt(int port) throws Exception {
        ListGroupsResponse listed = ask(new ListGroupsRequest.Builder(new ListGroupsRequestData()).build((short) 5), port);
        for (ListedGroup group : listed.data().groups()) {
            if (group.groupType().equalsIgnoreCase("consumer")) {
                removeConsumerMembers(group.groupId(), port);
            } else {
                removeClassicMembers(group.groupId(), port);
            }
            var names = new DeleteGroupsRequestData().setGroupsNames(List.of(group.groupId()));
            ask(new DeleteGroupsRequest.Builder(names).build((short) 2), port);
        }
        return listed.data().groups().size();
    }

    private static void removeConsumerMembers(String groupId, int port) throws Exception {
        var groups = new ConsumerGroupDescribeRequestData().setGroupIds(List.of(groupId));
        ConsumerGroupDescribeResponse described = ask(new ConsumerGroupDescribeRequest.Builder(groups).build((short) 1), port);
        for (var member : described.data().groups().get(0).members()) {
            if (member.memberType() == 0) {
                leave(groupId, member.memberId(), port);
            } else {
                var heartbeat = new ConsumerGroupHeartbeatRequestData().setGroupId(groupId).setMemberId(member.memberId()).setMemberEpoch(-1);
                ask(new ConsumerGroupHeartbeatRequest.Builder(heartbeat).build((short) 1), port);
            }
        }
    }

    private static void removeClassicMembers(String groupId, int port) throws Exception {
        var groups = new DescribeGroupsRequestData().setGroups(List.of(groupId));
        DescribeGroupsResponse described = ask(new DescribeGroupsRequest.Builder(groups).build((short) 5), port);
        for (var member : described.data().groups().get(0).members()) {
            leave(groupId, member.memberId(), port);
        }
    }

    private static void leave(String groupId, String memberId, int port) throws Exception {
        var members = List.of(new MemberIdentity().setMemberId(memberId));
        ask(new LeaveGroupRequest.Builder(groupId, members).build((short) 5), port);
    }

    private static void dropGroupSettings(Admin admin) throws Exception {
        var groups = admin.listConfigResources(Set.of(ConfigResource.Type.GROUP), new ListConfigResourcesOptions()).all().get();
        for (ConfigResource group : groups) {
            var set = admin.describeConfigs(List.of(group)).all().get().get(group).entries().stream()
                .filter(entry -> entry.source() == ConfigEntry.ConfigSource.DYNAMIC_GROUP_CONFIG)
                .map(entry -> new AlterConfigOp(entry, AlterConfigOp.OpType.DELETE))
                .toList();
            admin.incrementalAlterConfigs(Map.of(group, set)).all().get();
        }
    }

    private static void deleteTopics(Admin admin) throws Exception {
        // Those of the coordinator begin with "group-"; no test has such a topic.
        Set<String> names = new HashSet<>(admin.listTopics().names().get());
        names.removeIf(name -> name.startsWith("group-"));
        admin.deleteTopics(names).all().get();
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            Set<String> left = new HashSet<>(admin.listTopics().names().get());
            left.retainAll(names);
            if (left.isEmpty()) {
                return;
            }
            Thread.sleep(PAUSE_MS);
        }
    }

    private static <T extends AbstractResponse> T ask(AbstractRequest request, int port) throws Exception {
        return IntegrationTestUtils.connectAndReceive(request, port);
    }
}

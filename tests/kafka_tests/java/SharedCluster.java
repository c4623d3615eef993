package org.apache.kafka.common.test.junit;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;

import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;

import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.common.test.TestKitNodes;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.opentest4j.TestAbortedException;

/**
 * The one cluster of all tests of a run: brokers in this JVM, which the tests may look at, and the address that clients get.
 *
 * System properties: "brokers" is how many there are, "settings" are key=value pairs with blanks between them. "told" is a
 * file that gets the brokers' address; with it, "address" is that of the gateway, and "ready" a file that exists once the
 * gateway and the job behind it answer. Without, clients connect to the brokers.
 */
final class SharedCluster implements ClusterInstance {
    private static final int JOB_LIMIT_SECONDS = 300;
    private static SharedCluster started;

    private final KafkaClusterTestKit kit;
    private final String address;

    private SharedCluster() throws Exception {
        TestKitNodes nodes = new TestKitNodes.Builder()
            .setNumBrokerNodes(Integer.getInteger("brokers", 1))
            .setNumControllerNodes(1)
            .build();
        KafkaClusterTestKit.Builder builder = new KafkaClusterTestKit.Builder(nodes);
        for (String topic : List.of("offsets.topic", "transaction.state.log")) {
            builder.setConfigProp(topic + ".num.partitions", "1");
            builder.setConfigProp(topic + ".replication.factor", "1");
        }
        builder.setConfigProp("transaction.state.log.min.isr", "1");
        for (Map.Entry<String, String> setting : settings().entrySet()) {
            builder.setConfigProp(setting.getKey(), setting.getValue());
        }
        kit = builder.build();
        kit.format();
        kit.startup();
        kit.waitForReadyBrokers();
        String told = System.getProperty("told");
        address = told == null ? kit.bootstrapServers() : System.getProperty("address");
        if (told != null) {
            Files.writeString(Path.of(told), kit.bootstrapServers());
            awaitJob(Path.of(System.getProperty("ready")));
        }
    }

    static synchronized SharedCluster get() {
        if (started == null) {
            try {
                started = new SharedCluster();
            } catch (Exception failure) {
                throw new IllegalStateException("the cluster did not start", failure);
            }
        }
        return started;
    }

    private static Map<String, String> settings() {
        Map<String, String> settings = new TreeMap<>();
        for (String setting : System.getProperty("settings", "").split(" ")) {
            String[] parts = setting.split("=", 2);
            if (parts.length == 2) {
                settings.put(parts[0], parts[1]);
            }
        }
        return settings;
    }

    private static void awaitJob(Path ready) throws InterruptedException {
        for (int seconds = 0; !Files.exists(ready); seconds++) {
            if (seconds == JOB_LIMIT_SECONDS) {
                throw new IllegalStateException("the job is not ready");
            }
            Thread.sleep(1_000);
        }
    }

    /** The value of a setting of the brokers, as a test's annotation writes it. */
    String setting(String key) {
        Object value = brokers().values().iterator().next().config().values().get(key);
        return value instanceof List<?> list ? String.join(",", list.stream().map(String::valueOf).toList()) : String.valueOf(value);
    }

    @Override public Type type() { return Type.KRAFT; }
    @Override public Map<Integer, KafkaBroker> brokers() { return new TreeMap<>(kit.brokers()); }
    @Override public Map<Integer, ControllerServer> controllers() { return kit.controllers(); }
    @Override public ClusterConfig config() { return ClusterConfig.defaultBuilder().build(); }
    @Override public Set<Integer> controllerIds() { return controllers().keySet(); }
    @Override public ListenerName clientListener() { return ListenerName.normalised("EXTERNAL"); }
    @Override public ListenerName controllerListenerName() { return ListenerName.normalised("CONTROLLER"); }
    @Override public String bootstrapServers() { return address; }
    @Override public String bootstrapControllers() { return kit.bootstrapControllers(); }
    @Override public String clusterId() { return brokers().values().iterator().next().clusterId(); }
    @Override public Optional<FaultHandlerException> firstFatalException() { return Optional.empty(); }
    @Override public Optional<FaultHandlerException> firstNonFatalException() { return Optional.empty(); }
    @Override public void start() { }
    @Override public boolean started() { return true; }
    @Override public void stop() { }
    @Override public boolean stopped() { return false; }
    @Override public void waitForReadyBrokers() { }
    @Override public void startBroker(int id) { }

    @Override public void shutdownBroker(int id) {
        throw new TestAbortedException("stops a broker");
    }

    @Override public List<Integer> brokerBoundPorts() {
        return Stream.of(address.split(",")).map(one -> Integer.valueOf(one.substring(one.lastIndexOf(':') + 1))).toList();
    }
}

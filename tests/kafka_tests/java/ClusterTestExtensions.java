package org.apache.kafka.common.test.junit;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.api.ClusterConfigProperty;
import org.apache.kafka.common.test.api.ClusterTemplate;
import org.apache.kafka.common.test.api.ClusterTest;
import org.apache.kafka.common.test.api.ClusterTestDefaults;
import org.apache.kafka.common.test.api.ClusterTests;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContextProvider;
import org.opentest4j.TestAbortedException;

/**
 * Takes the place of Kafka's extension of this name, which starts a cluster for each test: here all tests of a run share one.
 *
 * A test that asks for other values of certain settings than the cluster has is aborted; it belongs to another profile.
 */
public class ClusterTestExtensions
    implements TestTemplateInvocationContextProvider, BeforeAllCallback, BeforeEachCallback, AfterEachCallback, InvocationInterceptor {

    /** In place of Kafka's limit of 60 seconds, which is for brokers that answer in a millisecond. */
    private static final int TEST_LIMIT_SECONDS = 300;
    private static final ScheduledExecutorService TIMER = Executors.newSingleThreadScheduledExecutor(task -> {
        Thread thread = new Thread(task, "test-limit");
        thread.setDaemon(true);
        return thread;
    });

    /** What changes the answers that a test expects. Of all other settings, the cluster's value does. */
    private static final Set<String> DECISIVE = Set.of(
        "auto.create.topics.enable",
        "broker.rack",
        "group.consumer.assignment.interval.ms",
        "group.consumer.assignors",
        "group.consumer.max.size",
        "group.consumer.migration.policy",
        "group.consumer.session.timeout.ms",
        "group.coordinator.append.linger.ms",
        "group.coordinator.rebalance.protocols",
        "group.max.size"
    );

    /** Decisive also for tests that do not ask for a value. */
    private static final Map<String, String> DEFAULTS = Map.of("group.consumer.migration.policy", "bidirectional");

    @Override public boolean supportsTestTemplate(ExtensionContext context) { return true; }

    @Override public boolean mayReturnZeroTestTemplateInvocationContexts(ExtensionContext context) { return true; }

    @Override public Stream<TestTemplateInvocationContext> provideTestTemplateInvocationContexts(ExtensionContext context) {
        return Stream.of(new TestTemplateInvocationContext() {
            @Override public String getDisplayName(int index) {
                return context.getRequiredTestMethod().getName();
            }

            @Override public List<Extension> getAdditionalExtensions() {
                return List.of(new ClusterInstanceParameterResolver(SharedCluster.get()));
            }
        });
    }

    /** The start of the cluster is not in the first test's time. */
    @Override public void beforeAll(ExtensionContext context) {
        SharedCluster.get();
    }

    @Override public void interceptTestTemplateMethod(
        Invocation<Void> test, ReflectiveInvocationContext<Method> invoked, ExtensionContext context
    ) throws Throwable {
        ScheduledFuture<?> limit = TIMER.schedule(Thread.currentThread()::interrupt, TEST_LIMIT_SECONDS, TimeUnit.SECONDS);
        try {
            test.proceed();
        } finally {
            limit.cancel(false);
            // What follows, on the same thread, is not to be interrupted.
            Thread.interrupted();
        }
    }

    @Override public void beforeEach(ExtensionContext context) {
        String reason = reasonAgainst(context.getRequiredTestClass(), context.getRequiredTestMethod());
        if (reason != null) {
            throw new TestAbortedException(reason);
        }
        System.out.printf("%tT %s.%s%n", new Date(), context.getRequiredTestClass().getName(), context.getRequiredTestMethod().getName());
    }

    @Override public void afterEach(ExtensionContext context) throws Exception {
        CleanUp.run(SharedCluster.get().bootstrapServers());
    }

    /** Why a test cannot run on the cluster; null if it can run in one of the forms that it asks for. */
    private static String reasonAgainst(Class<?> type, Method method) {
        if (method.isAnnotationPresent(ClusterTemplate.class)) {
            return "asks for a cluster for each case";
        }
        List<ClusterTest> forms = new ArrayList<>();
        if (method.isAnnotationPresent(ClusterTest.class)) {
            forms.add(method.getAnnotation(ClusterTest.class));
        }
        if (method.isAnnotationPresent(ClusterTests.class)) {
            forms.addAll(List.of(method.getAnnotation(ClusterTests.class).value()));
        }
        String reason = null;
        for (ClusterTest form : forms) {
            reason = reasonAgainst(type.getAnnotation(ClusterTestDefaults.class), form);
            if (reason == null) {
                return null;
            }
        }
        return reason;
    }

    private static String reasonAgainst(ClusterTestDefaults defaults, ClusterTest form) {
        if (form.features().length > 0) {
            return "asks for a level of a feature";
        }
        if (form.brokerSecurityProtocol() != SecurityProtocol.PLAINTEXT) {
            return "asks for " + form.brokerSecurityProtocol();
        }
        if (form.brokers() > SharedCluster.get().brokers().size()) {
            return "asks for " + form.brokers() + " brokers";
        }
        Map<String, String> asked = new TreeMap<>(DEFAULTS);
        if (defaults != null) {
            add(defaults.serverProperties(), asked);
        }
        add(form.serverProperties(), asked);
        asked.entrySet().removeIf(entry -> !DECISIVE.contains(entry.getKey())
            || entry.getValue().equalsIgnoreCase(SharedCluster.get().setting(entry.getKey())));
        return asked.isEmpty() ? null : "asks for " + asked;
    }

    private static void add(ClusterConfigProperty[] properties, Map<String, String> asked) {
        for (ClusterConfigProperty property : properties) {
            asked.put(property.key(), property.value());
        }
    }
}

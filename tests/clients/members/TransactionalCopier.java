import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A consume-transform-produce loop that uses Kafka's Java client and the newer consumer protocol.
 *
 * <p>Kafka's TransactionalMessageCopier cannot: it sets a session timeout, which the newer protocol leaves to the
 * coordinator. Options and events are those of the copier with librdkafka.
 */
public final class TransactionalCopier {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final double ABORT_PROBABILITY = 0.25;

    private final Random random = new Random();
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final String outputTopic;
    private long copied = 0;

    private TransactionalCopier(Map<String, String> options) {
        String brokers = options.get("--broker-list");
        consumer = new KafkaConsumer<>(
            Map.of(
                "bootstrap.servers", brokers,
                "group.id", options.get("--consumer-group"),
                "group.protocol", options.get("--group-protocol"),
                "auto.offset.reset", "earliest",
                "enable.auto.commit", false,
                "isolation.level", "read_committed",
                "max.poll.records", options.get("--transaction-size")),
            new StringDeserializer(),
            new StringDeserializer());
        producer = new KafkaProducer<>(
            Map.of("bootstrap.servers", brokers, "transactional.id", options.get("--transactional-id")),
            new StringSerializer(),
            new StringSerializer());
        outputTopic = options.get("--output-topic");
        consumer.subscribe(List.of(options.get("--input-topic")));
    }

    public static void main(String[] arguments) {
        Map<String, String> options = new HashMap<>();
        for (int index = 0; index < arguments.length; index += 2) {
            options.put(arguments[index], arguments[index + 1]);
        }
        new TransactionalCopier(options).run();
    }

    private void run() {
        producer.initTransactions();
        while (true) {
            ConsumerRecords<String, String> records = consumer.poll(POLL);
            if (records.isEmpty()) {
                continue;
            }
            try {
                transact(records);
            } catch (ProducerFencedException fenced) {
                throw fenced;
            } catch (KafkaException failure) {
                System.out.println(failure);
                abort();
            }
        }
    }

    private void transact(ConsumerRecords<String, String> records) {
        producer.beginTransaction();
        report("Begun");
        records.forEach(record ->
            producer.send(new ProducerRecord<>(outputTopic, record.partition(), record.key(), record.value())));
        report("Produced");
        producer.sendOffsetsToTransaction(records.nextOffsets(), consumer.groupMetadata());
        report("OffsetsSent");
        if (random.nextDouble() < ABORT_PROBABILITY) {
            abort();
        } else {
            producer.commitTransaction();
            copied += records.count();
            report("Committed");
        }
    }

    /** Abort the transaction, and seek to the committed offsets. */
    private void abort() {
        producer.abortTransaction();
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata found = committed.get(partition);
            consumer.seek(partition, found == null ? 0 : found.offset());
        }
        report("Aborted");
    }

    private void report(String stage) {
        System.out.println("{\"stage\": \"" + stage + "\", \"totalProcessed\": " + copied + "}");
    }
}

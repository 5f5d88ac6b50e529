package oracle;

import com.alicloud.openservices.tablestore.model.PrimaryKeyColumn;
import com.alicloud.openservices.tablestore.model.RecordSequenceInfo;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Produces a message per record with Kafka's own client, which is idempotent and has acks=all by default. */
final class KafkaOutlet implements Outlet {
    private final Producer<byte[], byte[]> producer;
    private final String topic;
    private final Map<String, String> origin;

    /** Takes a place such as 127.0.0.1:9092/topic. */
    KafkaOutlet(String place, String instance, String table, String tunnel) {
        int sign = place.indexOf('/');
        topic = place.substring(sign + 1);
        origin = Map.of("content-type", "application/json", "ots-instance", instance, "ots-table", table,
                "ots-tunnel", tunnel);
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", place.substring(0, sign),
                "compression.type", "lz4", // our worker's default
                "batch.size", 262_144); // the default, 16 KiB, costs more
        producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    @Override
    public void write(String channel, List<StreamRecord> records) throws IOException {
        List<Future<RecordMetadata>> sent = new ArrayList<>(records.size());
        for (StreamRecord record : records) {
            sent.add(producer.send(message(channel, record)));
        }
        producer.flush();
        try {
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
        } catch (ExecutionException refused) {
            throw new IOException(refused.getCause());
        } catch (InterruptedException interrupted) {
            throw new InterruptedIOException("the worker is ending");
        }
    }

    private ProducerRecord<byte[], byte[]> message(String channel, StreamRecord record) throws IOException {
        byte[] key = text(json -> writeKey(json, record));
        byte[] value = text(json -> Documents.write(json, channel, record));
        ProducerRecord<byte[], byte[]> message = new ProducerRecord<>(topic, key, value);
        RecordSequenceInfo sequence = record.getSequenceInfo();
        Headers headers = message.headers();
        origin.forEach((name, text) -> headers.add(name, text.getBytes(StandardCharsets.UTF_8)));
        headers.add("ots-channel-type", (sequence == null ? "BaseData" : "Stream").getBytes(StandardCharsets.UTF_8));
        headers.add("ots-action", record.getRecordType().name().getBytes(StandardCharsets.UTF_8));
        if (sequence != null) {
            String dotted = sequence.getEpoch() + "." + sequence.getTimestamp() + "." + sequence.getRowIndex();
            headers.add("ots-sequence", dotted.getBytes(StandardCharsets.UTF_8));
        }
        return message;
    }

    private static void writeKey(JsonGenerator json, StreamRecord record) throws IOException {
        json.writeStartArray();
        for (PrimaryKeyColumn column : record.getPrimaryKey().getPrimaryKeyColumns()) {
            Documents.writeKeyValue(json, column.getValue());
        }
        json.writeEndArray();
    }

    private interface Writing {
        void to(JsonGenerator json) throws IOException;
    }

    private static byte[] text(Writing writing) throws IOException {
        ByteArrayOutputStream text = new ByteArrayOutputStream(1024);
        try (JsonGenerator json = Documents.generator(text)) {
            writing.to(json);
        }
        return text.toByteArray();
    }
}

package oracle;

import com.alicloud.openservices.tablestore.SyncClient;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import com.aliyun.openservices.ots.internal.streamclient.ClientConfig;
import com.aliyun.openservices.ots.internal.streamclient.StreamConfig;
import com.aliyun.openservices.ots.internal.streamclient.Worker;
import com.aliyun.openservices.ots.internal.streamclient.model.IRecordProcessor;
import com.aliyun.openservices.ots.internal.streamclient.model.InitializationInput;
import com.aliyun.openservices.ots.internal.streamclient.model.ProcessRecordsInput;
import com.aliyun.openservices.ots.internal.streamclient.model.ShutdownInput;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;

/**
 * A worker of the vendor's Stream Client library. Each event is one line, its parts separated by tabs: "start", shard;
 * "record", shard, type, value of the first key column, value of the first column; "stop", shard, reason; "error".
 */
public final class StreamClient {
    private StreamClient() {
    }

    private static synchronized void print(Object... parts) {
        StringBuilder line = new StringBuilder();
        for (Object part : parts) {
            line.append(line.length() == 0 ? "" : "\t").append(part);
        }
        System.out.println(line);
    }

    /** Prints every record and then checkpoints it. */
    private static final class Processor implements IRecordProcessor {
        private String shard;

        @Override
        public void initialize(InitializationInput input) {
            shard = input.getShardInfo().getShardId();
            print("start", shard);
        }

        @Override
        public void processRecords(ProcessRecordsInput input) {
            for (StreamRecord record : input.getRecords()) {
                Object value = record.getColumns().isEmpty() ? "-"
                        : record.getColumns().get(0).getColumn().getValue().toString();
                print("record", shard, record.getRecordType(),
                        record.getPrimaryKey().getPrimaryKeyColumn(0).getValue().asString(), value);
            }
            try {
                input.getCheckpointer().checkpoint();
            } catch (Exception failure) {
                throw new IllegalStateException(failure);
            }
        }

        @Override
        public void shutdown(ShutdownInput input) {
            try {
                input.getCheckpointer().checkpoint();
            } catch (Exception failure) {
                throw new IllegalStateException(failure);
            }
            print("stop", shard, input.getShutdownReason());
        }
    }

    public static void main(String[] arguments) {
        Map<String, String> flags = new HashMap<>();
        for (String argument : arguments) {
            String[] parts = argument.replaceFirst("^-+", "").split("=", 2);
            flags.put(parts[0], parts[parts.length - 1]);
        }
        ClientConfig client = new ClientConfig();
        // The library's intervals are made for hours, a test has seconds.
        client.setSyncShardIntervalMillis(500);
        client.setTakerIntervalMillis(300);
        client.setRenewerIntervalMillis(300);
        client.setParentShardPollIntervalMillis(100);
        client.setCheckTableReadyIntervalMillis(50);
        StreamConfig stream = new StreamConfig();
        stream.setOTSClient(new SyncClient(flags.get("endpoint"), flags.get("key-id"), flags.get("key-secret"),
                flags.get("instance")));
        stream.setDataTableName(flags.get("table"));
        stream.setStatusTableName(flags.get("status-table"));
        Worker worker = new Worker("oracle", client, stream, Processor::new, Executors.newCachedThreadPool());
        worker.run();
        print("error", worker.getException());
        System.exit(1);
    }
}

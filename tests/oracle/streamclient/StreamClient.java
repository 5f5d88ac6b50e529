package oracle;

import com.alicloud.openservices.tablestore.SyncClient;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import com.aliyun.openservices.ots.internal.streamclient.ClientConfig;
import com.aliyun.openservices.ots.internal.streamclient.ShutdownException;
import com.aliyun.openservices.ots.internal.streamclient.StreamConfig;
import com.aliyun.openservices.ots.internal.streamclient.Worker;
import com.aliyun.openservices.ots.internal.streamclient.model.IRecordProcessor;
import com.aliyun.openservices.ots.internal.streamclient.model.IRecordProcessorCheckpointer;
import com.aliyun.openservices.ots.internal.streamclient.model.IRecordProcessorFactory;
import com.aliyun.openservices.ots.internal.streamclient.model.InitializationInput;
import com.aliyun.openservices.ots.internal.streamclient.model.ProcessRecordsInput;
import com.aliyun.openservices.ots.internal.streamclient.model.ShutdownInput;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;

/**
 * A worker of the vendor's Stream Client library. Each event is one line, its parts separated by tabs: "start", shard;
 * "record", shard, type, value of the first key column, value of the first column, nanoseconds of the machine's monotonic
 * clock; "stop", shard, reason; "error".
 * SIGTERM stops the worker kindly. With -mode=count or all it prints no events, see Counting, and the library has its own
 * intervals.
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
        System.out.flush();
    }

    /** Stores a checkpoint; without the lease nothing more can be stored, and the next owner reads again. */
    static void store(IRecordProcessorCheckpointer checkpointer) {
        try {
            checkpointer.checkpoint();
        } catch (ShutdownException lost) {
            return;
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    /**
     * Prints every record and then checkpoints it; an empty page is not stored. The library finds out that a lease is
     * stolen only if its counter has stood still while it listed the leases, and every checkpoint moves it: a processor
     * that stores each empty page keeps a stolen lease for minutes where the list takes as long as a page. The last
     * page of a shard has to be stored, or the library ends with a NullPointerException at the next one.
     */
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
                        record.getPrimaryKey().getPrimaryKeyColumn(0).getValue().asString(), value, System.nanoTime());
            }
            boolean isLast = "SHARD_END".equals(input.getCheckpointer().getLargestPermittedCheckpointValue());
            if (isLast || !input.getRecords().isEmpty()) {
                store(input.getCheckpointer());
            }
        }

        @Override
        public void shutdown(ShutdownInput input) {
            store(input.getCheckpointer());
            print("stop", shard, input.getShutdownReason());
        }
    }

    /** The library names what it was doing; what went wrong is among the causes. */
    private static String causes(Throwable failure) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            text.append(text.length() == 0 ? "" : ", because of ").append(cause);
        }
        return text.toString().replaceAll("\\s+", " ");
    }

    public static void main(String[] arguments) {
        // threads of the SDK would keep a process alive whose start has failed
        Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
        Map<String, String> flags = new HashMap<>();
        for (String argument : arguments) {
            String[] parts = argument.replaceFirst("^-+", "").split("=", 2);
            flags.put(parts[0], parts[parts.length - 1]);
        }
        ClientConfig client = new ClientConfig();
        IRecordProcessorFactory processors = Processor::new;
        if (flags.containsKey("mode")) {
            processors = new Counting(flags.get("mode").equals("all"), Long.parseLong(flags.get("mark")),
                    Long.parseLong(flags.get("rows")))::processor;
        } else {
            // The library's intervals are made for hours, a test has seconds.
            long round = Long.parseLong(flags.getOrDefault("round-millis", "300"));
            client.setSyncShardIntervalMillis(Math.max(round, 500));
            client.setTakerIntervalMillis(round);
            client.setRenewerIntervalMillis(round);
            client.setParentShardPollIntervalMillis(round / 3);
            client.setCheckTableReadyIntervalMillis(50);
        }
        if (flags.containsKey("lease-millis")) {
            client.setLeaseDurationMillis(Long.parseLong(flags.get("lease-millis")));
        }
        if (flags.containsKey("idle-millis")) {
            client.setWorkerIdleTimeMillis(Long.parseLong(flags.get("idle-millis")));
        }
        StreamConfig stream = new StreamConfig();
        stream.setOTSClient(new SyncClient(flags.get("endpoint"), flags.get("key-id"), flags.get("key-secret"),
                flags.get("instance")));
        stream.setDataTableName(flags.get("table"));
        stream.setStatusTableName(flags.get("status-table"));
        Worker worker = new Worker(flags.getOrDefault("worker", "oracle"), client, stream, processors,
                Executors.newCachedThreadPool());
        Runtime.getRuntime().addShutdownHook(new Thread(worker::shutdown));
        worker.run();
        if (worker.getException() != null) {
            print("error", causes(worker.getException()));
            System.exit(1);
        }
    }
}

package oracle;

import com.alicloud.openservices.tablestore.model.RecordColumn;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import com.aliyun.openservices.ots.internal.streamclient.model.IRecordProcessor;
import com.aliyun.openservices.ots.internal.streamclient.model.InitializationInput;
import com.aliyun.openservices.ots.internal.streamclient.model.ProcessRecordsInput;
import com.aliyun.openservices.ots.internal.streamclient.model.ShutdownInput;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Locale;

/**
 * Counts the records of all shards, reads every column where it is asked to, and stores a checkpoint once a second while
 * records come. After so many records it prints one JSON line and ends the process: the records and columns, and how far
 * it was at the mark and at the end: records, seconds, CPU seconds of the process.
 */
final class Counting {
    private static final long CHECKPOINT_NANOS = 1_000_000_000L;

    private final boolean touches;
    private final long mark;
    private final long rows;
    private final long began = System.nanoTime();
    private long seen;
    private long touched;
    private String marked = "null";

    Counting(boolean touches, long mark, long rows) {
        this.touches = touches;
        this.mark = mark;
        this.rows = rows;
    }

    IRecordProcessor processor() {
        return new Processor();
    }

    private final class Processor implements IRecordProcessor {
        private long stored = System.nanoTime();

        @Override
        public void initialize(InitializationInput input) {
        }

        @Override
        public void processRecords(ProcessRecordsInput input) {
            List<StreamRecord> records = input.getRecords();
            if (records.isEmpty()) {
                return;
            }
            count(records.size(), touches ? columns(records) : 0);
            long now = System.nanoTime();
            if (now - stored >= CHECKPOINT_NANOS) {
                StreamClient.store(input.getCheckpointer());
                stored = now;
            }
        }

        @Override
        public void shutdown(ShutdownInput input) {
            StreamClient.store(input.getCheckpointer());
        }
    }

    private static long columns(List<StreamRecord> records) {
        long found = 0;
        for (StreamRecord record : records) {
            for (RecordColumn column : record.getColumns()) {
                if (column.getColumn().getValue() != null) {
                    found++;
                }
            }
        }
        return found;
    }

    private synchronized void count(long records, long columns) {
        boolean before = seen < mark;
        seen += records;
        touched += columns;
        if (before && seen >= mark) {
            marked = point();
        }
        if (rows > 0 && seen >= rows) {
            System.out.println(String.format(Locale.ROOT,
                    "{\"rows\": %d, \"touched\": %d, \"seconds\": 0, \"marked\": %s, \"last\": %s}",
                    seen, touched, marked, point()));
            new Thread(() -> System.exit(0)).start(); // the hook waits for this thread's shard
        }
    }

    private String point() {
        long cpu = ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
        return String.format(Locale.ROOT, "[%d, %.4f, %.4f]", seen, (System.nanoTime() - began) / 1e9, cpu / 1e9);
    }
}

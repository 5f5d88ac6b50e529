package oracle;

import com.alicloud.openservices.tablestore.model.RecordColumn;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** What the callbacks of the modes for measuring leave for the last line; like touch.go beside the Go program. */
final class Gathered {
    private static final String TOUCHED_COLUMN = "amount";
    private static final String SENT_COLUMN = "sent";

    private final List<Long> sent = new ArrayList<>();
    private final List<Long> delayed = new ArrayList<>();
    private long touched;
    private long first;
    private final long mark;
    private Point marked = new Point(0, 0, 0);
    private Point last = marked;

    /** How far the callbacks were at a moment: records, nanoseconds since the first one, CPU of the process. */
    private record Point(long rows, long time, long cpu) {
        String text() {
            return String.format(Locale.ROOT, "[%d, %.4f, %.4f]", rows, time / 1e9, cpu / 1e9);
        }
    }

    /** Remembers how far it was after `mark` records, where that is above 0. */
    Gathered(long mark) {
        this.mark = mark;
    }

    synchronized void begin() {
        if (first == 0) {
            first = System.nanoTime();
        }
    }

    synchronized void end(long seen) {
        if (seen < last.rows) {
            return; // another channel's callback was quicker to come here
        }
        last = new Point(seen, System.nanoTime() - first, cpu());
        if (marked.rows == 0 && mark > 0 && seen >= mark) {
            marked = last;
        }
    }

    private static long cpu() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    /** Reads one column of every record. */
    void touchColumn(List<StreamRecord> records) {
        long count = 0;
        for (StreamRecord record : records) {
            for (RecordColumn column : record.getColumns()) {
                if (column.getColumn().getName().equals(TOUCHED_COLUMN)) {
                    if (column.getColumn().getValue() != null) {
                        count++;
                    }
                    break;
                }
            }
        }
        add(count);
    }

    /** Reads every column of every record. */
    void touchAll(List<StreamRecord> records) {
        long count = 0;
        for (StreamRecord record : records) {
            for (RecordColumn column : record.getColumns()) {
                if (column.getColumn().getValue() != null) {
                    count++;
                }
            }
        }
        add(count);
    }

    private synchronized void add(long count) {
        touched += count;
    }

    /** Remembers when each record was sent and how many microseconds later it is here. */
    synchronized void takeLatencies(List<StreamRecord> records) {
        long now = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
        for (StreamRecord record : records) {
            for (RecordColumn column : record.getColumns()) {
                if (column.getColumn().getName().equals(SENT_COLUMN)) {
                    long then = column.getColumn().getValue().asLong();
                    sent.add(then);
                    delayed.add(now - then);
                }
            }
        }
    }

    /** The part of the last line that is about all this. */
    synchronized String text() {
        String text = String.format(Locale.ROOT, ", \"touched\": %d, \"busySeconds\": %.4f", touched, last.time / 1e9);
        if (marked.rows > 0) {
            text += ", \"marked\": " + marked.text() + ", \"last\": " + last.text();
        }
        return sent.isEmpty() ? text : text + ", \"sent\": " + sent + ", \"delayed\": " + delayed;
    }
}

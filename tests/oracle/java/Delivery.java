package oracle;

import com.alicloud.openservices.tablestore.SyncClient;
import com.alicloud.openservices.tablestore.model.BatchWriteRowRequest;
import com.alicloud.openservices.tablestore.model.BatchWriteRowResponse;
import com.alicloud.openservices.tablestore.model.Column;
import com.alicloud.openservices.tablestore.model.PrimaryKeyColumn;
import com.alicloud.openservices.tablestore.model.RecordColumn;
import com.alicloud.openservices.tablestore.model.RowPutChange;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import com.alicloud.openservices.tablestore.tunnel.worker.IChannelProcessor;
import com.alicloud.openservices.tablestore.tunnel.worker.ProcessRecordsInput;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.IOException;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/** Prints, counts, copies or hands on the records; one object for all channels, as the vendor has it. */
final class Delivery implements IChannelProcessor {
    private static final int REQUEST_ROWS = 200;
    private static final Map<StreamRecord.RecordType, String> ACTIONS = Map.of(
            StreamRecord.RecordType.PUT, "PutRow",
            StreamRecord.RecordType.UPDATE, "UpdateRow",
            StreamRecord.RecordType.DELETE, "DeleteRow");

    private final Gson json = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private final AtomicLong seen = new AtomicLong();
    private final Clients clients;
    private final PrintStream lines;
    private final String mode;
    private final SyncClient copies;
    private final String copyTo;
    private final Outlet outlet;
    private final Duration delay;
    private final long delayRows;
    private final long rows;
    private final CountDownLatch end;
    private final Gathered gathered;
    private boolean finished;

    Delivery(Clients clients, PrintStream lines, String mode, SyncClient copies, String copyTo, Outlet outlet,
            Duration delay, long delayRows, long rows, long mark, CountDownLatch end) {
        this.clients = clients;
        this.lines = lines;
        this.mode = mode;
        this.copies = copies;
        this.copyTo = copyTo;
        this.outlet = outlet;
        this.delay = delay;
        this.delayRows = delayRows;
        this.rows = rows;
        this.end = end;
        gathered = new Gathered(mark);
    }

    long seen() {
        return seen.get();
    }

    @Override
    public void process(ProcessRecordsInput input) {
        List<StreamRecord> records = input.getRecords();
        if (records.isEmpty()) {
            return; // it is called on empty pages, too
        }
        gathered.begin();
        try {
            Thread.sleep(delay.toMillis() * (delayRows == 0 ? 1 : (records.size() + delayRows - 1) / delayRows));
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted); // the worker is ending: nothing came of this batch
        }
        switch (mode) {
            case "print" -> print(input.getChannelId(), records);
            case "column" -> gathered.touchColumn(records);
            case "all" -> gathered.touchAll(records);
            case "latency" -> gathered.takeLatencies(records);
            case "copy" -> copy(records);
            default -> hand(input.getChannelId(), records); // they are counted anyway
        }
        long total = seen.addAndGet(records.size());
        gathered.end(total);
        if (rows > 0 && total >= rows) {
            end.countDown();
        }
    }

    @Override
    public void shutdown() {
        // called for every channel that closes; there is nothing to close
    }

    /** Writes the last line: a summary, an object without its last brace, and what was gathered. */
    synchronized void finish(String summary) {
        finished = true;
        lines.println(summary + gathered.text() + "}");
        lines.flush();
    }

    private void hand(String channel, List<StreamRecord> records) {
        try {
            outlet.write(channel, records);
        } catch (IOException | RuntimeException | LinkageError failed) {
            failed.printStackTrace();
            Runtime.getRuntime().halt(1); // the vendor would hand the batch over again, without end
        }
    }

    private void print(String channel, List<StreamRecord> records) {
        List<Map<String, Object>> entries = new ArrayList<>();
        for (StreamRecord record : records) {
            entries.add(entry(record));
        }
        Map<String, Object> batch = new LinkedHashMap<>();
        batch.put("client", clients.reader(channel));
        batch.put("channel", channel);
        batch.put("records", entries);
        write(json.toJson(batch));
    }

    private synchronized void write(String line) {
        if (finished) {
            throw new IllegalStateException("the worker has ended");
        }
        lines.println(line);
        lines.flush();
    }

    private static Map<String, Object> entry(StreamRecord record) {
        List<Object> key = new ArrayList<>();
        for (PrimaryKeyColumn column : record.getPrimaryKey().getPrimaryKeyColumns()) {
            key.add(Rows.plain(column.getValue()));
        }
        Map<String, Object> columns = new LinkedHashMap<>();
        for (RecordColumn column : record.getColumns()) {
            boolean put = column.getColumnType() == RecordColumn.ColumnType.PUT;
            columns.put(column.getColumn().getName(), put ? column.getColumn().getValue().getValue() : null);
        }
        Map<String, Object> entry = new LinkedHashMap<>();
        entry.put("action", ACTIONS.get(record.getRecordType()));
        entry.put("key", key);
        entry.put("timestamp", record.getSequenceInfo() == null ? 0 : record.getSequenceInfo().getTimestamp());
        entry.put("rowIndex", record.getSequenceInfo() == null ? 0 : record.getSequenceInfo().getRowIndex());
        entry.put("columns", columns);
        return entry;
    }

    /** Writes puts only, 200 rows a request: what the vendor's sample does. */
    private void copy(List<StreamRecord> records) {
        for (int begin = 0; begin < records.size(); begin += REQUEST_ROWS) {
            BatchWriteRowRequest request = new BatchWriteRowRequest();
            for (StreamRecord record : records.subList(begin, Math.min(begin + REQUEST_ROWS, records.size()))) {
                RowPutChange put = new RowPutChange(copyTo, record.getPrimaryKey());
                for (RecordColumn column : record.getColumns()) {
                    Column cell = column.getColumn();
                    put.addColumn(cell.getName(), cell.getValue(), cell.getTimestamp());
                }
                request.addRowChange(put);
            }
            for (BatchWriteRowResponse.RowResult failed : copies.batchWriteRow(request).getFailedRows()) {
                throw new IllegalStateException(failed.getError().getCode() + ": " + failed.getError().getMessage());
            }
        }
    }
}

package oracle;

import com.alicloud.openservices.tablestore.SyncClient;
import com.alicloud.openservices.tablestore.model.Column;
import com.alicloud.openservices.tablestore.model.GetRangeRequest;
import com.alicloud.openservices.tablestore.model.GetRangeResponse;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.PrimaryKeyBuilder;
import com.alicloud.openservices.tablestore.model.PrimaryKeyColumn;
import com.alicloud.openservices.tablestore.model.PrimaryKeyValue;
import com.alicloud.openservices.tablestore.model.RangeRowQueryCriteria;
import com.alicloud.openservices.tablestore.model.Row;

/**
 * Reads tables by GetRange, one page after the other, and touches every value, as a program of one's own would.
 *
 * <pre>
 *   javaworker scan -endpoint=URL -instance=NAME -key-id=ID -tables=A,B,A -keys=device,reading [-columns=X,Y]
 * </pre>
 *
 * A line {"rows": N, "touched": T} ends each table.
 */
final class Scan {
    private final SyncClient client;
    private final Flags flags;
    private long touched;

    Scan(Flags flags) {
        this.flags = flags;
        String secret = flags.text("key-secret", System.getenv("OTS_KEY_SECRET"));
        client = new SyncClient(flags.text("endpoint"), flags.text("key-id"), secret, flags.text("instance"));
    }

    /** Reads every table of the flags. */
    int run() {
        String[] keys = flags.text("keys").split(",");
        String columns = flags.text("columns", "");
        String[] tables = flags.text("tables").split(",");
        flags.finish();
        for (String table : tables) {
            touched = 0;
            long rows = read(table, keys, columns.isEmpty() ? new String[0] : columns.split(","));
            System.out.println("{\"rows\": " + rows + ", \"touched\": " + touched + "}");
            System.out.flush();
        }
        client.shutdown();
        return 0;
    }

    private long read(String table, String[] keys, String[] columns) {
        long rows = 0;
        PrimaryKey next = edge(keys, PrimaryKeyValue.INF_MIN);
        while (next != null) {
            RangeRowQueryCriteria criteria = new RangeRowQueryCriteria(table);
            criteria.setInclusiveStartPrimaryKey(next);
            criteria.setExclusiveEndPrimaryKey(edge(keys, PrimaryKeyValue.INF_MAX));
            criteria.setMaxVersions(1);
            criteria.addColumnsToGet(columns);
            GetRangeResponse page = client.getRange(new GetRangeRequest(criteria));
            for (Row row : page.getRows()) {
                touch(row);
                rows++;
            }
            next = page.getNextStartPrimaryKey();
        }
        return rows;
    }

    private void touch(Row row) {
        for (PrimaryKeyColumn key : row.getPrimaryKey().getPrimaryKeyColumns()) {
            touched += key.getValue().isInfMin() ? 0 : 1;
        }
        for (Column column : row.getColumns()) {
            switch (column.getValue().getType()) {
                case INTEGER: touched += column.getValue().asLong() == Long.MIN_VALUE ? 2 : 1; break;
                case DOUBLE: touched += column.getValue().asDouble() < 0 ? 2 : 1; break;
                case BOOLEAN: touched += column.getValue().asBoolean() ? 2 : 1; break;
                default: touched += column.getValue().asString().length();
            }
        }
    }

    private static PrimaryKey edge(String[] keys, PrimaryKeyValue value) {
        PrimaryKeyBuilder builder = PrimaryKeyBuilder.createPrimaryKeyBuilder();
        for (String key : keys) {
            builder.addPrimaryKeyColumn(key, value);
        }
        return builder.build();
    }
}

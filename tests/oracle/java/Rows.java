package oracle;

import com.alicloud.openservices.tablestore.model.Column;
import com.alicloud.openservices.tablestore.model.ColumnValue;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.PrimaryKeyColumn;
import com.alicloud.openservices.tablestore.model.PrimaryKeyValue;
import com.alicloud.openservices.tablestore.model.RecordColumn;
import com.alicloud.openservices.tablestore.model.Row;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** How keys, cells and rows are written down by the walk, and how they show. */
final class Rows {
    static final PrimaryKeyValue MIN = PrimaryKeyValue.INF_MIN;
    static final PrimaryKeyValue MAX = PrimaryKeyValue.INF_MAX;
    static final PrimaryKeyValue CHOSEN = PrimaryKeyValue.AUTO_INCREMENT;
    /** Versions are given and shown in milliseconds after this time, an hour ago. */
    static final long EPOCH = System.currentTimeMillis() - 3_600_000;

    /** An attribute; without a version the service's time. */
    static final class Cell {
        final String name;
        final ColumnValue value;
        final Long version;

        Cell(String name, Object value, Long version) {
            this.name = name;
            this.value = value(value);
            this.version = version;
        }
    }

    private Rows() {}

    static Cell c(String name, Object value) {
        return new Cell(name, value, null);
    }

    static Cell v(String name, Object value, long version) {
        return new Cell(name, value, EPOCH + version);
    }

    /** A key of columns k0, k1, ... */
    static PrimaryKey key(Object... values) {
        PrimaryKeyColumn[] columns = new PrimaryKeyColumn[values.length];
        for (int index = 0; index < values.length; index++) {
            columns[index] = new PrimaryKeyColumn("k" + index, keyValue(values[index]));
        }
        return new PrimaryKey(columns);
    }

    private static PrimaryKeyValue keyValue(Object value) {
        if (value instanceof PrimaryKeyValue) {
            return (PrimaryKeyValue) value;
        }
        if (value instanceof String) {
            return PrimaryKeyValue.fromString((String) value);
        }
        return value instanceof byte[]
                ? PrimaryKeyValue.fromBinary((byte[]) value)
                : PrimaryKeyValue.fromLong(((Number) value).longValue());
    }

    static ColumnValue value(Object value) {
        if (value instanceof String) {
            return ColumnValue.fromString((String) value);
        }
        if (value instanceof byte[]) {
            return ColumnValue.fromBinary((byte[]) value);
        }
        if (value instanceof Boolean) {
            return ColumnValue.fromBoolean((Boolean) value);
        }
        return value instanceof Double
                ? ColumnValue.fromDouble((Double) value)
                : ColumnValue.fromLong(((Number) value).longValue());
    }

    /** A key's value as JSON has it. */
    static Object plain(PrimaryKeyValue value) {
        switch (value.getType()) {
            case STRING:
                return value.asString();
            case INTEGER:
                return value.asLong();
            default:
                return hex(value.asBinary());
        }
    }

    static String show(PrimaryKey key) {
        List<String> values = new ArrayList<>();
        for (PrimaryKeyColumn column : key.getPrimaryKeyColumns()) {
            PrimaryKeyValue value = column.getValue();
            values.add(value.isInfMin() ? "min" : value.isInfMax() ? "max" : String.valueOf(plain(value)));
        }
        return "[" + String.join(",", values) + "]";
    }

    /** A row as "[key] name@version=value ...", "" when there is none. */
    static String show(Row row) {
        if (row == null) {
            return "";
        }
        StringBuilder shown = new StringBuilder(row.getPrimaryKey().isEmpty() ? "[-]" : show(row.getPrimaryKey()));
        for (Column column : row.getColumns()) {
            shown.append(' ').append(show(column));
        }
        return shown.toString();
    }

    static String show(Column column) {
        Object value = column.getValue().getValue();
        String text = value instanceof byte[] ? hex((byte[]) value) : String.valueOf(value);
        return column.getName() + "@" + version(column.getTimestamp()) + "=" + text;
    }

    /** Records as "PUT [key] put@version=value -deleted@version -deleted was old@version=value; ...". */
    static String show(List<StreamRecord> records) {
        return records.stream().map(Rows::show).collect(Collectors.joining("; "));
    }

    private static String show(StreamRecord record) {
        StringBuilder shown = new StringBuilder(record.getRecordType() + " " + show(record.getPrimaryKey()));
        for (RecordColumn column : record.getColumns()) {
            shown.append(' ').append(show(column));
        }
        if (record.getOriginColumns() != null) {
            for (RecordColumn column : record.getOriginColumns()) {
                shown.append(" was ").append(show(column));
            }
        }
        return shown.toString();
    }

    private static String show(RecordColumn column) {
        switch (column.getColumnType()) {
            case PUT:
                return show(column.getColumn());
            case DELETE_ONE_VERSION:
                return "-" + column.getColumn().getName() + "@" + version(column.getColumn().getTimestamp());
            default:
                return "-" + column.getColumn().getName();
        }
    }

    /** A version that the service chose is "now". */
    private static String version(long timestamp) {
        long age = timestamp - EPOCH;
        return age >= 3_000_000 ? "now" : Long.toString(age);
    }

    private static String hex(byte[] bytes) {
        StringBuilder shown = new StringBuilder();
        for (byte one : bytes) {
            shown.append(String.format("%02x", one));
        }
        return shown.toString();
    }
}

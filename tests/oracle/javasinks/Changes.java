package oracle;

import com.alicloud.openservices.tablestore.model.ColumnValue;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.PrimaryKeyColumn;
import com.alicloud.openservices.tablestore.model.PrimaryKeyType;
import com.alicloud.openservices.tablestore.model.PrimaryKeyValue;
import com.alicloud.openservices.tablestore.model.RecordColumn;
import com.alicloud.openservices.tablestore.model.RecordSequenceInfo;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;

/** Changes as rows of Avro, in the columns of our worker's Parquet files. */
final class Changes implements RowForm {
    private static final Schema SEQUENCE = SchemaBuilder.record("Sequence").fields()
            .requiredLong("epoch").requiredLong("timestamp_us").requiredLong("row_index").endRecord();
    static final Schema VALUE = SchemaBuilder.record("Value").fields()
            .optionalLong("integer").optionalDouble("double").optionalBoolean("boolean").optionalString("string")
            .optionalBytes("binary").endRecord();
    static final Schema CELL = SchemaBuilder.record("Cell").fields()
            .requiredString("name").requiredString("operation").optionalString("type").optionalLong("version")
            .name("value").type().optional().type(VALUE).endRecord();

    private final Schema key;
    private final Schema schema;

    /** Rows of a table that has keys like this one. */
    Changes(PrimaryKey like) {
        SchemaBuilder.FieldAssembler<Schema> columns = SchemaBuilder.record("Key").fields();
        for (PrimaryKeyColumn column : like.getPrimaryKeyColumns()) {
            columns = columns.name(column.getName()).type(keyType(column.getValue().getType())).noDefault();
        }
        key = columns.endRecord();
        schema = head("Change").name("cells").type().array().items(CELL).noDefault().endRecord();
    }

    private static Schema keyType(PrimaryKeyType type) {
        return Schema.create(type == PrimaryKeyType.STRING ? Schema.Type.STRING
                : type == PrimaryKeyType.INTEGER ? Schema.Type.LONG : Schema.Type.BYTES);
    }

    /** The first columns of a row. */
    SchemaBuilder.FieldAssembler<Schema> head(String name) {
        return SchemaBuilder.record(name).fields()
                .requiredString("action").requiredString("channel")
                .name("sequence").type().optional().type(SEQUENCE)
                .name("key").type(key).noDefault();
    }

    @Override
    public Schema schema() {
        return schema;
    }

    @Override
    public GenericRecord row(String channel, StreamRecord record) throws IOException {
        GenericRecord row = new GenericData.Record(schema);
        fillHead(row, channel, record);
        List<GenericRecord> cells = new ArrayList<>(record.getColumns().size());
        for (RecordColumn column : record.getColumns()) {
            cells.add(cell(column));
        }
        row.put("cells", cells);
        return row;
    }

    void fillHead(GenericRecord row, String channel, StreamRecord record) {
        row.put("action", record.getRecordType().name());
        row.put("channel", channel);
        row.put("sequence", sequence(record.getSequenceInfo()));
        row.put("key", key(record.getPrimaryKey()));
    }

    private static GenericRecord sequence(RecordSequenceInfo info) {
        if (info == null) {
            return null;
        }
        GenericRecord found = new GenericData.Record(SEQUENCE);
        found.put("epoch", (long) info.getEpoch());
        found.put("timestamp_us", info.getTimestamp());
        found.put("row_index", (long) info.getRowIndex());
        return found;
    }

    private GenericRecord key(PrimaryKey columns) {
        GenericRecord found = new GenericData.Record(key);
        for (PrimaryKeyColumn column : columns.getPrimaryKeyColumns()) {
            PrimaryKeyValue value = column.getValue();
            found.put(column.getName(), value.getType() == PrimaryKeyType.STRING ? value.asString()
                    : value.getType() == PrimaryKeyType.INTEGER ? value.asLong() : ByteBuffer.wrap(value.asBinary()));
        }
        return found;
    }

    static GenericRecord cell(RecordColumn column) throws IOException {
        GenericRecord found = new GenericData.Record(CELL);
        found.put("name", column.getColumn().getName());
        found.put("operation", Documents.OPERATIONS.get(column.getColumnType()));
        if (column.getColumn().hasSetTimestamp()) {
            found.put("version", column.getColumn().getTimestamp());
        }
        if (Documents.isPut(column)) {
            ColumnValue value = column.getColumn().getValue();
            found.put("type", typeOf(value));
            found.put("value", member(value));
        }
        return found;
    }

    /** A value in the member of its type. */
    static GenericRecord member(ColumnValue value) throws IOException {
        GenericRecord member = new GenericData.Record(VALUE);
        member.put(typeOf(value), plain(value));
        return member;
    }

    static String typeOf(ColumnValue value) throws IOException {
        return switch (value.getType()) {
            case INTEGER -> "integer";
            case DOUBLE -> "double";
            case BOOLEAN -> "boolean";
            case STRING -> "string";
            case BINARY -> "binary";
            default -> throw new IOException("a column holds a " + value.getType());
        };
    }

    /** A value as Avro has it. */
    static Object plain(ColumnValue value) {
        return value.getValue() instanceof byte[] bytes ? ByteBuffer.wrap(bytes) : value.getValue();
    }
}

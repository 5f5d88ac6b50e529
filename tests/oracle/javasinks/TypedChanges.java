package oracle;

import com.alicloud.openservices.tablestore.model.ColumnValue;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.RecordColumn;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;

/** Changes as rows of Avro, in the columns of our worker's typed Parquet files. */
final class TypedChanges implements RowForm {
    private static final Map<String, Schema.Type> TYPES = Map.of(
            "integer", Schema.Type.LONG,
            "double", Schema.Type.DOUBLE,
            "boolean", Schema.Type.BOOLEAN,
            "string", Schema.Type.STRING,
            "binary", Schema.Type.BYTES);

    private final Changes changes;
    private final Map<String, String> columns;
    private final Schema schema;

    /**
     * Rows of a table that has keys like this one.
     *
     * @param columns name and type of each declared column
     */
    TypedChanges(PrimaryKey like, Map<String, String> columns) {
        this.columns = columns;
        changes = new Changes(like);
        SchemaBuilder.FieldAssembler<Schema> fields = changes.head("TypedChange");
        for (Map.Entry<String, String> column : columns.entrySet()) {
            fields = fields.name(column.getKey()).type().optional().type(Schema.create(TYPES.get(column.getValue())));
        }
        schema = fields
                .name("deleted").type().array().items().stringType().noDefault()
                .name("others").type().map().values(Changes.VALUE).noDefault()
                .optionalLong("version")
                .name("versions").type().map().values().longType().noDefault()
                .name("cells").type().array().items(Changes.CELL).noDefault()
                .endRecord();
    }

    /** Name and type of each column, from a text such as {@code status:string,amount:double}. */
    static Map<String, String> columnsOf(String text) {
        Map<String, String> found = new LinkedHashMap<>();
        for (String column : text.split(",")) {
            int sign = column.lastIndexOf(':');
            if (sign < 0 || !TYPES.containsKey(column.substring(sign + 1))) {
                throw new Flags.Wrong("-columns=" + text + ": found " + column + ", allowed are name:type, with "
                        + TYPES.keySet());
            }
            found.put(column.substring(0, sign), column.substring(sign + 1));
        }
        return found;
    }

    @Override
    public Schema schema() {
        return schema;
    }

    @Override
    public GenericRecord row(String channel, StreamRecord record) throws IOException {
        GenericRecord row = new GenericData.Record(schema);
        changes.fillHead(row, channel, record);
        Map<String, RecordColumn> values = new LinkedHashMap<>();
        List<String> deleted = new ArrayList<>();
        List<GenericRecord> cells = new ArrayList<>();
        for (RecordColumn column : record.getColumns()) {
            String name = column.getColumn().getName();
            if (column.getColumnType() == RecordColumn.ColumnType.DELETE_ALL_VERSION) {
                deleted.add(name);
            } else if (!Documents.isPut(column) || values.putIfAbsent(name, column) != null) {
                cells.add(Changes.cell(column)); // the service sends the latest version first
            }
        }
        row.put("deleted", deleted);
        row.put("cells", cells);
        putValues(row, values);
        return row;
    }

    private void putValues(GenericRecord row, Map<String, RecordColumn> values) throws IOException {
        Map<String, GenericRecord> others = new LinkedHashMap<>();
        Map<String, Long> versions = new LinkedHashMap<>();
        Long version = null;
        for (Map.Entry<String, RecordColumn> entry : values.entrySet()) {
            String name = entry.getKey(), type = columns.get(name);
            ColumnValue value = entry.getValue().getColumn().getValue();
            if (type == null) {
                others.put(name, Changes.member(value));
            } else if (!type.equals(Changes.typeOf(value))) {
                throw new IOException("column " + name + " holds a " + value.getType());
            } else {
                row.put(name, Changes.plain(value));
            }
            long own = entry.getValue().getColumn().getTimestamp();
            if (version == null) {
                version = own;
            } else if (version != own) {
                versions.put(name, own);
            }
        }
        row.put("others", others);
        row.put("version", version);
        row.put("versions", versions);
    }
}

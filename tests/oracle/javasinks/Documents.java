package oracle;

import com.alicloud.openservices.tablestore.model.ColumnType;
import com.alicloud.openservices.tablestore.model.ColumnValue;
import com.alicloud.openservices.tablestore.model.PrimaryKeyColumn;
import com.alicloud.openservices.tablestore.model.PrimaryKeyType;
import com.alicloud.openservices.tablestore.model.PrimaryKeyValue;
import com.alicloud.openservices.tablestore.model.RecordColumn;
import com.alicloud.openservices.tablestore.model.RecordSequenceInfo;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Map;

/** Records in the JSON form of docs/sinks.md, with what the SDK reports of them, by Jackson's generator. */
final class Documents {
    static final Map<RecordColumn.ColumnType, String> OPERATIONS = Map.of(
            RecordColumn.ColumnType.PUT, "PUT",
            RecordColumn.ColumnType.DELETE_ONE_VERSION, "DELETE_ONE_VERSION",
            RecordColumn.ColumnType.DELETE_ALL_VERSION, "DELETE_ALL_VERSIONS");
    private static final JsonFactory JSON = new JsonFactoryBuilder().rootValueSeparator("").build();

    private Documents() {}

    static JsonGenerator generator(OutputStream to) throws IOException {
        return JSON.createGenerator(to);
    }

    static void write(JsonGenerator json, String channel, StreamRecord record) throws IOException {
        json.writeStartObject();
        json.writeStringField("action", record.getRecordType().name());
        json.writeStringField("channel", channel);
        json.writeFieldName("sequence");
        RecordSequenceInfo sequence = record.getSequenceInfo();
        if (sequence == null) {
            json.writeNull();
        } else {
            json.writeStartArray();
            json.writeNumber(sequence.getEpoch());
            json.writeNumber(sequence.getTimestamp());
            json.writeNumber(sequence.getRowIndex());
            json.writeEndArray();
        }
        json.writeObjectFieldStart("key");
        for (PrimaryKeyColumn column : record.getPrimaryKey().getPrimaryKeyColumns()) {
            json.writeFieldName(column.getName());
            writeKeyValue(json, column.getValue());
        }
        json.writeEndObject();
        json.writeArrayFieldStart("columns");
        for (RecordColumn column : record.getColumns()) {
            writeColumn(json, column);
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    static void writeKeyValue(JsonGenerator json, PrimaryKeyValue value) throws IOException {
        if (value.getType() == PrimaryKeyType.STRING) {
            json.writeString(value.asString());
        } else if (value.getType() == PrimaryKeyType.INTEGER) {
            json.writeNumber(value.asLong());
        } else {
            writeBinary(json, value.asBinary());
        }
    }

    private static void writeColumn(JsonGenerator json, RecordColumn column) throws IOException {
        json.writeStartObject();
        json.writeStringField("name", column.getColumn().getName());
        json.writeStringField("op", OPERATIONS.get(column.getColumnType()));
        if (isPut(column)) {
            json.writeFieldName("value");
            writeValue(json, column.getColumn().getValue());
        }
        if (column.getColumn().hasSetTimestamp()) {
            json.writeNumberField("version", column.getColumn().getTimestamp());
        }
        json.writeEndObject();
    }

    static boolean isPut(RecordColumn column) {
        return column.getColumnType() == RecordColumn.ColumnType.PUT;
    }

    private static void writeValue(JsonGenerator json, ColumnValue value) throws IOException {
        ColumnType type = value.getType();
        switch (type) {
            case STRING -> json.writeString(value.asString());
            case INTEGER -> json.writeNumber(value.asLong());
            case BOOLEAN -> json.writeBoolean(value.asBoolean());
            case DOUBLE -> json.writeNumber(value.asDouble()); // the service takes finite ones only
            case BINARY -> writeBinary(json, value.asBinary());
            default -> throw new IOException("a column holds a " + type);
        }
    }

    private static void writeBinary(JsonGenerator json, byte[] value) throws IOException {
        json.writeStartObject();
        json.writeBinaryField("base64", value);
        json.writeEndObject();
    }
}

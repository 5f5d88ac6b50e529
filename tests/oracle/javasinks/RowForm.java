package oracle;

import com.alicloud.openservices.tablestore.model.StreamRecord;
import java.io.IOException;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecord;

/** What the rows of a Parquet file are. */
interface RowForm {
    Schema schema();

    GenericRecord row(String channel, StreamRecord record) throws IOException;
}

package oracle;

import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.parquet.avro.AvroParquetWriter;
import org.apache.parquet.conf.ParquetConfiguration;
import org.apache.parquet.conf.PlainParquetConfiguration;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.LocalOutputFile;

/** Writes a file for each batch, whose name appears when it is whole. */
final class ParquetOutlet implements Outlet {
    private final Path folder;
    private final AtomicLong files = new AtomicLong();
    private final ParquetConfiguration configuration = new PlainParquetConfiguration();
    private final Function<PrimaryKey, RowForm> forms;
    private RowForm form;

    /** The form of the rows is made of the first key. */
    ParquetOutlet(Path folder, Function<PrimaryKey, RowForm> forms) {
        this.forms = forms;
        this.folder = folder;
        configuration.set("parquet.avro.write-old-list-structure", "false"); // lists as the format has them today
    }

    @Override
    public void write(String channel, List<StreamRecord> records) throws IOException {
        RowForm form = formLike(records.get(0));
        String name = String.format("%08d", files.incrementAndGet());
        Path part = folder.resolve("." + name);
        try (ParquetWriter<GenericRecord> writer = writer(part, form.schema())) {
            for (StreamRecord record : records) {
                writer.write(form.row(channel, record));
            }
        }
        Files.move(part, folder.resolve(name + ".parquet"));
    }

    private synchronized RowForm formLike(StreamRecord record) {
        if (form == null) {
            form = forms.apply(record.getPrimaryKey());
        }
        return form;
    }

    private ParquetWriter<GenericRecord> writer(Path path, Schema schema) throws IOException {
        return AvroParquetWriter.<GenericRecord>builder(new LocalOutputFile(path))
                .withSchema(schema)
                .withDataModel(GenericData.get()) // otherwise it is looked for in a configuration of Hadoop
                .withConf(configuration)
                .withCompressionCodec(CompressionCodecName.UNCOMPRESSED) // our worker's default
                .build();
    }
}

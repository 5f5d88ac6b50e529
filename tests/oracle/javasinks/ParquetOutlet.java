package oracle;

import com.alicloud.openservices.tablestore.model.StreamRecord;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
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
    private Changes changes;

    ParquetOutlet(Path folder) {
        this.folder = folder;
        configuration.set("parquet.avro.write-old-list-structure", "false"); // lists as the format has them today
    }

    @Override
    public void write(String channel, List<StreamRecord> records) throws IOException {
        Changes changes = changesLike(records.get(0));
        String name = String.format("%08d", files.incrementAndGet());
        Path part = folder.resolve("." + name);
        try (ParquetWriter<GenericRecord> writer = writer(part, changes.schema)) {
            for (StreamRecord record : records) {
                writer.write(changes.row(channel, record));
            }
        }
        Files.move(part, folder.resolve(name + ".parquet"));
    }

    private synchronized Changes changesLike(StreamRecord record) {
        if (changes == null) {
            changes = new Changes(record.getPrimaryKey());
        }
        return changes;
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

package oracle;

import com.alicloud.openservices.tablestore.model.StreamRecord;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.List;

/** Writes a document per line; the lines of a batch in one call. */
final class LinesOutlet implements Outlet {
    private final FileOutputStream to;
    private final ThreadLocal<ByteArrayOutputStream> buffers = ThreadLocal.withInitial(ByteArrayOutputStream::new);

    /** An empty path is standard output. */
    LinesOutlet(String path) throws IOException {
        to = path.isEmpty() ? new FileOutputStream(FileDescriptor.out) : new FileOutputStream(path);
    }

    @Override
    public void write(String channel, List<StreamRecord> records) throws IOException {
        ByteArrayOutputStream text = buffers.get();
        text.reset();
        try (JsonGenerator json = Documents.generator(text)) {
            for (StreamRecord record : records) {
                Documents.write(json, channel, record);
                json.writeRaw('\n');
            }
        }
        synchronized (this) {
            text.writeTo(to);
        }
    }
}

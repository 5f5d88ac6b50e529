package oracle;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;

/**
 * The worker of ../java with the libraries of other places: a program of its own, because they are large.
 *
 * <pre>
 *   javasinks worker -mode=lines|kafka|parquet|typed -to=PLACE -table=NAME -tunnel=NAME -endpoint=URL [...]
 * </pre>
 *
 * It writes the documents of docs/sinks.md: lines to a file, or to standard output where -to is empty (the last line
 * goes to standard error); kafka to HOST:PORT/TOPIC; parquet and typed to a folder, a file for each batch, because the
 * vendor stores a checkpoint behind a batch when its callback has returned. The typed one has -columns=NAME:TYPE,...
 * beside. All other modes and flags are those of {@link Worker}.
 */
public final class SinkWorker {
    private SinkWorker() {}

    /** Runs a worker; the exit status is 2 when there is no such command or flag. */
    public static void main(String[] arguments) throws Exception {
        try {
            if (arguments.length == 0 || !arguments[0].equals("worker")) {
                throw new Flags.Wrong("usage: javasinks worker FLAGS");
            }
            Flags flags = new Flags(Arrays.asList(arguments).subList(1, arguments.length));
            System.exit(new Worker(flags, SinkWorker::outlet).run());
        } catch (Flags.Wrong wrong) {
            System.err.println(wrong.getMessage());
            System.exit(2);
        }
    }

    private static Outlet outlet(Flags flags) throws IOException {
        String to = flags.text("to", "");
        switch (flags.text("mode", "")) {
            case "lines":
                return new LinesOutlet(to);
            case "parquet":
                return new ParquetOutlet(Path.of(flags.text("to")), Changes::new);
            case "typed":
                Map<String, String> columns = TypedChanges.columnsOf(flags.text("columns"));
                return new ParquetOutlet(Path.of(flags.text("to")), like -> new TypedChanges(like, columns));
            case "kafka":
                return new KafkaOutlet(flags.text("to"), flags.text("instance"), flags.text("table"),
                        flags.text("tunnel"));
            default:
                return Outlet.NONE;
        }
    }
}

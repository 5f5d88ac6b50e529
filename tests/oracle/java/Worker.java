package oracle;

import com.alicloud.openservices.tablestore.ClientConfiguration;
import com.alicloud.openservices.tablestore.SyncClient;
import com.alicloud.openservices.tablestore.TunnelClientInterface;
import com.alicloud.openservices.tablestore.model.tunnel.DescribeTunnelRequest;
import com.alicloud.openservices.tablestore.tunnel.worker.TunnelWorker;
import com.alicloud.openservices.tablestore.tunnel.worker.TunnelWorkerConfig;
import com.alicloud.openservices.tablestore.tunnel.worker.TunnelWorkerStatus;
import com.sun.management.OperatingSystemMXBean;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import sun.misc.Signal;

/**
 * Runs the vendor's tunnel worker until SIGTERM, -rows records, -duration, or until it halts by itself (status 1).
 *
 * <p>Beside the Go program's flags: -checkpoint=DURATION (1s), -idle=DURATION (longest wait between empty pages, from
 * 200ms on, 2s), -compress=true (requests and answers), -region=NAME (signature V4), -pool=N (threads that read, and as
 * many that process; the vendor's default is 32), -reads=N (pages read before they are processed, 1) and -parallel=N
 * (channels at work at a time, all). -reconnect is accepted and without effect: the vendor waits up to 10 s. -heartbeat
 * and -timeout are rounded up to whole seconds.
 */
final class Worker {
    private final Account account;
    private final String tunnel;
    private final String table;
    private final String mode;
    private final String copyTo;
    private final String output;
    private final Outlet outlet;
    private final long rows;
    private final long mark;
    private final long pool;
    private final Duration duration;
    private final Duration delay;
    private final long delayRows;
    private final long interval;
    private final long timeout;
    private final long checkpoint;
    private final int idle;
    private final int reads;
    private final int parallel;

    Worker(Flags flags, Outlet.Opener opener) throws IOException {
        account = new Account(flags);
        tunnel = flags.text("tunnel");
        table = flags.text("table", "");
        mode = flags.text("mode", "print");
        copyTo = flags.text("copy-to", "");
        output = flags.text("output", "");
        rows = flags.number("rows", 0);
        mark = flags.number("mark", 0);
        pool = flags.number("pool", 0);
        duration = flags.duration("duration", "0");
        delay = flags.duration("delay", "0");
        delayRows = flags.number("delay-rows", 0);
        interval = seconds(flags.duration("heartbeat", "5s"));
        timeout = seconds(flags.duration("timeout", "15s"));
        checkpoint = flags.duration("checkpoint", "1s").toMillis();
        idle = (int) flags.duration("idle", "2s").toMillis();
        reads = (int) flags.number("reads", 1);
        parallel = (int) flags.number("parallel", -1);
        flags.duration("reconnect", "10s");
        outlet = opener.open(flags);
        flags.finish();
    }

    private static long seconds(Duration duration) {
        return (duration.toMillis() + 999) / 1000;
    }

    /** Works; returns the exit status. */
    int run() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        Signal.handle(new Signal("TERM"), signal -> end.countDown());
        Signal.handle(new Signal("INT"), signal -> end.countDown());
        Clients clients = new Clients(account.tunnels(account.configuration()));
        String tunnelId = tunnelId(clients.client());
        try (PrintStream lines = lines()) {
            Delivery delivery = new Delivery(clients, lines, mode, copies(), copyTo, outlet, delay, delayRows, rows,
                    mark, end);
            TunnelWorkerConfig config = config(delivery);
            TunnelWorker worker = new TunnelWorker(tunnelId, clients.client(), config);
            long begin = System.nanoTime();
            try {
                worker.connectAndWorking();
            } catch (Exception refused) {
                System.err.println("the worker ended: " + refused);
                return 1;
            }
            if (!await(end, worker, begin)) {
                System.err.println("the worker ended: it halted after " + clients.lastRefusal());
                return 1;
            }
            double elapsed = (System.nanoTime() - begin) / 1e9;
            double cpu = ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
            worker.shutdown();
            delivery.finish(String.format(Locale.ROOT, "{\"rows\": %d, \"seconds\": %.3f, \"cpuSeconds\": %.3f",
                    delivery.seen(), elapsed, cpu));
            return 0;
        }
    }

    /** Waits for the end; false if the worker has halted, which the vendor does not report. */
    private boolean await(CountDownLatch end, TunnelWorker worker, long begin) throws Exception {
        Field field = TunnelWorker.class.getDeclaredField("workerStatus");
        field.setAccessible(true);
        AtomicReference<?> status = (AtomicReference<?>) field.get(worker);
        while (!end.await(50, TimeUnit.MILLISECONDS)) {
            if (status.get() == TunnelWorkerStatus.WORKER_HALT) {
                return false;
            }
            if (!duration.isZero() && System.nanoTime() - begin > duration.toNanos()) {
                return true;
            }
        }
        return true;
    }

    private TunnelWorkerConfig config(Delivery delivery) throws ReflectiveOperationException {
        TunnelWorkerConfig config = new TunnelWorkerConfig(delivery);
        config.setHeartbeatTimeoutInSec(Math.max(timeout, 31)); // must exceed the interval, which is 30 until it is set
        // The setter allows 5 s and more, so that a test of a few heartbeats would last a minute.
        Field field = TunnelWorkerConfig.class.getDeclaredField("heartbeatIntervalInSec");
        field.setAccessible(true);
        field.setLong(config, interval);
        config.setHeartbeatTimeoutInSec(timeout);
        config.setCheckpointIntervalInMillis(checkpoint);
        config.setMaxRetryIntervalInMillis(idle);
        config.setReadMaxTimesPerRound(reads);
        config.setMaxChannelParallel(parallel);
        if (pool > 0) {
            for (var executor : new java.util.concurrent.ThreadPoolExecutor[] {
                config.getReadRecordsExecutor(), config.getProcessRecordsExecutor()
            }) {
                executor.setCorePoolSize((int) pool);
                executor.setMaximumPoolSize((int) pool);
            }
        }
        return config;
    }

    private String tunnelId(TunnelClientInterface client) {
        return table.isEmpty()
                ? tunnel
                : client.describeTunnel(new DescribeTunnelRequest(table, tunnel)).getTunnelInfo().getTunnelId();
    }

    private SyncClient copies() {
        ClientConfiguration configuration = account.configuration();
        return mode.equals("copy") ? account.tables(configuration) : null;
    }

    private PrintStream lines() throws IOException {
        // lines may have standard output for itself
        OutputStream standard = mode.equals("lines") ? System.err : System.out;
        OutputStream out = output.isEmpty() ? standard : new FileOutputStream(output);
        return new PrintStream(out, false, StandardCharsets.UTF_8);
    }
}

package oracle;

import com.alicloud.openservices.tablestore.ClientConfiguration;
import com.alicloud.openservices.tablestore.SyncClientInterface;
import com.alicloud.openservices.tablestore.TableStoreException;
import com.alicloud.openservices.tablestore.TunnelClientInterface;
import com.google.gson.Gson;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Makes every call of the SDK against a fresh emulator, on its happy path and in each class of error. Prints one JSON
 * line per step, {"step": "section/what", "ok": true, "detail": "..."}, at last {"calls": [...], "left": [...]}: the
 * methods of the SDK that were answered, and those that were never called.
 *
 * <p>The emulator must know a second instance "second" with the same key. -admin is its admin URL.
 */
final class Walk {
    /** A step, or a part of one. */
    interface Body {
        void run() throws Exception;
    }

    /** What a step found wrong. */
    static final class Wrong extends RuntimeException {
        Wrong(String message) {
            super(message);
        }
    }

    private static final long LIMIT_SECONDS = 15; // the SDK repeats a call for 10 s

    final Account account;
    final SyncClientInterface table;
    final TunnelClientInterface tunnel;
    private final String admin;
    private final Gson json = new Gson();
    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private final Set<String> called = new ConcurrentSkipListSet<>();
    private final Set<String> answered = new ConcurrentSkipListSet<>();
    private final ExecutorService steps = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "step");
        thread.setDaemon(true); // one that hangs ends with the program
        return thread;
    });
    private String section = "";

    Walk(Flags flags) {
        account = new Account(flags);
        admin = flags.text("admin");
        flags.finish();
        table = tables(account, account.configuration());
        tunnel = tunnels(account, account.configuration());
    }

    /** Walks; returns the exit status, which is 0 whatever the steps found. */
    int run() {
        Map<String, Body> sections = new LinkedHashMap<>();
        sections.put("tables", () -> new WalkTables(this).run());
        sections.put("writes", () -> new WalkWrites(this).run());
        sections.put("conditions", () -> new WalkConditions(this).run());
        sections.put("batches", () -> new WalkBatches(this).run());
        sections.put("reads", () -> new WalkReads(this).run());
        sections.put("ranges", () -> new WalkRanges(this).run());
        sections.put("auto-increment", () -> new WalkTransactions(this).autoIncrement());
        sections.put("transactions", () -> new WalkTransactions(this).run());
        sections.put("streams", () -> new WalkStreams(this).run());
        sections.put("splits", () -> new WalkSplits(this).run());
        sections.put("faults", () -> new WalkFaults(this).run());
        sections.put("tunnels", () -> new WalkTunnels(this).run());
        sections.put("channels", () -> new WalkChannels(this).run());
        sections.put("security", () -> new WalkSecurity(this).run());
        sections.put("compression", () -> new WalkSecurity(this).compression());
        sections.put("out-of-scope", () -> new WalkOutOfScope(this).run());
        sections.forEach((name, body) -> {
            section = name;
            step("walked to the end", body);
        });
        Set<String> left = new TreeSet<>();
        for (Class<?> api : Arrays.asList(SyncClientInterface.class, TunnelClientInterface.class)) {
            Arrays.stream(api.getMethods()).map(Method::getName).forEach(left::add);
        }
        left.removeAll(called);
        print(Map.of("calls", answered, "left", left));
        return 0;
    }

    SyncClientInterface tables(Account whose, ClientConfiguration configuration) {
        return counted(SyncClientInterface.class, whose.tables(configuration), 1);
    }

    TunnelClientInterface tunnels(Account whose, ClientConfiguration configuration) {
        // this client closes idle connections, and seldom one that it is about to use: nothing was sent then
        return counted(TunnelClientInterface.class, whose.tunnels(configuration), 3);
    }

    /** A client of which is noted what it was asked and what was answered; tries: of a call that finds no connection. */
    private <T> T counted(Class<T> api, T client, int tries) {
        return api.cast(Proxy.newProxyInstance(api.getClassLoader(), new Class<?>[] {api}, (proxy, method, given) -> {
            called.add(method.getName());
            for (int left = tries - 1; ; left--) {
                try {
                    Object answer = method.invoke(client, given);
                    answered.add(method.getName());
                    return answer;
                } catch (InvocationTargetException failed) {
                    String text = String.valueOf(failed.getCause().getMessage());
                    if (left == 0 || !text.contains("ConnectionClosedException")) {
                        throw failed.getCause();
                    }
                }
            }
        }));
    }

    /** Runs one step, reports it, and survives its failure and its hanging; steps may be inside of steps. */
    void step(String what, Body body) {
        Future<?> running = steps.submit(() -> {
            body.run();
            return null;
        });
        String trouble = null;
        try {
            running.get(what.startsWith("walked") ? 100 : LIMIT_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException failed) {
            Throwable cause = failed.getCause();
            trouble = cause instanceof Wrong ? cause.getMessage() : describe(cause);
        } catch (TimeoutException | InterruptedException late) {
            trouble = "no end within " + LIMIT_SECONDS + " s";
        }
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("step", section + "/" + what);
        line.put("ok", trouble == null);
        if (trouble != null) {
            line.put("detail", trouble);
        }
        print(line);
    }

    private synchronized void print(Object line) {
        out.println(json.toJson(line));
        out.flush();
    }

    /** A step that must fail with a code of the service and, where its text is known, a part of it. */
    void refused(String what, String code, String text, Body body) {
        step(what, () -> wantRefusal(code, text, body));
    }

    static void wantRefusal(String code, String text, Body body) throws Exception {
        try {
            body.run();
        } catch (TableStoreException refusal) {
            if (!Objects.equals(refusal.getErrorCode(), code) || !refusal.getMessage().contains(text)) {
                throw new Wrong("got " + describe(refusal) + ", wanted " + code + " " + text);
            }
            if (refusal.getRequestId() == null || refusal.getRequestId().isEmpty()) {
                throw new Wrong("no request id with " + describe(refusal));
            }
            return;
        }
        throw new Wrong("succeeded, wanted " + code + " " + text);
    }

    private static String describe(Throwable cause) {
        if (cause instanceof TableStoreException) {
            TableStoreException refusal = (TableStoreException) cause;
            return refusal.getHttpStatus() + " " + refusal.getErrorCode() + " \"" + refusal.getMessage() + "\"";
        }
        StackTraceElement where = Arrays.stream(cause.getStackTrace())
                .filter(at -> at.getClassName().startsWith("oracle."))
                .findFirst()
                .orElse(null);
        return cause + " at " + where;
    }

    static void equal(String what, Object got, Object want) {
        boolean numbers = got instanceof Number && want instanceof Number;
        if (numbers ? ((Number) got).longValue() != ((Number) want).longValue() : !Objects.equals(got, want)) {
            throw new Wrong(what + ": got " + got + ", wanted " + want);
        }
    }

    static void yes(String what, boolean holds) {
        equal(what, holds, true);
    }

    /** Asks again until nothing is wrong; nothing announces what it waits for. */
    static void until(Body body) throws Exception {
        long give = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
        while (true) {
            try {
                body.run();
                return;
            } catch (Wrong wrong) {
                if (System.nanoTime() > give) {
                    throw wrong;
                }
                Thread.sleep(10);
            }
        }
    }

    /** Calls one of the emulator's controls; the document is given as names and values. */
    Map<?, ?> control(String name, Object... document) throws Exception {
        Map<String, Object> body = new LinkedHashMap<>();
        if (!name.equals("/faults")) { // faults apply to every instance
            body.put("instance", account.instance);
        }
        for (int index = 0; index < document.length; index += 2) {
            body.put((String) document[index], document[index + 1]);
        }
        HttpResponse<String> answer = HttpClient.newHttpClient().send(
                HttpRequest.newBuilder(URI.create(admin + name))
                        .POST(HttpRequest.BodyPublishers.ofString(json.toJson(body)))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) {
            throw new Wrong("control " + name + ": " + answer.statusCode() + " " + answer.body());
        }
        return json.fromJson(answer.body(), Map.class);
    }
}

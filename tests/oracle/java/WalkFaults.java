package oracle;

import static oracle.Rows.key;
import static oracle.Rows.v;
import static oracle.Walk.equal;
import static oracle.Walk.wantRefusal;

import com.alicloud.openservices.tablestore.ClientException;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.TableOptions;
import com.alicloud.openservices.tablestore.model.UpdateTableRequest;
import com.alicloud.openservices.tablestore.model.tunnel.ListTunnelRequest;

/** Calls fail on purpose: what the SDK tries again succeeds, what it does not comes back as it was said. */
final class WalkFaults extends Section {
    private static final String TABLE = "faults";
    private static final int DAY = 86_400;
    private final PrimaryKey at = key("r");

    WalkFaults(Walk walk) {
        super(walk);
    }

    private void fails(String operation, String code, int count) throws Exception {
        w.control("/faults", "operation", operation, "code", code, "count", count);
    }

    private void loses(String operation) throws Exception {
        w.control("/faults", "operation", operation, "drop_response", true, "count", 1);
    }

    private void put() {
        put(TABLE, at, v("n", 1, 1));
    }

    @Override
    void run() {
        w.step("create", () -> create(TABLE, "s"));
        for (String code : new String[] {
            "OTSServerBusy", "OTSTableNotReady", "OTSPartitionUnavailable", "OTSRowOperationConflict", "OTSNotEnoughCapacityUnit"
        }) {
            w.step("put tries again on " + code, () -> {
                fails("PutRow", code, 2);
                put();
            });
        }
        for (String code : new String[] {"OTSInternalServerError", "OTSServerUnavailable", "OTSTimeout"}) {
            w.step("only a read tries again on " + code, () -> {
                fails("PutRow", code, 1);
                wantRefusal(code, "injected fault", this::put);
                put();
                fails("GetRow", code, 2);
                wants("[r] n@1=1", TABLE, at);
            });
        }
        w.step("a lost answer: the write was applied", () -> {
            loses("UpdateRow");
            try {
                update(TABLE, at, change -> change.increment(increment("counted", 1)));
                throw new Walk.Wrong("the answer was not lost");
            } catch (ClientException lost) {
                wants("[r] counted@now=1 n@1=1", TABLE, at);
            }
        });
        w.step("lost answers of reads", () -> {
            loses("GetRow");
            loses("DescribeTable");
            wants("[r] counted@now=1 n@1=1", TABLE, at);
            describe(TABLE);
        });
        w.step("out of service for a while", () -> {
            w.control("/faults", "unavailable", 0.2);
            wants("[r] counted@now=1 n@1=1", TABLE, at);
        });
        w.step("the tunnel service too", () -> {
            ListTunnelRequest list = new ListTunnelRequest(TABLE);
            fails("ListTunnel", "OTSTunnelServerUnavailable", 2);
            w.tunnel.listTunnel(list);
            loses("ListTunnel");
            w.tunnel.listTunnel(list);
            fails("ListTunnel", "OTSPermissionDenied", 1);
            wantRefusal("OTSPermissionDenied", "injected fault", () -> w.tunnel.listTunnel(list));
        });
        w.step("no rule is left", () -> equal("rules", w.control("/faults", "clear", true).get("rules"), 0));
        lifetimes();
    }

    private void options(int seconds, int versions) {
        UpdateTableRequest request = new UpdateTableRequest("lifetimes");
        request.setTableOptionsForUpdate(new TableOptions(seconds, versions, 10 * DAY));
        w.table.updateTable(request);
    }

    /** What is stored lives shorter: it is gone at once. */
    private void lifetimes() {
        PrimaryKey old = key("old");
        w.step("fewer versions", () -> {
            create("lifetimes", "s", request -> request.getTableOptions().setMaxTimeDeviation(10 * DAY));
            put("lifetimes", at, v("n", 1, 1), v("n", 2, 2), v("n", 3, 3));
            options(-1, 1);
            wants("[r] n@3=3", "lifetimes", at);
            options(-1, 3);
            wants("[r] n@3=3", "lifetimes", at);
        });
        w.step("a shorter life", () -> {
            put("lifetimes", at, v("young", 1, 1), v("old", 1, -2 * DAY * 1000));
            put("lifetimes", old, v("old", 1, -2 * DAY * 1000));
            options(DAY, 3);
            wants("[r] young@1=1", "lifetimes", at);
            wants("", "lifetimes", old);
        });
        refusedParameter("a version older than the life", "Invalid timestamp",
                () -> put("lifetimes", at, v("n", 1, -2 * DAY * 1000)));
    }
}

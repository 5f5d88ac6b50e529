package oracle;

import static oracle.Rows.c;
import static oracle.Rows.key;
import static oracle.Walk.equal;
import static oracle.Walk.wantRefusal;
import static oracle.Walk.yes;

import com.alicloud.openservices.tablestore.SyncClientInterface;
import com.alicloud.openservices.tablestore.TunnelClientInterface;
import com.alicloud.openservices.tablestore.core.auth.DefaultCredentialProvider;
import com.alicloud.openservices.tablestore.model.GetRowRequest;
import com.alicloud.openservices.tablestore.model.Priority;
import com.alicloud.openservices.tablestore.model.PutRowRequest;
import com.alicloud.openservices.tablestore.model.RequestExtension;
import com.alicloud.openservices.tablestore.model.SingleRowQueryCriteria;
import com.alicloud.openservices.tablestore.model.tunnel.ListTunnelRequest;
import com.alicloud.openservices.tablestore.model.tunnel.TunnelType;
import java.util.function.Consumer;

/** Who may call, under which signature; compressed bodies. */
final class WalkSecurity extends Section {
    /** What to do with a client of each API. */
    private interface Use {
        void run(SyncClientInterface tables, TunnelClientInterface tunnels) throws Exception;
    }

    private static final String STALE = "Mismatch between system time and x-ots-date";

    WalkSecurity(Walk walk) {
        super(walk);
    }

    private void as(Consumer<Account> change, Use use) throws Exception {
        Account other = new Account(w.account);
        change.accept(other);
        SyncClientInterface tables = w.tables(other, other.configuration());
        TunnelClientInterface tunnels = w.tunnels(other, other.configuration());
        try {
            use.run(tables, tunnels);
        } finally {
            tables.shutdown();
            tunnels.shutdown();
        }
    }

    private void refused(String what, String text, Consumer<Account> change) {
        w.step(what, () -> as(change, (tables, tunnels) -> {
            wantRefusal("OTSAuthFailed", text, tables::listTable);
            wantRefusal("OTSAuthFailed", text, () -> tunnels.listTunnel(new ListTunnelRequest("tunnels")));
        }));
    }

    private void allowed(String what, Consumer<Account> change) {
        w.step(what, () -> as(change, (tables, tunnels) -> {
            tables.listTable();
            put(tables, key("signed"), "x");
            equal("row", get(tables, key("signed")), "[signed] a@now=x");
            tunnels.listTunnel(new ListTunnelRequest("security"));
        }));
    }

    private static void put(SyncClientInterface tables, com.alicloud.openservices.tablestore.model.PrimaryKey at, String text) {
        tables.putRow(new PutRowRequest(putChange("security", at, c("a", text))));
    }

    private static String get(SyncClientInterface tables, com.alicloud.openservices.tablestore.model.PrimaryKey at) {
        SingleRowQueryCriteria asked = new SingleRowQueryCriteria("security", at);
        asked.setMaxVersions(1);
        return Rows.show(tables.getRow(new GetRowRequest(asked)).getRow());
    }

    @Override
    void run() {
        w.step("create", () -> create("security", "s"));
        for (String region : new String[] {null, "cn-hangzhou"}) {
            String under = region == null ? " under V2" : " under V4";
            refused("a wrong secret" + under, "Signature mismatch.", other -> {
                other.keySecret = "wrong";
                other.region = region;
            });
            refused("an unknown key" + under, "The AccessKeyID does not exist.", other -> {
                other.keyId = "unknown";
                other.region = region;
            });
            refused("an unknown instance" + under, "The instance is not found.", other -> {
                other.instance = "unknown";
                other.region = region;
            });
            refused("a wrong secret with a token" + under, "Signature mismatch.", other -> {
                other.keySecret = "wrong";
                other.stsToken = "token";
                other.region = region;
            });
            allowed("a signature" + under, other -> other.region = region);
            allowed("an STS token" + under, other -> {
                other.stsToken = "token";
                other.region = region;
            });
        }
        allowed("an endpoint with a slash", other -> other.endpoint += "/");
        w.step("another instance has other tables", () -> as(other -> other.instance = "second", (tables, tunnels) -> {
            yes("tables", tables.listTable().getTableNames().stream().allMatch(name -> name.matches("t[0-9]+")));
            equal("tables", tables.listTable().getTableNames().size(), 64);
        }));
        for (String region : new String[] {null, "cn-hangzhou"}) {
            w.step("a date that is off under " + (region == null ? "V2" : "V4"), () -> {
                w.control("/clock", "advance", 3600);
                try {
                    as(other -> other.region = region, (tables, tunnels) -> {
                        wantRefusal("OTSAuthFailed", STALE, tables::listTable);
                        wantRefusal("OTSAuthFailed", STALE, () -> tunnels.listTunnel(new ListTunnelRequest("tunnels")));
                    });
                } finally {
                    w.control("/clock", "advance", -3600);
                }
            });
        }
        w.step("credentials are replaced", () -> as(other -> other.keySecret = "wrong", (tables, tunnels) -> {
            wantRefusal("OTSAuthFailed", "Signature mismatch.", tables::listTable);
            tables.switchCredentialsProvider(new DefaultCredentialProvider(w.account.keyId, w.account.keySecret));
            tables.listTable();
        }));
        w.step("a priority, a tag", () -> {
            PutRowRequest request = new PutRowRequest(putChange("security", key("tagged"), c("a", "x")));
            RequestExtension extension = new RequestExtension();
            extension.setPriority(Priority.HIGH);
            extension.setTag("tag");
            request.setExtension(extension);
            yes("request id", !w.table.putRow(request).getRequestId().isEmpty());
        });
        w.step("the asynchronous client", () -> {
            SingleRowQueryCriteria asked = new SingleRowQueryCriteria("security", key("tagged"));
            asked.setMaxVersions(1);
            equal("row", Rows.show(w.table.asAsyncClient().getRow(new GetRowRequest(asked), null).get().getRow()),
                    "[tagged] a@now=x");
        });
    }

    /** Requests and answers compressed, which only this SDK can. */
    void compression() {
        Consumer<Account> compressed = other -> other.compressed = true;
        w.step("rows", () -> as(compressed, (tables, tunnels) -> {
            put(tables, key("compressed"), "x".repeat(100_000));
            equal("row", get(tables, key("compressed")), "[compressed] a@now=" + "x".repeat(100_000));
            equal("plain", get(w.table, key("compressed")).length(), 100_000 + "[compressed] a@now=".length());
            yes("tables", tables.listTable().getTableNames().contains("security"));
        }));
        w.step("a refusal", () -> as(compressed, (tables, tunnels) -> {
            wantRefusal("OTSParameterInvalid", "Attribute column is missing.", () -> tables.updateRow(
                    new com.alicloud.openservices.tablestore.model.UpdateRowRequest(
                            new com.alicloud.openservices.tablestore.model.RowUpdateChange("security", key("compressed")))));
            wantRefusal("OTSParameterInvalid", WalkTunnels.NO_TUNNEL,
                    () -> tunnels.describeTunnel(new com.alicloud.openservices.tablestore.model.tunnel.DescribeTunnelRequest(
                            "security", "missing")));
        }));
        w.step("a wrong secret", () -> as(compressed.andThen(other -> other.keySecret = "wrong"), (tables, tunnels) ->
                wantRefusal("OTSAuthFailed", "Signature mismatch.", tables::listTable)));
        w.step("under V4 with a token", () -> as(compressed.andThen(other -> {
            other.region = "cn-hangzhou";
            other.stsToken = "token";
        }), (tables, tunnels) -> equal("row", get(tables, key("compressed")).length(), 100_019)));
        w.step("a tunnel", () -> as(compressed, (tables, tunnels) -> {
            String id = WalkTunnels.create(w, "security", "t", TunnelType.BaseData, null);
            yes("listed", tunnels.listTunnel(new ListTunnelRequest("security")).getTunnelInfos().get(0).getTunnelId().equals(id));
        }));
    }
}

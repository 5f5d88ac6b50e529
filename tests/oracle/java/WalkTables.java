package oracle;

import static oracle.Walk.equal;
import static oracle.Walk.wantRefusal;
import static oracle.Walk.yes;

import com.alicloud.openservices.tablestore.SyncClientInterface;
import com.alicloud.openservices.tablestore.model.CapacityUnit;
import com.alicloud.openservices.tablestore.model.CreateTableRequest;
import com.alicloud.openservices.tablestore.model.DefinedColumnType;
import com.alicloud.openservices.tablestore.model.DeleteTableRequest;
import com.alicloud.openservices.tablestore.model.DescribeTableResponse;
import com.alicloud.openservices.tablestore.model.PrimaryKeyType;
import com.alicloud.openservices.tablestore.model.ReservedThroughput;
import com.alicloud.openservices.tablestore.model.StreamSpecification;
import com.alicloud.openservices.tablestore.model.TableOptions;
import com.alicloud.openservices.tablestore.model.UpdateTableRequest;
import com.alicloud.openservices.tablestore.model.UpdateTableResponse;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/** Tables: created, described, updated, listed, deleted. */
final class WalkTables extends Section {
    WalkTables(Walk walk) {
        super(walk);
    }

    private static String show(TableOptions options) {
        return "ttl " + options.getTimeToLive() + ", versions " + options.getMaxVersions() + ", deviation "
                + options.getMaxTimeDeviation();
    }

    private static TableOptions options(int seconds, int versions, long deviation) {
        return new TableOptions(seconds, versions, deviation);
    }

    @Override
    void run() {
        w.step("create with all options", () -> create("all_options", "sib", request -> {
            withStream(request);
            TableOptions options = options(864000, 7, 5000);
            options.setAllowUpdate(false);
            request.setTableOptions(options);
            for (DefinedColumnType type : DefinedColumnType.values()) {
                request.getTableMeta().addDefinedColumn("d_" + type, type);
            }
        }));
        w.step("describe all options", this::describeAllOptions);
        w.step("create plain", () -> create("plain", "s"));
        w.step("describe plain", () -> {
            DescribeTableResponse got = describe("plain");
            equal("options", show(got.getTableOptions()), "ttl -1, versions 3, deviation 86400");
            equal("allow_update", got.getTableOptions().getAllowUpdate(), true);
            equal("stream", got.getStreamDetails().isEnableStream(), false);
            equal("partition borders", got.getShardSplits().size(), 0);
        });
        w.step("list", () -> equal("tables", w.table.listTable().getTableNames(), List.of("all_options", "plain")));
        w.refused("create existing", "OTSObjectAlreadyExist", "Requested table already exists.",
                () -> create("plain", "s"));
        updates();
        refusals();
        w.step("delete", () -> {
            w.table.deleteTable(new DeleteTableRequest("all_options"));
            equal("tables", w.table.listTable().getTableNames(), List.of("plain"));
        });
        w.refused("describe deleted", "OTSObjectNotExist", NO_TABLE, () -> describe("all_options"));
        w.refused("delete missing", "OTSObjectNotExist", NO_TABLE,
                () -> w.table.deleteTable(new DeleteTableRequest("all_options")));
        w.step("quota of tables", () -> {
            Account second = new Account(w.account);
            second.instance = "second";
            SyncClientInterface client = w.tables(second, second.configuration());
            for (int number = 0; number < 64; number++) {
                client.createTable(tableRequest("t" + number, "s"));
            }
            wantRefusal("OTSQuotaExhausted", "Number of tables exceeds the quota:64.",
                    () -> client.createTable(tableRequest("t64", "s")));
            client.shutdown();
        });
    }

    private void describeAllOptions() {
        DescribeTableResponse got = describe("all_options");
        equal("name", got.getTableMeta().getTableName(), "all_options");
        equal("key", got.getTableMeta().getPrimaryKeyList().stream()
                .map(one -> one.getName() + ":" + one.getType()).collect(Collectors.toList()),
                List.of("k0:STRING", "k1:INTEGER", "k2:BINARY"));
        equal("defined", got.getTableMeta().getDefinedColumnsList().stream()
                .map(one -> one.getName() + ":" + one.getType()).collect(Collectors.toList()),
                List.of("d_INTEGER:INTEGER", "d_DOUBLE:DOUBLE", "d_BOOLEAN:BOOLEAN", "d_STRING:STRING", "d_BINARY:BINARY"));
        equal("options", show(got.getTableOptions()), "ttl 864000, versions 7, deviation 5000");
        equal("allow_update", got.getTableOptions().getAllowUpdate(), false);
        equal("stream", got.getStreamDetails().isEnableStream(), true);
        equal("hours", got.getStreamDetails().getExpirationTime(), 24);
        yes("stream id", got.getStreamDetails().getStreamId().startsWith("all_options_"));
        yes("enabled in microseconds", got.getStreamDetails().getLastEnableTime() > Rows.EPOCH * 1000);
        yes("created in microseconds", got.getCreationTime() > Rows.EPOCH * 1000);
        CapacityUnit unit = got.getReservedThroughputDetails().getCapacityUnit();
        equal("throughput", unit.getReadCapacityUnit() + unit.getWriteCapacityUnit(), 0);
        yes("last increase", got.getReservedThroughputDetails().getLastIncreaseTime() > 0);
        equal("encryption", got.getSseDetails() != null && got.getSseDetails().isEnable(), false);
        equal("indexes", got.getIndexMeta().size(), 0);
    }

    private UpdateTableResponse update(Consumer<UpdateTableRequest> fill) {
        UpdateTableRequest request = new UpdateTableRequest("plain");
        fill.accept(request);
        return w.table.updateTable(request);
    }

    private UpdateTableResponse stream(StreamSpecification specification) {
        return update(request -> request.setStreamSpecification(specification));
    }

    private void updates() {
        String[] old = new String[1];
        w.step("update options", () -> {
            TableOptions options = new TableOptions();
            options.setTimeToLive(864000);
            options.setMaxVersions(5);
            equal("answer", show(update(request -> request.setTableOptionsForUpdate(options)).getTableOptions()),
                    "ttl 864000, versions 5, deviation 86400");
            equal("described", show(describe("plain").getTableOptions()), "ttl 864000, versions 5, deviation 86400");
        });
        w.step("update one option", () -> {
            TableOptions options = new TableOptions();
            options.setMaxVersions(6);
            equal("answer", show(update(request -> request.setTableOptionsForUpdate(options)).getTableOptions()),
                    "ttl 864000, versions 6, deviation 86400");
        });
        w.step("update throughput", () -> {
            UpdateTableResponse got = update(request -> request.setReservedThroughputForUpdate(new ReservedThroughput(0, 0)));
            equal("options stay", show(got.getTableOptions()), "ttl 864000, versions 6, deviation 86400");
        });
        w.step("update deviation", () -> equal("answer",
                show(update(request -> request.setTableOptionsForUpdate(options(-1, 3, 90000))).getTableOptions()),
                "ttl -1, versions 3, deviation 90000"));
        w.step("enable stream", () -> {
            UpdateTableResponse got = stream(new StreamSpecification(true, 168));
            old[0] = got.getStreamDetails().getStreamId();
            equal("stream", got.getStreamDetails().isEnableStream(), true);
            equal("hours", got.getStreamDetails().getExpirationTime(), 168);
        });
        refusedParameter("enable stream twice", "", () -> stream(new StreamSpecification(true, 168)));
        w.step("disable stream", () -> equal("stream",
                stream(new StreamSpecification(false)).getStreamDetails().isEnableStream(), false));
        refusedParameter("disable stream twice", "", () -> stream(new StreamSpecification(false)));
        refusedParameter("enable stream for too long", "", () -> stream(new StreamSpecification(true, 169)));
        w.step("enable stream again", () -> yes("a new stream",
                !stream(new StreamSpecification(true, 1)).getStreamDetails().getStreamId().equals(old[0])));
        refusedParameter("update nothing", "", () -> update(request -> {}));
        refusedParameter("update no option", "No parameter is specified in table options.",
                () -> update(request -> request.setTableOptionsForUpdate(new TableOptions())));
        w.refused("update missing", "OTSObjectNotExist", NO_TABLE, () -> update(request -> {
            request.setTableName("missing");
            request.setTableOptionsForUpdate(options(-1, 1, 1));
        }));
    }

    private void refused(String what, String text, String name, String kinds, Consumer<CreateTableRequest> change) {
        refusedParameter("create with " + what, text, () -> create(name, kinds, change));
    }

    private void refusals() {
        refused("a bad name", "Invalid table name: '1abc'.", "1abc", "s", request -> {});
        refused("a hyphen", "Invalid table name: 'a-b'.", "a-b", "s", request -> {});
        refused("a long name", "Invalid table name: 'nnn", "n".repeat(256), "s", request -> {});
        refused("auto-increment first", "First primary key can't be auto increment, table: bad.", "bad", "a", request -> {});
        refused("two auto-increments", "", "bad", "saa", request -> {});
        refused("five keys", "The number of primary key columns must be in range: [1, 4].", "bad", "sssss", request -> {});
        refused("a key twice", "Duplicated primary key name: 'k0'.", "bad", "s",
                request -> request.getTableMeta().addPrimaryKeyColumn("k0", PrimaryKeyType.STRING));
        refused("33 defined columns", "The number of defined columns must be in range: [0, 32].", "bad", "s", request -> {
            for (int number = 0; number < 33; number++) {
                request.getTableMeta().addDefinedColumn("d" + number, DefinedColumnType.INTEGER);
            }
        });
        refused("an endless deviation", "The maximum deviation must be in range [0, INT64_MAX/1000000].", "bad", "s",
                request -> request.setTableOptions(options(-1, 1, Long.MAX_VALUE)));
        refused("169 hours of stream", "", "bad", "s",
                request -> request.setStreamSpecification(new StreamSpecification(true, 169)));
        w.refused("nothing of a refused table", "OTSObjectNotExist", NO_TABLE, () -> describe("bad"));
    }
}

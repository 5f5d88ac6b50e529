package oracle;

import static oracle.Rows.CHOSEN;
import static oracle.Rows.EPOCH;
import static oracle.Rows.MAX;
import static oracle.Rows.MIN;
import static oracle.Rows.key;
import static oracle.Rows.v;
import static oracle.Rows.value;
import static oracle.Walk.equal;
import static oracle.Walk.wantRefusal;
import static oracle.Walk.yes;

import com.alicloud.openservices.tablestore.ClientConfiguration;
import com.alicloud.openservices.tablestore.SyncClientInterface;
import com.alicloud.openservices.tablestore.model.AbortTransactionRequest;
import com.alicloud.openservices.tablestore.model.BatchWriteRowRequest;
import com.alicloud.openservices.tablestore.model.BatchWriteRowResponse;
import com.alicloud.openservices.tablestore.model.CommitTransactionRequest;
import com.alicloud.openservices.tablestore.model.Condition;
import com.alicloud.openservices.tablestore.model.DeleteRowRequest;
import com.alicloud.openservices.tablestore.model.GetRangeRequest;
import com.alicloud.openservices.tablestore.model.GetRowRequest;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.PrimaryKeyOption;
import com.alicloud.openservices.tablestore.model.PutRowRequest;
import com.alicloud.openservices.tablestore.model.RangeRowQueryCriteria;
import com.alicloud.openservices.tablestore.model.RetryStrategy;
import com.alicloud.openservices.tablestore.model.ReturnType;
import com.alicloud.openservices.tablestore.model.RowDeleteChange;
import com.alicloud.openservices.tablestore.model.RowPutChange;
import com.alicloud.openservices.tablestore.model.RowUpdateChange;
import com.alicloud.openservices.tablestore.model.SingleRowQueryCriteria;
import com.alicloud.openservices.tablestore.model.StartLocalTransactionRequest;
import com.alicloud.openservices.tablestore.model.UpdateRowRequest;

/** Keys that the service chooses, and local transactions. */
final class WalkTransactions extends Section {
    private static final String NUMBERED = "numbered";
    private static final String TABLE = "transactions";

    /** Tries nothing again. */
    static final class Hasty implements RetryStrategy {
        @Override
        public RetryStrategy clone() {
            return new Hasty();
        }

        @Override
        public int getRetries() {
            return 0;
        }

        @Override
        public long nextPause(String action, Exception failed) {
            return 0;
        }
    }

    WalkTransactions(Walk walk) {
        super(walk);
    }

    private long numbered(RowPutChange change) {
        change.setReturnType(ReturnType.RT_PK);
        return w.table.putRow(new PutRowRequest(change)).getRow().getPrimaryKey().getPrimaryKeyColumn(1).getValue().asLong();
    }

    void autoIncrement() {
        long[] numbers = new long[3];
        w.step("create", () -> create(NUMBERED, "sa"));
        w.step("describe", () -> equal("option",
                describe(NUMBERED).getTableMeta().getPrimaryKeyList().get(1).getOption(), PrimaryKeyOption.AUTO_INCREMENT));
        w.step("numbers increase", () -> {
            for (int index = 0; index < 3; index++) {
                numbers[index] = numbered(putChange(NUMBERED, key("p", CHOSEN), v("n", index, 1)));
                yes("increasing", index == 0 || numbers[index] > numbers[index - 1]);
            }
            wants("[p," + numbers[1] + "] n@1=1", NUMBERED, key("p", numbers[1]));
        });
        w.step("in a batch", () -> {
            BatchWriteRowRequest request = new BatchWriteRowRequest();
            for (String partition : new String[] {"p", "q"}) {
                RowPutChange change = putChange(NUMBERED, key(partition, CHOSEN));
                change.setReturnType(ReturnType.RT_PK);
                request.addRowChange(change);
            }
            BatchWriteRowResponse got = w.table.batchWriteRow(request);
            equal("failed", got.getFailedRows().size(), 0);
            PrimaryKey first = got.getRowStatus(NUMBERED).get(0).getRow().getPrimaryKey();
            yes("increasing", first.getPrimaryKeyColumn(1).getValue().asLong() > numbers[2]);
        });
        w.step("update and delete by number", () -> {
            PrimaryKey at = key("p", numbers[0]);
            update(NUMBERED, at, change -> change.put("m", value("x"), EPOCH + 1));
            wants("[p," + numbers[0] + "] m@1=x n@1=0", NUMBERED, at);
            delete(NUMBERED, at);
            wants("", NUMBERED, at);
        });
        refusedParameter("put where it must exist", "Invalid expect:EXPECT_EXIST when modify row with pk auto increment.", () -> {
            RowPutChange change = putChange(NUMBERED, key("p", CHOSEN));
            change.setCondition(new Condition(MUST_EXIST));
            numbered(change);
        });
        refusedParameter("no reading without a number", "", () -> get(NUMBERED, key("p", CHOSEN)));
        refusedParameter("no deleting without a number", "", () -> delete(NUMBERED, key("p", CHOSEN)));
    }

    private String start(String table, String partition) {
        return w.table.startLocalTransaction(new StartLocalTransactionRequest(table, key(partition))).getTransactionID();
    }

    private void commit(String id) {
        w.table.commitTransaction(new CommitTransactionRequest(id));
    }

    private void abort(String id) {
        w.table.abortTransaction(new AbortTransactionRequest(id));
    }

    private static void put(SyncClientInterface client, String id, PrimaryKey at, int number) {
        PutRowRequest request = new PutRowRequest(putChange(TABLE, at, v("n", number, 1)));
        if (id != null) {
            request.setTransactionId(id);
        }
        client.putRow(request);
    }

    private String within(String id, PrimaryKey at) {
        SingleRowQueryCriteria asked = new SingleRowQueryCriteria(TABLE, at);
        asked.setMaxVersions(1);
        GetRowRequest request = new GetRowRequest(asked);
        request.setTransactionId(id);
        return Rows.show(w.table.getRow(request).getRow());
    }

    @Override
    void run() {
        w.step("create", () -> create(TABLE, "si", request -> request.setLocalTxnEnabled(true)));
        w.step("commit", this::commits);
        w.step("a batch inside", () -> {
            String id = start(TABLE, "p");
            BatchWriteRowRequest request = new BatchWriteRowRequest();
            request.addRowChange(putChange(TABLE, key("p", 6), v("n", 6, 1)));
            request.addRowChange(putChange(TABLE, key("p", 7), v("n", 7, 1)));
            request.setTransactionId(id);
            equal("failed", w.table.batchWriteRow(request).getFailedRows().size(), 0);
            wants("", TABLE, key("p", 6));
            commit(id);
            wants("[p,6] n@1=6", TABLE, key("p", 6));
        });
        w.step("abort", () -> {
            String id = start(TABLE, "p");
            put(w.table, id, key("p", 1), 9);
            put(w.table, id, key("p", 9), 9);
            abort(id);
            wants("[p,1] n@1=1", TABLE, key("p", 1));
            wants("", TABLE, key("p", 9));
        });
        w.step("others wait", this::othersWait);
        w.step("another partition key", () -> {
            String id = start(TABLE, "p");
            wantRefusal("OTSDataOutOfRange", "", () -> put(w.table, id, key("q", 1), 1));
            abort(id);
        });
        w.step("used up", () -> {
            String id = start(TABLE, "p");
            commit(id);
            wantRefusal("OTSSessionNotExist", "", () -> commit(id));
            wantRefusal("OTSSessionNotExist", "", () -> put(w.table, id, key("p", 1), 1));
        });
        refusedParameter("commit of what never was", "TransactionID is invalid.", () -> commit("none"));
        refusedParameter("abort of what never was", "TransactionID is invalid.", () -> abort("none"));
        w.refused("no table", "OTSObjectNotExist", NO_TABLE, () -> start("missing", "p"));
        refusedParameter("a table with auto-increment", "", () -> start(NUMBERED, "p"));
    }

    private void commits() {
        String id = start(TABLE, "p");
        put(w.table, id, key("p", 1), 1);
        UpdateRowRequest update = new UpdateRowRequest(
                new RowUpdateChange(TABLE, key("p", 2)).put("n", value(2), EPOCH + 1));
        update.setTransactionId(id);
        w.table.updateRow(update);
        DeleteRowRequest remove = new DeleteRowRequest(new RowDeleteChange(TABLE, key("p", 3)));
        remove.setTransactionId(id);
        w.table.deleteRow(remove);
        wants("", TABLE, key("p", 1));
        equal("row within", within(id, key("p", 1)), "[p,1] n@1=1");
        RangeRowQueryCriteria asked = new RangeRowQueryCriteria(TABLE);
        asked.setInclusiveStartPrimaryKey(key("p", MIN));
        asked.setExclusiveEndPrimaryKey(key("p", MAX));
        asked.setMaxVersions(1);
        GetRangeRequest range = new GetRangeRequest(asked);
        range.setTransactionId(id);
        equal("range within", show(w.table.getRange(range)), "[p,1] n@1=1; [p,2] n@1=2");
        commit(id);
        wants("[p,1] n@1=1", TABLE, key("p", 1));
        wants("[p,2] n@1=2", TABLE, key("p", 2));
    }

    private void othersWait() throws Exception {
        ClientConfiguration configuration = w.account.configuration();
        configuration.setRetryStrategy(new Hasty());
        SyncClientInterface hasty = w.tables(w.account, configuration);
        String id = start(TABLE, "p");
        wantRefusal("OTSRowOperationConflict", "", () -> put(hasty, null, key("p", 1), 5));
        wantRefusal("OTSRowOperationConflict", "",
                () -> hasty.startLocalTransaction(new StartLocalTransactionRequest(TABLE, key("p"))));
        put(hasty, null, key("other", 1), 5);
        abort(id);
        put(hasty, null, key("p", 1), 1);
        hasty.shutdown();
    }
}

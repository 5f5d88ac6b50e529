package oracle;

import static oracle.Rows.EPOCH;
import static oracle.Rows.MIN;
import static oracle.Rows.c;
import static oracle.Rows.key;
import static oracle.Rows.v;
import static oracle.Rows.value;
import static oracle.Walk.equal;
import static oracle.Walk.wantRefusal;

import com.alicloud.openservices.tablestore.TableStoreException;
import com.alicloud.openservices.tablestore.model.AbortTransactionRequest;
import com.alicloud.openservices.tablestore.model.BatchGetRowRequest;
import com.alicloud.openservices.tablestore.model.BatchGetRowResponse;
import com.alicloud.openservices.tablestore.model.BatchWriteRowRequest;
import com.alicloud.openservices.tablestore.model.BatchWriteRowResponse;
import com.alicloud.openservices.tablestore.model.Condition;
import com.alicloud.openservices.tablestore.model.MultiRowQueryCriteria;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.ReturnType;
import com.alicloud.openservices.tablestore.model.Row;
import com.alicloud.openservices.tablestore.model.RowChange;
import com.alicloud.openservices.tablestore.model.RowDeleteChange;
import com.alicloud.openservices.tablestore.model.RowPutChange;
import com.alicloud.openservices.tablestore.model.RowUpdateChange;
import com.alicloud.openservices.tablestore.model.StartLocalTransactionRequest;
import com.alicloud.openservices.tablestore.model.TimeRange;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** Batches: the SDK merges their answers by position, and sends again what failed for a passing reason. */
final class WalkBatches extends Section {
    WalkBatches(Walk walk) {
        super(walk);
    }

    private static String shown(boolean succeeded, com.alicloud.openservices.tablestore.model.Error error, Row row) {
        return succeeded ? "ok" + Rows.show(row) : error.getCode();
    }

    /** Writes rows and shows per table what became of each: ok, what it returned, or the code of its error. */
    private Map<String, String> write(boolean atomic, RowChange... changes) {
        BatchWriteRowRequest request = new BatchWriteRowRequest();
        if (atomic) {
            request.setAtomic(true);
        }
        for (RowChange change : changes) {
            request.addRowChange(change);
        }
        Map<String, String> shown = new TreeMap<>();
        for (Map.Entry<String, List<BatchWriteRowResponse.RowResult>> table :
                w.table.batchWriteRow(request).getRowStatus().entrySet()) {
            List<String> rows = new ArrayList<>();
            table.getValue().forEach(row -> rows.add(shown(row.isSucceed(), row.getError(), row.getRow())));
            shown.put(table.getKey(), String.join("; ", rows));
        }
        return shown;
    }

    private Map<String, String> read(MultiRowQueryCriteria... criteria) {
        BatchGetRowRequest request = new BatchGetRowRequest();
        for (MultiRowQueryCriteria one : criteria) {
            request.addMultiRowQueryCriteria(one);
        }
        Map<String, String> shown = new TreeMap<>();
        for (Map.Entry<String, List<BatchGetRowResponse.RowResult>> table :
                w.table.batchGetRow(request).getTableToRowsResult().entrySet()) {
            List<String> rows = new ArrayList<>();
            table.getValue().forEach(row -> rows.add(shown(row.isSucceed(), row.getError(), row.getRow())));
            shown.put(table.getKey(), String.join("; ", rows));
        }
        return shown;
    }

    @Override
    void run() {
        w.step("create", () -> {
            create("batch1", "si");
            create("batch2", "s");
        });
        w.step("write two tables", () -> {
            RowUpdateChange increment = new RowUpdateChange("batch1", key("a", 2)).increment(increment("n", 7));
            increment.setReturnType(ReturnType.RT_AFTER_MODIFY);
            increment.addReturnColumn("n");
            RowPutChange put = putChange("batch1", key("a", 1), v("n", 1, 1));
            put.setReturnType(ReturnType.RT_PK);
            equal("results", write(false, put, increment, new RowDeleteChange("batch1", key("a", 3)),
                    putChange("batch2", key("x"), v("n", 1, 1))),
                    Map.of("batch1", "ok[a,1]; ok[-] n@now=7; ok", "batch2", "ok"));
            wants("[a,1] n@1=1", "batch1", key("a", 1));
            wants("[x] n@1=1", "batch2", key("x"));
        });
        w.step("failed rows stand in their places", () -> {
            RowPutChange impossible = putChange("batch1", key("a", 1), v("n", 9, 1));
            impossible.setCondition(new Condition(MUST_NOT_EXIST));
            equal("results", write(false, putChange("batch1", key("b", 1), v("n", 1, 1)), impossible,
                    putChange("batch1", key("b")), putChange("batch1", key("b", 2)), putChange("missing", key("b"))),
                    Map.of("batch1", "ok; OTSConditionCheckFail; OTSInvalidPK; ok", "missing", "OTSObjectNotExist"));
            wants("[a,1] n@1=1", "batch1", key("a", 1));
            wants("[b,2]", "batch1", key("b", 2));
        });
        w.step("the same key again and again", () -> {
            RowChange[] changes = new RowChange[11];
            for (int number = 0; number < 10; number++) {
                changes[number] = putChange("batch2", key("twice"), v("c" + number, number, 1));
            }
            changes[10] = new RowUpdateChange("batch2", key("twice")).put("d", value("x"), EPOCH + 1);
            write(false, changes);
            wants("[twice] c9@1=9 d@1=x", "batch2", key("twice"));
        });
        repetitions();
        refusals();
        atomic();
        reads();
        new WalkWriter(w).run();
    }

    /** Another transaction makes some rows of a batch fail until it ends. */
    private void repetitions() {
        w.step("only failed rows are sent again", () -> {
            String id = w.table.startLocalTransaction(new StartLocalTransactionRequest("batch1", key("locked")))
                    .getTransactionID();
            CompletableFuture<?> ended = CompletableFuture.runAsync(
                    () -> w.table.abortTransaction(new AbortTransactionRequest(id)),
                    CompletableFuture.delayedExecutor(300, TimeUnit.MILLISECONDS));
            RowPutChange late = putChange("batch1", key("locked", 1), v("n", 1, 1));
            late.setReturnType(ReturnType.RT_PK);
            RowUpdateChange once = new RowUpdateChange("batch1", key("free", 1)).increment(increment("n", 1));
            once.setReturnType(ReturnType.RT_AFTER_MODIFY);
            once.addReturnColumn("n");
            equal("results", write(false, once, late, putChange("batch2", key("free"))),
                    Map.of("batch1", "ok[-] n@now=1; ok[locked,1]", "batch2", "ok"));
            ended.get();
            wants("[free,1] n@now=1", "batch1", key("free", 1));
        });
        w.step("none is sent again beside one that cannot heal", () -> {
            String id = w.table.startLocalTransaction(new StartLocalTransactionRequest("batch1", key("locked")))
                    .getTransactionID();
            try {
                equal("results", write(false, putChange("batch1", key("locked", 1)), putChange("batch1", key("free", 2)),
                        putChange("missing", key("x"))),
                        Map.of("batch1", "OTSRowOperationConflict; ok", "missing", "OTSObjectNotExist"));
            } finally {
                w.table.abortTransaction(new AbortTransactionRequest(id));
            }
        });
    }

    private void refused(String what, String text, RowChange... changes) {
        refusedParameter("write " + what, text, () -> write(false, changes));
    }

    private void refusals() {
        RowChange[] many = new RowChange[201];
        for (int number = 0; number < many.length; number++) {
            many[number] = putChange("batch1", key("many", number));
        }
        refused("nothing", "No row is specified in BatchWriteRow.");
        refused("201 rows", "Rows count exceeds the upper limit: 200.", many);
        w.step("write 200 rows", () -> equal("results",
                write(false, java.util.Arrays.copyOf(many, 200)).get("batch1").split("; ").length, 200));
        String half = "x".repeat(2 * MEBIBYTE);
        refused("too many bytes",
                "The total data size of BatchWriteRow request exceeds the limit, limit size: 4194304, data size: 4194",
                putChange("batch1", key("a", 1), c("a", half)), putChange("batch1", key("a", 2), c("a", half)));
        refused("a row that is wrong in any table", "VT_INF_MIN is an invalid type for the primary key.",
                putChange("batch1", key("good", 1)), new RowDeleteChange("batch1", key("bad", MIN)));
        w.step("nothing came of it", () -> wants("", "batch1", key("good", 1)));
        RowPutChange expecting = putChange("batch2", key("twice"));
        expecting.setCondition(new Condition(MUST_EXIST));
        bothRefused("an expectation", expecting);
        RowPutChange conditional = putChange("batch2", key("twice"));
        Condition condition = new Condition(MAY_EXIST);
        condition.setColumnCondition(column("n", "EQUAL", 1, false));
        conditional.setCondition(condition);
        bothRefused("a condition", conditional);
    }

    private void bothRefused(String what, RowPutChange change) {
        w.step("write a key twice with " + what, () -> equal("results", write(false, change, change),
                Map.of("batch2", "OTSParameterInvalid; OTSParameterInvalid")));
    }

    private void atomic() {
        w.step("atomic", () -> {
            equal("results", write(true, putChange("batch1", key("atom", 1), v("n", 1, 1)),
                    putChange("batch1", key("atom", 2), v("n", 2, 1)), new RowDeleteChange("batch1", key("atom", 3))),
                    Map.of("batch1", "ok; ok; ok"));
            wants("[atom,2] n@1=2", "batch1", key("atom", 2));
        });
        w.step("atomic with a failed condition does nothing", () -> {
            RowPutChange impossible = putChange("batch1", key("atom", 1));
            impossible.setCondition(new Condition(MUST_NOT_EXIST));
            try {
                String got = write(true, putChange("batch1", key("atom", 9), v("n", 1, 1)), impossible).get("batch1");
                equal("a row succeeded", got.contains("ok"), false);
            } catch (TableStoreException refusal) { // either is tolerated
                equal("code", refusal.getErrorCode(), "OTSConditionCheckFail");
            }
            wants("", "batch1", key("atom", 9));
        });
        w.step("atomic over two partition keys", () -> {
            equal("results", write(true, putChange("batch1", key("atom", 8)), putChange("batch1", key("other", 8))),
                    Map.of("batch1", "OTSDataOutOfRange; OTSDataOutOfRange"));
            wants("", "batch1", key("atom", 8));
        });
    }

    private static MultiRowQueryCriteria several(String table, PrimaryKey... keys) {
        MultiRowQueryCriteria criteria = new MultiRowQueryCriteria(table);
        criteria.setMaxVersions(10);
        for (PrimaryKey key : keys) {
            criteria.addRow(key);
        }
        return criteria;
    }

    private void part(String what, String want, Consumer<MultiRowQueryCriteria> fill) {
        w.step("read " + what, () -> {
            MultiRowQueryCriteria criteria = several("batch1", key("r", 1), key("r", 2));
            fill.accept(criteria);
            equal("rows", read(criteria).get("batch1"), want);
        });
    }

    private void reads() {
        w.step("rows to read", () -> {
            put("batch1", key("r", 1), v("a", 1, 1), v("a", 2, 2), v("b", "x", 1));
            put("batch1", key("r", 2), v("a", 5, 1));
        });
        w.step("read two tables", () -> equal("rows",
                read(several("batch1", key("r", 2), key("r", 7), key("r", 1)), several("missing", key("r")),
                        several("batch2", key("x"))),
                Map.of("batch1", "ok[r,2] a@1=5; ok; ok[r,1] a@2=2 a@1=1 b@1=x", "missing", "OTSObjectNotExist",
                        "batch2", "ok[x] n@1=1")));
        part("columns", "ok[r,1] b@1=x; ok", criteria -> criteria.addColumnsToGet("b"));
        part("one version", "ok[r,1] a@2=2 b@1=x; ok[r,2] a@1=5", criteria -> criteria.setMaxVersions(1));
        part("a time range", "ok[r,1] a@1=1 b@1=x; ok[r,2] a@1=5",
                criteria -> criteria.setTimeRange(new TimeRange(EPOCH + 1, EPOCH + 2)));
        part("a filter", "ok; ok[r,2] a@1=5", criteria -> criteria.setFilter(filter("a", "GREATER_THAN", 4, true)));
        part("a range of columns", "ok[r,1] b@1=x; ok[r,2]", criteria -> {
            criteria.setStartColumn("b");
            criteria.setEndColumn("c");
        });
        w.step("read with a bad key", () -> equal("rows",
                read(several("batch1", key("r", "x"), key("r", 2))).get("batch1"), "OTSInvalidPK; ok[r,2] a@1=5"));
        PrimaryKey[] many = new PrimaryKey[101];
        for (int number = 0; number < many.length; number++) {
            many[number] = key("r", number);
        }
        refusedParameter("read 101 rows", "Rows count exceeds the upper limit: 100.", () -> read(several("batch1", many)));
        refusedParameter("read nothing", "", this::read);
        w.step("read a key twice", () -> equal("rows",
                read(several("batch1", key("r", 1), key("r", 1))).get("batch1").split("ok\\[r,1\\]", -1).length, 3));
        w.step("read keys of different length", () -> wantRefusal("OTSParameterInvalid",
                "PK column size not the same for all rows in table: batch1.",
                () -> read(several("batch1", key("r", 1), key("r")))));
    }
}

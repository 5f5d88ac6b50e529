package oracle;

import static oracle.Rows.CHOSEN;
import static oracle.Rows.EPOCH;
import static oracle.Rows.MAX;
import static oracle.Rows.MIN;
import static oracle.Rows.c;
import static oracle.Rows.key;
import static oracle.Rows.v;
import static oracle.Rows.value;
import static oracle.Walk.equal;

import com.alicloud.openservices.tablestore.model.GetRowRequest;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.PrimaryKeyColumn;
import com.alicloud.openservices.tablestore.model.PrimaryKeyValue;
import com.alicloud.openservices.tablestore.model.PutRowRequest;
import com.alicloud.openservices.tablestore.model.ReturnType;
import com.alicloud.openservices.tablestore.model.RowPutChange;
import com.alicloud.openservices.tablestore.model.RowUpdateChange;
import com.alicloud.openservices.tablestore.model.SingleRowQueryCriteria;
import com.alicloud.openservices.tablestore.model.UpdateRowRequest;
import java.util.function.Consumer;
import java.util.stream.IntStream;

/** Rows: put, updated, deleted, and what they are refused for. */
final class WalkWrites extends Section {
    private static final String TABLE = "writes";
    private final PrimaryKey at = key("a", -5, new byte[] {0, -1});

    WalkWrites(Walk walk) {
        super(walk);
    }

    @Override
    void run() {
        w.step("create", () -> create(TABLE, "sib"));
        w.step("put every type", () -> {
            put(TABLE, at, c("string", "x"), c("empty", ""), c("int", -1), c("double", 1.5), c("bool", true),
                    c("bytes", new byte[] {1, 2}), c("große.Spalte: 1", "ü"));
            wants("[a,-5,00ff] bool@now=true bytes@now=0102 double@now=1.5 empty@now= große.Spalte: 1@now=ü int@now=-1 "
                    + "string@now=x", TABLE, at);
        });
        w.step("put replaces", () -> {
            put(TABLE, at, c("n", 1));
            wants("[a,-5,00ff] n@now=1", TABLE, at);
        });
        w.step("put versions", () -> {
            put(TABLE, at, v("n", 1, 1), v("n", 2, 2), v("m", 3, 1));
            wants("[a,-5,00ff] m@1=3 n@2=2 n@1=1", TABLE, at);
        });
        w.step("put key only", () -> {
            put(TABLE, at);
            wants("[a,-5,00ff]", TABLE, at);
        });
        w.step("put returns the key", () -> {
            RowPutChange change = putChange(TABLE, at);
            change.setReturnType(ReturnType.RT_PK);
            equal("row", Rows.show(w.table.putRow(new PutRowRequest(change)).getRow()), "[a,-5,00ff]");
        });
        w.step("put returns nothing unless asked", () -> equal("row",
                w.table.putRow(new PutRowRequest(putChange(TABLE, at))).getRow(), null));
        w.step("capacity units", () -> {
            var written = w.table.putRow(new PutRowRequest(putChange(TABLE, at, c("a", "x".repeat(5000)))));
            SingleRowQueryCriteria asked = new SingleRowQueryCriteria(TABLE, at);
            asked.setMaxVersions(1);
            var read = w.table.getRow(new GetRowRequest(asked));
            equal("written", written.getConsumedCapacity().getCapacityUnit().getWriteCapacityUnit(), 2);
            equal("read", read.getConsumedCapacity().getCapacityUnit().getReadCapacityUnit(), 2);
        });
        updates();
        w.step("delete", () -> {
            delete(TABLE, at);
            wants("", TABLE, at);
        });
        w.step("delete missing", () -> delete(TABLE, at));
        w.step("no more than max versions", () -> {
            put(TABLE, at, v("n", 1, 1), v("n", 2, 2), v("n", 3, 3), v("n", 4, 4));
            wants("[a,-5,00ff] n@4=4 n@3=3 n@2=2", TABLE, at);
        });
        keyRefusals();
        valueRefusals();
        sizeRefusals();
    }

    private final PrimaryKey changed = key("u", 0, new byte[] {98});

    private void updates(String what, String want, Consumer<RowUpdateChange> fill) {
        w.step("update " + what, () -> {
            update(TABLE, changed, fill);
            wants(want, TABLE, changed);
        });
    }

    private void updates() {
        updates("creates", "[u,0,62] a@1=1 b@1=x",
                change -> change.put("a", value(1), EPOCH + 1).put("b", value("x"), EPOCH + 1));
        updates("merges", "[u,0,62] a@2=2 a@1=1 b@1=x c@now=true",
                change -> change.put("a", value(2), EPOCH + 2).put("c", value(true)));
        updates("overwrites a version", "[u,0,62] a@2=3 a@1=1 b@1=x c@now=true",
                change -> change.put("a", value(3), EPOCH + 2));
        updates("deletes one version", "[u,0,62] a@1=1 b@1=x c@now=true", change -> change.deleteColumn("a", EPOCH + 2));
        updates("deletes all versions", "[u,0,62] a@1=1 b@1=x", change -> change.deleteColumns("c"));
        updates("increments", "[u,0,62] a@now=11 a@1=1 b@1=x", change -> change.increment(increment("a", 10)));
        updates("deletes, puts, increments", "[u,0,62] b@2=y d@now=-3", change -> change.deleteColumns("a")
                .deleteColumn("b", EPOCH + 1).put("b", value("y"), EPOCH + 2)
                .increment(increment("d", -3))); // a column that is not there counts as 0
        w.step("update returns what it incremented", () -> {
            RowUpdateChange change = new RowUpdateChange(TABLE, changed);
            change.increment(increment("d", 5));
            change.setReturnType(ReturnType.RT_AFTER_MODIFY);
            change.addReturnColumn("d");
            equal("row", Rows.show(w.table.updateRow(new UpdateRowRequest(change)).getRow()), "[-] d@now=2");
        });
        refusedParameter("update returns key and columns", "", () -> {
            RowUpdateChange change = new RowUpdateChange(TABLE, changed);
            change.increment(increment("d", 5));
            change.setReturnType(ReturnType.RT_PK);
            change.addReturnColumn("d");
            w.table.updateRow(new UpdateRowRequest(change));
        });
        w.step("update deletes what is not there", () -> update(TABLE, changed,
                change -> change.deleteColumns("none").deleteColumn("none", EPOCH)));
        refusedParameter("increment of a string", "",
                () -> update(TABLE, changed, change -> change.increment(increment("b", 1))));
        refusedParameter("two increments of a column", "", () -> update(TABLE, changed,
                change -> change.increment(increment("d", 1)).increment(increment("d", 1))));
        refusedParameter("update of nothing", "Attribute column is missing.", () -> update(TABLE, changed, change -> {}));
        refusedParameter("update of an append-only table", "", () -> {
            create("append_only", "s", request -> request.getTableOptions().setAllowUpdate(false));
            put("append_only", key("a"), c("n", 1));
            update("append_only", key("a"), change -> change.put("n", value(2)));
        });
    }

    private void keyRefusals() {
        w.refused("put into no table", "OTSObjectNotExist", NO_TABLE, () -> put("missing", at));
        w.refused("update in no table", "OTSObjectNotExist", NO_TABLE,
                () -> update("missing", at, change -> change.put("a", value("x"))));
        w.refused("delete from no table", "OTSObjectNotExist", NO_TABLE, () -> delete("missing", at));
        byte[] one = {1};
        wrongKey("too few keys", "Validate PK size fail. Input: 2, Meta: 3.", key("a", 1));
        wrongKey("a wrong key type", "Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER.", key("a", "1", one));
        wrongKey("a binary for a string", "Validate PK type fail. Input: VT_BLOB, Meta: VT_STRING.", key(one, 1, one));
        wrongKey("a wrong key name", "Validate PK name fail. Input: x, Meta: k0.", new PrimaryKey(new PrimaryKeyColumn[] {
            new PrimaryKeyColumn("x", PrimaryKeyValue.fromString("a")), at.getPrimaryKeyColumn(1), at.getPrimaryKeyColumn(2)
        }));
        String long1025 = "x".repeat(1025);
        refused("a number to be chosen", "VT_AUTO_INCREMENT is an invalid type for the primary key.", key("a", CHOSEN, one));
        refused("INF_MIN", "VT_INF_MIN is an invalid type for the primary key.", key("a", MIN, one));
        refused("INF_MAX", "VT_INF_MAX is an invalid type for the primary key.", key("a", MAX, one));
        refused("a long key", "The length of primary key column: 'k0' exceeds the MaxLength:1024 with CurrentLength:1025.",
                key(long1025, 1, one));
        refused("a long binary key",
                "The length of primary key column: 'k2' exceeds the MaxLength:1024 with CurrentLength:1025.",
                key("a", 1, new byte[1025]));
    }

    private void wrongKey(String what, String text, PrimaryKey key) {
        w.refused("put with " + what, "OTSInvalidPK", text, () -> put(TABLE, key));
        w.refused("delete with " + what, "OTSInvalidPK", text, () -> delete(TABLE, key));
        w.refused("get with " + what, "OTSInvalidPK", text, () -> get(TABLE, key));
    }

    private void refused(String what, String text, PrimaryKey key, Rows.Cell... cells) {
        refusedParameter("put with " + what, text, () -> put(TABLE, key, cells));
    }

    private void valueRefusals() {
        refused("a long value", "The length of attribute column: 'a' exceeds the MaxLength:2097152 with "
                + "CurrentLength:2097153.", at, c("a", "x".repeat(2 * MEBIBYTE + 1)));
        refused("a long column name", "Invalid column name: '", at, c("n".repeat(256), 1));
        refused("a key as a column", "Duplicated attribute column name with primary key column: k1.", at, c("k1", 1));
        refused("NaN", "NaN can't be set to double value.", at, c("a", Double.NaN));
        refused("infinity", "Infinity can't be set to double value.", at, c("a", Double.POSITIVE_INFINITY));
        refused("a version too old", "Invalid timestamp", at, v("a", 1, -2 * 86_400_000));
        refused("a version too new", "Invalid timestamp", at, v("a", 1, 2 * 86_400_000));
        refused("a version after all time", "Timestamp must be in range [0, INT64_MAX/1000).", at,
                v("a", 1, Long.MAX_VALUE / 1000 - EPOCH));
    }

    private void sizeRefusals() {
        Rows.Cell[] cells = IntStream.range(0, 1025).mapToObj(number -> c("c" + number, 1)).toArray(Rows.Cell[]::new);
        refused("too many columns",
                "The number of attribute columns exceeds the limit, limit count: 1024, column count: 1025.", at, cells);
        w.step("put with 1024 columns", () -> put(TABLE, at, java.util.Arrays.copyOf(cells, 1024)));
        String half = "x".repeat(2 * MEBIBYTE);
        refused("too many bytes",
                "The total data size of PutRow request exceeds the limit, limit size: 4194304, data size: 4194",
                at, c("a", half), c("b", half));
        w.refused("put of a body too large", "OTSRequestBodyTooLarge", "The size of POST data is too large.",
                () -> put(TABLE, at, c("a", half), c("b", half), c("c", half)));
    }
}

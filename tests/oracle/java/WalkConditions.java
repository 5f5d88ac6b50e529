package oracle;

import static oracle.Rows.EPOCH;
import static oracle.Rows.key;
import static oracle.Rows.v;
import static oracle.Rows.value;

import com.alicloud.openservices.tablestore.model.Condition;
import com.alicloud.openservices.tablestore.model.DeleteRowRequest;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.PutRowRequest;
import com.alicloud.openservices.tablestore.model.RowChange;
import com.alicloud.openservices.tablestore.model.RowDeleteChange;
import com.alicloud.openservices.tablestore.model.RowExistenceExpectation;
import com.alicloud.openservices.tablestore.model.RowPutChange;
import com.alicloud.openservices.tablestore.model.RowUpdateChange;
import com.alicloud.openservices.tablestore.model.UpdateRowRequest;
import com.alicloud.openservices.tablestore.model.condition.ColumnCondition;
import com.alicloud.openservices.tablestore.model.condition.CompositeColumnValueCondition;

/** Writes under a condition on existence and on columns. */
final class WalkConditions extends Section {
    private static final String TABLE = "conditions";
    private final PrimaryKey there = key("there");
    private final PrimaryKey gone = key("gone");

    WalkConditions(Walk walk) {
        super(walk);
    }

    private static void hold(RowChange change, RowExistenceExpectation existence, ColumnCondition columns) {
        Condition condition = new Condition(existence);
        if (columns != null) {
            condition.setColumnCondition(columns);
        }
        change.setCondition(condition);
    }

    private void put(PrimaryKey at, RowExistenceExpectation existence, ColumnCondition columns) {
        RowPutChange change = putChange(TABLE, at, v("n", 5, 1), v("s", "m", 1));
        hold(change, existence, columns);
        w.table.putRow(new PutRowRequest(change));
    }

    private void update(PrimaryKey at, RowExistenceExpectation existence, ColumnCondition columns) {
        RowUpdateChange change = new RowUpdateChange(TABLE, at).put("n", value(5), EPOCH + 1);
        hold(change, existence, columns);
        w.table.updateRow(new UpdateRowRequest(change));
    }

    private void remove(PrimaryKey at, RowExistenceExpectation existence, ColumnCondition columns) {
        RowDeleteChange change = new RowDeleteChange(TABLE, at);
        hold(change, existence, columns);
        w.table.deleteRow(new DeleteRowRequest(change));
    }

    private void failed(String what, Walk.Body body) {
        w.refused(what, "OTSConditionCheckFail", "Condition check failed.", body);
    }

    @Override
    void run() {
        w.step("create", () -> {
            create(TABLE, "s");
            put(TABLE, there, v("n", 5, 1), v("s", "m", 1));
        });
        failed("put on a missing row that must exist", () -> put(gone, MUST_EXIST, null));
        failed("put on a row that must not exist", () -> put(there, MUST_NOT_EXIST, null));
        failed("update of a missing row that must exist", () -> update(gone, MUST_EXIST, null));
        failed("update of a row that must not exist", () -> update(there, MUST_NOT_EXIST, null));
        failed("delete of a missing row that must exist", () -> remove(gone, MUST_EXIST, null));
        w.step("nothing came of it", () -> {
            wants("", TABLE, gone);
            wants("[there] n@1=5 s@1=m", TABLE, there);
        });
        w.step("put where it must exist", () -> put(there, MUST_EXIST, null));
        w.step("update where it must exist", () -> update(there, MUST_EXIST, null));
        w.step("put where it must not exist, then delete where it must", () -> {
            put(gone, MUST_NOT_EXIST, null);
            remove(gone, MUST_EXIST, null);
            wants("", TABLE, gone);
        });
        comparisons();
        combinations();
        failed("update of a missing row, strict", () -> update(gone, MAY_EXIST, column("n", "EQUAL", 5, true)));
        w.step("update of a missing row, lenient", () -> {
            update(gone, MAY_EXIST, column("n", "EQUAL", 5, false));
            wants("[gone] n@1=5", TABLE, gone);
        });
        failed("delete on a wrong value", () -> remove(there, MUST_EXIST, column("n", "EQUAL", 6, true)));
        w.step("delete on the right value", () -> {
            remove(there, MUST_EXIST, column("n", "EQUAL", 5, true));
            wants("", TABLE, there);
        });
    }

    private void expect(String what, boolean passes, ColumnCondition condition) {
        if (passes) {
            w.step(what + " passes", () -> update(there, MAY_EXIST, condition));
        } else {
            failed(what + " fails", () -> update(there, MAY_EXIST, condition));
        }
    }

    /** Every comparator on a row with n=5. */
    private void comparisons() {
        String[][] comparators = { // whether 5 holds against 4, 5, 6
            {"EQUAL", "010"}, {"NOT_EQUAL", "101"}, {"GREATER_THAN", "100"},
            {"GREATER_EQUAL", "110"}, {"LESS_THAN", "001"}, {"LESS_EQUAL", "011"},
        };
        for (String[] one : comparators) {
            for (int offset = 0; offset < 3; offset++) {
                expect("n " + one[0] + " " + (4 + offset), one[1].charAt(offset) == '1',
                        column("n", one[0], 4 + offset, true));
            }
        }
        expect("s GREATER_THAN l", true, column("s", "GREATER_THAN", "l", true));
        expect("missing, strict,", false, column("none", "EQUAL", 1, true));
        expect("missing, lenient,", true, column("none", "EQUAL", 1, false));
    }

    private void combinations() {
        ColumnCondition yes = column("n", "EQUAL", 5, true);
        ColumnCondition no = column("s", "EQUAL", "x", true);
        expect("yes and yes", true, all("AND", yes, yes));
        expect("yes and no", false, all("AND", yes, no));
        expect("no or yes", true, all("OR", no, yes));
        expect("no or no", false, all("OR", no, no));
        expect("not no", true, all("NOT", no));
        expect("not yes", false, all("NOT", yes));
        expect("not (no or (yes and no))", true, all("NOT", all("OR", no, all("AND", yes, no))));
    }

    private static ColumnCondition all(String operator, ColumnCondition... conditions) {
        CompositeColumnValueCondition combined =
                new CompositeColumnValueCondition(CompositeColumnValueCondition.LogicOperator.valueOf(operator));
        for (ColumnCondition one : conditions) {
            combined.addCondition(one);
        }
        return combined;
    }
}

package oracle;

import static oracle.Rows.c;
import static oracle.Rows.key;
import static oracle.Walk.equal;
import static oracle.Walk.yes;

import com.alicloud.openservices.tablestore.model.ComputeSplitsBySizeRequest;
import com.alicloud.openservices.tablestore.model.ComputeSplitsBySizeResponse;
import com.alicloud.openservices.tablestore.model.GetRangeResponse;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.Split;

/** Where a table can be cut into parts of equal size. */
final class WalkSplits extends Section {
    private static final String TABLE = "splits";

    WalkSplits(Walk walk) {
        super(walk);
    }

    private ComputeSplitsBySizeResponse compute(String table, long size, long unit) {
        return w.table.computeSplitsBySize(new ComputeSplitsBySizeRequest(table, size, unit));
    }

    @Override
    void run() {
        w.step("an empty table is one split", () -> {
            create(TABLE, "si");
            ComputeSplitsBySizeResponse got = compute(TABLE, 1, 100 * MEBIBYTE);
            equal("splits", got.getSplits().size(), 1);
            equal("from", Rows.show(got.getSplits().get(0).getLowerBound()), "[min,min]");
            equal("to", Rows.show(got.getSplits().get(0).getUpperBound()), "[max,max]");
            equal("key", got.getPrimaryKeySchema().size(), 2);
            equal("consumed", got.getConsumedCapacity().getCapacityUnit().getReadCapacityUnit(), 1);
        });
        w.step("four splits of a mebibyte", () -> {
            for (int number = 0; number < 32; number++) {
                put(TABLE, key(String.valueOf((char) ('a' + number / 4)), number), c("x", "x".repeat(MEBIBYTE / 8)));
            }
            ComputeSplitsBySizeResponse got = compute(TABLE, 1, MEBIBYTE);
            yes("several: " + got.getSplits().size(), got.getSplits().size() >= 3 && got.getSplits().size() <= 8);
            int rows = 0;
            PrimaryKey end = key(Rows.MIN, Rows.MIN);
            for (Split split : got.getSplits()) {
                equal("bound", Rows.show(split.getLowerBound()), Rows.show(end));
                end = split.getUpperBound();
                for (PrimaryKey from = split.getLowerBound(); from != null;) {
                    GetRangeResponse page = scan(TABLE, from, end, asked -> asked.addColumnsToGet("k0"));
                    rows += page.getRows().size();
                    from = page.getNextStartPrimaryKey();
                }
            }
            equal("rows in all splits", rows, 32);
        });
        w.step("at most one point", () -> {
            ComputeSplitsBySizeRequest request = new ComputeSplitsBySizeRequest(TABLE, 1, MEBIBYTE);
            request.setSplitPointLimit(1);
            equal("splits", w.table.computeSplitsBySize(request).getSplits().size(), 2);
        });
        refusedParameter("no size", "The split_size should be greater than 0.", () -> compute(TABLE, 0, MEBIBYTE));
        refusedParameter("a small unit", "The split_size_unit_in_byte should be greater equal than: 1048576",
                () -> compute(TABLE, 1, MEBIBYTE - 1));
        w.refused("no table", "OTSObjectNotExist", NO_TABLE, () -> compute("missing", 1, MEBIBYTE));
    }
}

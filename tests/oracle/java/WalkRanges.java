package oracle;

import static oracle.Rows.EPOCH;
import static oracle.Rows.MAX;
import static oracle.Rows.MIN;
import static oracle.Rows.c;
import static oracle.Rows.key;
import static oracle.Rows.v;
import static oracle.Walk.equal;

import com.alicloud.openservices.tablestore.model.BatchWriteRowRequest;
import com.alicloud.openservices.tablestore.model.Direction;
import com.alicloud.openservices.tablestore.model.GetRangeResponse;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.RangeIteratorParameter;
import com.alicloud.openservices.tablestore.model.RangeRowQueryCriteria;
import com.alicloud.openservices.tablestore.model.Row;
import com.alicloud.openservices.tablestore.model.TimeRange;
import com.alicloud.openservices.tablestore.model.filter.ColumnPaginationFilter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.function.Consumer;

/** Ranges in both directions, by pages and through the SDK's iterator. */
final class WalkRanges extends Section {
    private static final String TABLE = "ranges";
    private static final String A = "[a,-2]; [a,-1]; [a,0]; [a,1]; [a,2]";
    private static final String B = "[b,-2]; [b,-1]; [b,0]; [b,1]; [b,2]";
    private final PrimaryKey low = key(MIN, MIN);
    private final PrimaryKey high = key(MAX, MAX);

    WalkRanges(Walk walk) {
        super(walk);
    }

    /** Follows a range to its end. */
    private String all(PrimaryKey from, PrimaryKey to, Consumer<RangeRowQueryCriteria> fill) {
        List<String> found = new ArrayList<>();
        int pages = 0;
        for (PrimaryKey next = from; next != null; pages++) {
            GetRangeResponse page = scan(TABLE, next, to, fill);
            page.getRows().forEach(row -> found.add(Rows.show(row)));
            next = page.getNextStartPrimaryKey();
            if (pages > 100) {
                throw new Walk.Wrong("no end after 100 pages");
            }
        }
        return String.join("; ", found);
    }

    private void range(String what, String want, PrimaryKey from, PrimaryKey to, Consumer<RangeRowQueryCriteria> fill) {
        w.step(what, () -> equal("rows", all(from, to, fill), want));
    }

    private void part(String what, String want, Consumer<RangeRowQueryCriteria> fill) {
        range(what, want, key("a", 1), key("b", -1), fill);
    }

    private static void keys(RangeRowQueryCriteria asked) {
        asked.addColumnsToGet("k0");
    }

    private static void backward(RangeRowQueryCriteria asked) {
        keys(asked);
        asked.setDirection(Direction.BACKWARD);
    }

    private static String reversed(String rows) {
        List<String> parts = Arrays.asList(rows.split("; "));
        Collections.reverse(parts);
        return String.join("; ", parts);
    }

    @Override
    void run() {
        w.step("create", () -> {
            create(TABLE, "si");
            BatchWriteRowRequest request = new BatchWriteRowRequest();
            for (int number = -2; number < 3; number++) {
                request.addRowChange(putChange(TABLE, key("a", number), v("n", number, 1), v("n", 9, 2), v("x", "y", 2)));
                request.addRowChange(putChange(TABLE, key("b", number), v("m", number, 1)));
            }
            w.table.batchWriteRow(request);
        });
        range("forward", A + "; " + B, low, high, WalkRanges::keys);
        range("backward", reversed(A + "; " + B), high, low, WalkRanges::backward);
        range("one partition key", B, key("b", MIN), key("b", MAX), WalkRanges::keys);
        range("start is in, end is out", "[a,1]; [a,2]; [b,-2]", key("a", 1), key("b", -1), WalkRanges::keys);
        range("backward too", "[b,-1]; [b,-2]; [a,2]", key("b", -1), key("a", 1), WalkRanges::backward);
        range("nothing", "", key("c", MIN), key("d", MIN), WalkRanges::keys);
        w.step("limit and next key", () -> {
            GetRangeResponse page = scan(TABLE, low, high, asked -> {
                keys(asked);
                asked.setLimit(3);
            });
            equal("rows", show(page), "[a,-2]; [a,-1]; [a,0]");
            equal("next", Rows.show(page.getNextStartPrimaryKey()), "[a,1]");
        });
        for (int limit : new int[] {1, 3, 10}) {
            range("pages of " + limit, A + "; " + B, low, high, asked -> {
                keys(asked);
                asked.setLimit(limit);
            });
            range("pages of " + limit + " backward", reversed(A + "; " + B), high, low, asked -> {
                backward(asked);
                asked.setLimit(limit);
            });
        }
        parts();
        iterators();
        large();
        refusals();
    }

    private void parts() {
        part("versions", "[a,1] n@2=9 n@1=1 x@2=y; [a,2] n@2=9 n@1=2 x@2=y; [b,-2] m@1=-2", asked -> {});
        part("one version", "[a,1] n@2=9 x@2=y; [a,2] n@2=9 x@2=y; [b,-2] m@1=-2", asked -> asked.setMaxVersions(1));
        part("columns", "[b,-2] m@1=-2", asked -> asked.addColumnsToGet("m"));
        part("a range of columns", "[a,1] n@2=9 n@1=1; [a,2] n@2=9 n@1=2; [b,-2]", asked -> {
            asked.setStartColumn("n");
            asked.setEndColumn("x");
        });
        part("a time range", "[a,1] n@1=1; [a,2] n@1=2; [b,-2] m@1=-2",
                asked -> asked.setTimeRange(new TimeRange(EPOCH + 1, EPOCH + 2)));
        part("one time", "[a,1] n@2=9 x@2=y; [a,2] n@2=9 x@2=y; [b,-2]", asked -> asked.setTimestamp(EPOCH + 2));
        part("a filter", "[b,-2] m@1=-2", asked -> asked.setFilter(filter("m", "LESS_THAN", 0, true)));
        part("a combined filter", "[a,1] n@2=9 n@1=1 x@2=y; [a,2] n@2=9 n@1=2 x@2=y", asked -> asked.setFilter(
                combined("AND", filter("x", "EQUAL", "y", true), filter("n", "GREATER_THAN", 8, true))));
        part("a page of columns", "[a,1] x@2=y; [a,2] x@2=y; [b,-2]", asked -> {
            asked.setMaxVersions(1);
            asked.setFilter(new ColumnPaginationFilter(5, 1));
        });
    }

    private void iterators() {
        for (Direction direction : Direction.values()) {
            w.step("iterator " + direction, () -> {
                boolean forward = direction == Direction.FORWARD;
                RangeIteratorParameter asked = new RangeIteratorParameter(TABLE);
                asked.setInclusiveStartPrimaryKey(forward ? low : high);
                asked.setExclusiveEndPrimaryKey(forward ? high : low);
                asked.setDirection(direction);
                asked.setMaxVersions(1);
                asked.setBufferSize(3);
                asked.addColumnsToGet("k0");
                List<String> found = new ArrayList<>();
                for (Iterator<Row> rows = w.table.createRangeIterator(asked); rows.hasNext();) {
                    found.add(Rows.show(rows.next()));
                }
                equal("rows", String.join("; ", found), forward ? A + "; " + B : reversed(A + "; " + B));
            });
        }
    }

    private void large() {
        w.step("no more than 5000 rows at once", () -> {
            create("many_rows", "i");
            for (int from = 0; from < 5010; from += 200) {
                BatchWriteRowRequest request = new BatchWriteRowRequest();
                for (int number = from; number < Math.min(from + 200, 5010); number++) {
                    request.addRowChange(putChange("many_rows", key(number)));
                }
                w.table.batchWriteRow(request);
            }
            GetRangeResponse first = scan("many_rows", key(MIN), key(MAX), WalkRanges::keys);
            equal("first page", first.getRows().size(), 5000);
            equal("rest", scan("many_rows", first.getNextStartPrimaryKey(), key(MAX), WalkRanges::keys).getRows().size(), 10);
        });
        w.step("no more than 4 MB at once", () -> {
            create("large_rows", "i");
            for (int number = 0; number < 6; number++) {
                put("large_rows", key(number), c("a", "x".repeat(MEBIBYTE)));
            }
            GetRangeResponse page = scan("large_rows", key(MIN), key(MAX), asked -> {});
            equal("rows", page.getRows().size(), 4);
            equal("next", Rows.show(page.getNextStartPrimaryKey()), "[4]");
        });
    }

    private void refused(String what, String code, String text, PrimaryKey from, PrimaryKey to,
            Consumer<RangeRowQueryCriteria> fill) {
        w.refused(what, code, text, () -> scan(TABLE, from, to, fill));
    }

    private void refusals() {
        refused("no table", "OTSObjectNotExist", NO_TABLE, low, high, asked -> asked.setTableName("missing"));
        refused("begin after end", "OTSParameterInvalid", "Begin key must less than end key in FORWARD", high, low, asked -> {});
        refused("begin before end, backward", "OTSParameterInvalid", "Begin key must more than end key in BACKWARD",
                low, high, WalkRanges::backward);
        refused("too few keys", "OTSInvalidPK", "Validate PK size fail. Input: 1, Meta: 2.", key(MIN), high, asked -> {});
        refused("a wrong key type", "OTSInvalidPK", "Validate PK type fail. Input: VT_INTEGER, Meta: VT_STRING.",
                key(1, MIN), high, asked -> {});
    }
}

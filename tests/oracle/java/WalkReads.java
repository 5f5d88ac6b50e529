package oracle;

import static oracle.Rows.EPOCH;
import static oracle.Rows.MIN;
import static oracle.Rows.key;
import static oracle.Rows.v;
import static oracle.Rows.value;
import static oracle.Walk.equal;

import com.alicloud.openservices.tablestore.model.GetRowRequest;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.SingleRowQueryCriteria;
import com.alicloud.openservices.tablestore.model.TimeRange;
import com.alicloud.openservices.tablestore.model.WideColumnIterator;
import com.alicloud.openservices.tablestore.model.filter.ColumnPaginationFilter;
import com.alicloud.openservices.tablestore.model.filter.ColumnValueFilter;
import com.alicloud.openservices.tablestore.model.filter.CompositeColumnValueFilter;
import com.alicloud.openservices.tablestore.model.filter.Filter;
import com.alicloud.openservices.tablestore.model.filter.SingleColumnValueFilter;
import java.util.function.Consumer;

/** One row, whole and in parts. */
final class WalkReads extends Section {
    private static final String TABLE = "reads";
    private static final String LATEST = "[r] a@3=3 b@2=x7y c@3=true d@1=1.5";
    private static final String ALL = "[r] a@3=3 a@2=2 a@1=1 b@2=x7y c@3=true d@1=1.5";
    private final PrimaryKey at = key("r");

    WalkReads(Walk walk) {
        super(walk);
    }

    private void read(String what, String want, Consumer<SingleRowQueryCriteria> fill) {
        w.step(what, () -> equal("row", get(TABLE, at, fill), want));
    }

    private void filtered(String what, boolean passes, Filter filter) {
        read(what, passes ? LATEST : "", asked -> {
            asked.setMaxVersions(1);
            asked.setFilter(filter);
        });
    }

    @Override
    void run() {
        w.step("create", () -> {
            create(TABLE, "s");
            put(TABLE, at, v("a", 1, 1), v("a", 2, 2), v("a", 3, 3), v("b", "x7y", 2), v("c", true, 3), v("d", 1.5, 1));
        });
        read("everything", ALL, asked -> {});
        read("one version", LATEST, asked -> asked.setMaxVersions(1));
        read("two columns", "[r] a@3=3 c@3=true", asked -> {
            asked.setMaxVersions(1);
            asked.addColumnsToGet(new String[] {"c", "a", "none"});
        });
        read("a column that is not there", "", asked -> asked.addColumnsToGet("none"));
        read("a key column", "[r]", asked -> asked.addColumnsToGet("k0"));
        read("a time range", "[r] a@2=2 a@1=1 b@2=x7y d@1=1.5",
                asked -> asked.setTimeRange(new TimeRange(EPOCH + 1, EPOCH + 3)));
        w.step("a time range without versions", () -> {
            SingleRowQueryCriteria asked = new SingleRowQueryCriteria(TABLE, at);
            asked.setTimeRange(new TimeRange(EPOCH + 1, EPOCH + 3));
            equal("row", Rows.show(w.table.getRow(new GetRowRequest(asked)).getRow()), "[r] a@2=2 a@1=1 b@2=x7y d@1=1.5");
        });
        read("one time", "[r] a@1=1 d@1=1.5", asked -> asked.setTimestamp(EPOCH + 1)); // sent as a range
        read("a range of columns", "[r] b@2=x7y c@3=true", asked -> {
            asked.setStartColumn("aa");
            asked.setEndColumn("d");
        });
        read("from a column", "[r] c@3=true d@1=1.5", asked -> asked.setStartColumn("c"));
        filters();
        wide();
        w.step("a missing row", () -> wants("", TABLE, key("none")));
        refusals();
    }

    private void filters() {
        ColumnValueFilter yes = filter("a", "EQUAL", 3, true);
        ColumnValueFilter no = filter("c", "EQUAL", false, true);
        filtered("a filter that passes", true, yes);
        filtered("a filter that fails", false, no);
        filtered("a filter on a missing column, strict", false, filter("none", "EQUAL", 1, true));
        filtered("a filter on a missing column, lenient", true, filter("none", "EQUAL", 1, false));
        filtered("and", false, combined("AND", yes, no));
        filtered("or", true, combined("OR", no, yes));
        filtered("not", true, combined("NOT", no));
        filtered("a filter on a double", true, filter("d", "LESS_THAN", 2.0, true));
        filtered("the latest version only", false, filter("a", "EQUAL", 2, true));
        SingleColumnValueFilter any = filter("a", "EQUAL", 2, true);
        any.setLatestVersionsOnly(false);
        read("any version", ALL, asked -> asked.setFilter(any));
        read("a page of columns", "[r] b@2=x7y c@3=true", asked -> {
            asked.setMaxVersions(1);
            asked.setFilter(new ColumnPaginationFilter(2, 1));
        });
    }

    /** The SDK reads a wide row by pages of columns. */
    private void wide() {
        w.step("a wide row", () -> {
            for (int from = 0; from < 3000; from += 1000) {
                int begin = from;
                update(TABLE, key("wide"), change -> {
                    for (int number = begin; number < begin + 1000; number++) {
                        change.put(String.format("c%04d", number), value(number), EPOCH + 1);
                    }
                });
            }
            SingleRowQueryCriteria asked = new SingleRowQueryCriteria(TABLE, key("wide"));
            asked.setMaxVersions(1);
            WideColumnIterator columns = w.table.createWideColumnIterator(new GetRowRequest(asked));
            int number = 0;
            for (; columns.hasNextColumn(); number++) {
                equal("column", Rows.show(columns.nextColumn()), String.format("c%04d@1=%d", number, number));
            }
            equal("columns", number, 3000);
        });
    }

    private void refused(String what, String text, Consumer<SingleRowQueryCriteria> fill) {
        refusedParameter(what, text, () -> get(TABLE, at, fill));
    }

    private void refusals() {
        w.refused("no table", "OTSObjectNotExist", NO_TABLE, () -> get("missing", at));
        refusedParameter("neither time nor versions", "No version condition is specified.",
                () -> w.table.getRow(new GetRowRequest(new SingleRowQueryCriteria(TABLE, at))));
        refused("INF_MIN as a key", "VT_INF_MIN is an invalid type for the primary key.",
                asked -> asked.setPrimaryKey(key(MIN)));
        refused("too many columns",
                "The number of columns from the request exceeds the limit, limit count: 1024, column count: 1025.",
                asked -> {
                    for (int number = 0; number < 1025; number++) {
                        asked.addColumnsToGet("c" + number);
                    }
                });
        refused("too many filters", "The count of filter exceeds the max: 32.", asked -> {
            CompositeColumnValueFilter all = combined("AND");
            for (int number = 0; number < 33; number++) {
                all.addFilter(filter("a", "EQUAL", 3, true));
            }
            asked.setFilter(all);
        });
        refused("not of two", "", asked -> asked.setFilter(
                combined("NOT", filter("a", "EQUAL", 3, true), filter("b", "EQUAL", 3, true))));
    }
}

package oracle;

import com.alicloud.openservices.tablestore.model.Column;
import com.alicloud.openservices.tablestore.model.Condition;
import com.alicloud.openservices.tablestore.model.CreateTableRequest;
import com.alicloud.openservices.tablestore.model.DeleteRowRequest;
import com.alicloud.openservices.tablestore.model.DescribeTableRequest;
import com.alicloud.openservices.tablestore.model.DescribeTableResponse;
import com.alicloud.openservices.tablestore.model.Direction;
import com.alicloud.openservices.tablestore.model.GetRangeRequest;
import com.alicloud.openservices.tablestore.model.GetRangeResponse;
import com.alicloud.openservices.tablestore.model.GetRowRequest;
import com.alicloud.openservices.tablestore.model.PrimaryKey;
import com.alicloud.openservices.tablestore.model.PrimaryKeyOption;
import com.alicloud.openservices.tablestore.model.PrimaryKeyType;
import com.alicloud.openservices.tablestore.model.PutRowRequest;
import com.alicloud.openservices.tablestore.model.RangeRowQueryCriteria;
import com.alicloud.openservices.tablestore.model.RowDeleteChange;
import com.alicloud.openservices.tablestore.model.RowExistenceExpectation;
import com.alicloud.openservices.tablestore.model.RowPutChange;
import com.alicloud.openservices.tablestore.model.RowUpdateChange;
import com.alicloud.openservices.tablestore.model.SingleRowQueryCriteria;
import com.alicloud.openservices.tablestore.model.StreamSpecification;
import com.alicloud.openservices.tablestore.model.TableMeta;
import com.alicloud.openservices.tablestore.model.TableOptions;
import com.alicloud.openservices.tablestore.model.UpdateRowRequest;
import com.alicloud.openservices.tablestore.model.condition.SingleColumnValueCondition;
import com.alicloud.openservices.tablestore.model.filter.CompositeColumnValueFilter;
import com.alicloud.openservices.tablestore.model.filter.ColumnValueFilter;
import com.alicloud.openservices.tablestore.model.filter.SingleColumnValueFilter;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/** A part of the walk, with the vocabulary that all parts share. */
abstract class Section {
    static final int MEBIBYTE = 1 << 20;
    static final String NO_TABLE = "Requested table does not exist.";
    static final RowExistenceExpectation MUST_EXIST = RowExistenceExpectation.EXPECT_EXIST;
    static final RowExistenceExpectation MUST_NOT_EXIST = RowExistenceExpectation.EXPECT_NOT_EXIST;
    static final RowExistenceExpectation MAY_EXIST = RowExistenceExpectation.IGNORE;
    /** The letters a table's key is written with; the columns are called k0, k1, ... */
    private static final Map<Character, PrimaryKeyType> KINDS = Map.of(
            's', PrimaryKeyType.STRING, 'i', PrimaryKeyType.INTEGER, 'b', PrimaryKeyType.BINARY,
            'a', PrimaryKeyType.INTEGER); // chosen by the service

    final Walk w;

    Section(Walk walk) {
        w = walk;
    }

    abstract void run() throws Exception;

    /** A table of the given key, with three versions per column. */
    static CreateTableRequest tableRequest(String name, String kinds) {
        TableMeta meta = new TableMeta(name);
        for (int index = 0; index < kinds.length(); index++) {
            char letter = kinds.charAt(index);
            if (letter == 'a') {
                meta.addPrimaryKeyColumn("k" + index, KINDS.get(letter), PrimaryKeyOption.AUTO_INCREMENT);
            } else {
                meta.addPrimaryKeyColumn("k" + index, KINDS.get(letter));
            }
        }
        return new CreateTableRequest(meta, new TableOptions(-1, 3));
    }

    void create(String name, String kinds) {
        create(name, kinds, request -> {});
    }

    void create(String name, String kinds, Consumer<CreateTableRequest> change) {
        CreateTableRequest request = tableRequest(name, kinds);
        change.accept(request);
        w.table.createTable(request);
    }

    static void withStream(CreateTableRequest request) {
        request.setStreamSpecification(new StreamSpecification(true, 24));
    }

    DescribeTableResponse describe(String name) {
        return w.table.describeTable(new DescribeTableRequest(name));
    }

    static RowPutChange putChange(String table, PrimaryKey at, Rows.Cell... cells) {
        RowPutChange change = new RowPutChange(table, at);
        for (Rows.Cell cell : cells) {
            if (cell.version == null) {
                change.addColumn(cell.name, cell.value);
            } else {
                change.addColumn(cell.name, cell.value, cell.version);
            }
        }
        return change;
    }

    void put(String table, PrimaryKey at, Rows.Cell... cells) {
        w.table.putRow(new PutRowRequest(putChange(table, at, cells)));
    }

    void update(String table, PrimaryKey at, Consumer<RowUpdateChange> fill) {
        RowUpdateChange change = new RowUpdateChange(table, at);
        fill.accept(change);
        w.table.updateRow(new UpdateRowRequest(change));
    }

    void delete(String table, PrimaryKey at) {
        w.table.deleteRow(new DeleteRowRequest(new RowDeleteChange(table, at)));
    }

    static Column increment(String name, long by) {
        return new Column(name, Rows.value(by));
    }

    /** Reads one row with all its versions and shows it; fill may ask for less. */
    String get(String table, PrimaryKey at, Consumer<SingleRowQueryCriteria> fill) {
        SingleRowQueryCriteria asked = new SingleRowQueryCriteria(table, at);
        asked.setMaxVersions(10);
        fill.accept(asked);
        return Rows.show(w.table.getRow(new GetRowRequest(asked)).getRow());
    }

    String get(String table, PrimaryKey at) {
        return get(table, at, asked -> {});
    }

    /** Reads a row and compares how it shows. */
    void wants(String want, String table, PrimaryKey at) {
        Walk.equal("row", get(table, at), want);
    }

    GetRangeResponse scan(String table, PrimaryKey from, PrimaryKey to, Consumer<RangeRowQueryCriteria> fill) {
        RangeRowQueryCriteria asked = new RangeRowQueryCriteria(table);
        asked.setInclusiveStartPrimaryKey(from);
        asked.setExclusiveEndPrimaryKey(to);
        asked.setMaxVersions(10);
        asked.setDirection(Direction.FORWARD);
        fill.accept(asked);
        return w.table.getRange(new GetRangeRequest(asked));
    }

    static String show(GetRangeResponse page) {
        return page.getRows().stream().map(Rows::show).collect(Collectors.joining("; "));
    }

    /** A condition on one column; a row without it fails when strict. */
    static SingleColumnValueCondition column(String name, String comparator, Object with, boolean strict) {
        return new SingleColumnValueCondition(
                        name, SingleColumnValueCondition.CompareOperator.valueOf(comparator), Rows.value(with))
                .setPassIfMissing(!strict)
                .setLatestVersionsOnly(true);
    }

    static CompositeColumnValueFilter combined(String operator, ColumnValueFilter... filters) {
        CompositeColumnValueFilter all =
                new CompositeColumnValueFilter(CompositeColumnValueFilter.LogicOperator.valueOf(operator));
        for (ColumnValueFilter filter : filters) {
            all.addFilter(filter);
        }
        return all;
    }

    static SingleColumnValueFilter filter(String name, String comparator, Object with, boolean strict) {
        return column(name, comparator, with, strict).toFilter();
    }

    static Condition condition(RowExistenceExpectation existence) {
        return new Condition(existence);
    }

    void refusedParameter(String what, String text, Walk.Body body) {
        w.refused(what, "OTSParameterInvalid", text, body);
    }
}

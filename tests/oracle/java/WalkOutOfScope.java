package oracle;

import com.alicloud.openservices.tablestore.TableStoreException;
import com.alicloud.openservices.tablestore.TimeseriesClient;
import com.alicloud.openservices.tablestore.model.AddDefinedColumnRequest;
import com.alicloud.openservices.tablestore.model.BulkExportRequest;
import com.alicloud.openservices.tablestore.model.BulkImportRequest;
import com.alicloud.openservices.tablestore.model.ComputeSplitsRequest;
import com.alicloud.openservices.tablestore.model.CreateIndexRequest;
import com.alicloud.openservices.tablestore.model.DefinedColumnType;
import com.alicloud.openservices.tablestore.model.DeleteDefinedColumnRequest;
import com.alicloud.openservices.tablestore.model.DeleteIndexRequest;
import com.alicloud.openservices.tablestore.model.IndexMeta;
import com.alicloud.openservices.tablestore.model.RangeIteratorParameter;
import com.alicloud.openservices.tablestore.model.SearchIndexSplitsOptions;
import com.alicloud.openservices.tablestore.model.delivery.CreateDeliveryTaskRequest;
import com.alicloud.openservices.tablestore.model.delivery.DeleteDeliveryTaskRequest;
import com.alicloud.openservices.tablestore.model.delivery.DeliveryTaskType;
import com.alicloud.openservices.tablestore.model.delivery.DescribeDeliveryTaskRequest;
import com.alicloud.openservices.tablestore.model.delivery.ListDeliveryTaskRequest;
import com.alicloud.openservices.tablestore.model.delivery.OSSFileFormat;
import com.alicloud.openservices.tablestore.model.delivery.OSSTaskConfig;
import com.alicloud.openservices.tablestore.model.search.CreateSearchIndexRequest;
import com.alicloud.openservices.tablestore.model.search.DeleteSearchIndexRequest;
import com.alicloud.openservices.tablestore.model.search.DescribeSearchIndexRequest;
import com.alicloud.openservices.tablestore.model.search.FieldSchema;
import com.alicloud.openservices.tablestore.model.search.FieldType;
import com.alicloud.openservices.tablestore.model.search.IndexSchema;
import com.alicloud.openservices.tablestore.model.search.ListSearchIndexRequest;
import com.alicloud.openservices.tablestore.model.search.ParallelScanRequest;
import com.alicloud.openservices.tablestore.model.search.ScanQuery;
import com.alicloud.openservices.tablestore.model.search.SearchQuery;
import com.alicloud.openservices.tablestore.model.search.SearchRequest;
import com.alicloud.openservices.tablestore.model.search.UpdateSearchIndexRequest;
import com.alicloud.openservices.tablestore.model.search.query.MatchAllQuery;
import com.alicloud.openservices.tablestore.model.sql.SQLQueryRequest;
import com.alicloud.openservices.tablestore.model.tunnel.BulkExportQueryCriteria;

/** Calls on what the emulator lacks: each is refused at once, in words. */
final class WalkOutOfScope extends Section {
    private static final String TABLE = "plain";

    WalkOutOfScope(Walk walk) {
        super(walk);
    }

    private void refused(String what, Walk.Body body) {
        w.step(what, () -> {
            try {
                body.run();
            } catch (TableStoreException refusal) {
                Walk.yes("request id", !refusal.getRequestId().isEmpty());
                Walk.yes("words", refusal.getMessage().contains(" is not available in this emulator: see "));
                return;
            }
            throw new Walk.Wrong("succeeded, wanted a code of the service");
        });
    }

    @Override
    void run() {
        refused("sqlQuery", () -> w.table.sqlQuery(new SQLQueryRequest("select 1")));
        indexes();
        searches();
        refused("addDefinedColumn", () -> {
            AddDefinedColumnRequest request = new AddDefinedColumnRequest();
            request.setTableName(TABLE);
            request.addDefinedColumn("d", DefinedColumnType.INTEGER);
            w.table.addDefinedColumn(request);
        });
        refused("deleteDefinedColumn", () -> {
            DeleteDefinedColumnRequest request = new DeleteDefinedColumnRequest();
            request.setTableName(TABLE);
            request.addDefinedColumn("d");
            w.table.deleteDefinedColumn(request);
        });
        bulk();
        deliveries();
        TimeseriesClient series = new TimeseriesClient(
                w.account.endpoint, w.account.keyId, w.account.keySecret, w.account.instance);
        refused("listTimeseriesTable", series::listTimeseriesTable);
        series.shutdown();
    }

    private void indexes() {
        IndexMeta index = new IndexMeta("i");
        index.addPrimaryKeyColumn("k0");
        refused("createIndex", () -> w.table.createIndex(new CreateIndexRequest(TABLE, index, false)));
        refused("deleteIndex", () -> w.table.deleteIndex(new DeleteIndexRequest(TABLE, "i")));
        refused("createTable with an index", () -> create("indexed", "s", request -> request.addIndex(index)));
    }

    private void searches() {
        refused("listSearchIndex", () -> {
            ListSearchIndexRequest request = new ListSearchIndexRequest();
            request.setTableName(TABLE);
            w.table.listSearchIndex(request);
        });
        refused("createSearchIndex", () -> {
            CreateSearchIndexRequest request = new CreateSearchIndexRequest(TABLE, "i");
            IndexSchema schema = new IndexSchema();
            schema.addFieldSchema(new FieldSchema("k0", FieldType.KEYWORD));
            request.setIndexSchema(schema);
            w.table.createSearchIndex(request);
        });
        refused("updateSearchIndex", () -> w.table.updateSearchIndex(new UpdateSearchIndexRequest(TABLE, "i", "j")));
        refused("describeSearchIndex", () -> {
            DescribeSearchIndexRequest request = new DescribeSearchIndexRequest();
            request.setTableName(TABLE);
            request.setIndexName("i");
            w.table.describeSearchIndex(request);
        });
        refused("deleteSearchIndex", () -> {
            DeleteSearchIndexRequest request = new DeleteSearchIndexRequest();
            request.setTableName(TABLE);
            request.setIndexName("i");
            w.table.deleteSearchIndex(request);
        });
        SearchRequest search = new SearchRequest(TABLE, "i", new SearchQuery().setQuery(new MatchAllQuery()).setLimit(1));
        refused("search", () -> w.table.search(search));
        refused("createSearchIterator", () -> w.table.createSearchIterator(search).hasNext());
        refused("computeSplits",
                () -> w.table.computeSplits(new ComputeSplitsRequest(TABLE, new SearchIndexSplitsOptions("i"))));
        ParallelScanRequest scan = new ParallelScanRequest().setTableName(TABLE).setIndexName("i")
                .setScanQuery(new ScanQuery().setQuery(new MatchAllQuery()).setMaxParallel(1).setCurrentParallelId(0));
        refused("parallelScan", () -> w.table.parallelScan(scan));
        refused("createParallelScanIterator", () -> w.table.createParallelScanIterator(scan).hasNext());
    }

    private void bulk() {
        refused("bulkImport", () -> {
            BulkImportRequest request = new BulkImportRequest(TABLE);
            request.addRowChange(putChange(TABLE, Rows.key("a"), Rows.c("n", 1)));
            w.table.bulkImport(request);
        });
        refused("bulkExport", () -> {
            BulkExportQueryCriteria asked = new BulkExportQueryCriteria(TABLE);
            asked.setInclusiveStartPrimaryKey(Rows.key(Rows.MIN));
            asked.setExclusiveEndPrimaryKey(Rows.key(Rows.MAX));
            w.table.bulkExport(new BulkExportRequest(asked));
        });
        refused("createBulkExportIterator", () -> {
            RangeIteratorParameter asked = new RangeIteratorParameter(TABLE);
            asked.setInclusiveStartPrimaryKey(Rows.key(Rows.MIN));
            asked.setExclusiveEndPrimaryKey(Rows.key(Rows.MAX));
            w.table.createBulkExportIterator(asked).hasNext();
        });
    }

    private void deliveries() {
        refused("createDeliveryTask", () -> {
            OSSTaskConfig config = new OSSTaskConfig();
            config.setOssPrefix("prefix");
            config.setOssBucket("bucket");
            config.setOssEndpoint("endpoint");
            config.setOssStsRole("role");
            config.setFormat(OSSFileFormat.Parquet);
            CreateDeliveryTaskRequest request = new CreateDeliveryTaskRequest(TABLE, "t", config);
            request.setTaskType(DeliveryTaskType.BASE);
            w.table.createDeliveryTask(request);
        });
        refused("listDeliveryTask", () -> w.table.listDeliveryTask(new ListDeliveryTaskRequest(TABLE)));
        refused("describeDeliveryTask", () -> w.table.describeDeliveryTask(new DescribeDeliveryTaskRequest(TABLE, "t")));
        refused("deleteDeliveryTask", () -> w.table.deleteDeliveryTask(new DeleteDeliveryTaskRequest(TABLE, "t")));
    }
}

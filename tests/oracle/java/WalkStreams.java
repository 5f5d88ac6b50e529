package oracle;

import static oracle.Rows.EPOCH;
import static oracle.Rows.c;
import static oracle.Rows.key;
import static oracle.Rows.v;
import static oracle.Rows.value;
import static oracle.Walk.equal;
import static oracle.Walk.wantRefusal;
import static oracle.Walk.yes;

import com.alicloud.openservices.tablestore.model.Condition;
import com.alicloud.openservices.tablestore.model.DescribeStreamRequest;
import com.alicloud.openservices.tablestore.model.DescribeStreamResponse;
import com.alicloud.openservices.tablestore.model.DescribeTableRequest;
import com.alicloud.openservices.tablestore.model.GetShardIteratorRequest;
import com.alicloud.openservices.tablestore.model.GetShardIteratorResponse;
import com.alicloud.openservices.tablestore.model.GetStreamRecordRequest;
import com.alicloud.openservices.tablestore.model.GetStreamRecordResponse;
import com.alicloud.openservices.tablestore.model.ListStreamRequest;
import com.alicloud.openservices.tablestore.model.PutRowRequest;
import com.alicloud.openservices.tablestore.model.RowPutChange;
import com.alicloud.openservices.tablestore.model.Stream;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import com.alicloud.openservices.tablestore.model.StreamShard;
import com.alicloud.openservices.tablestore.model.StreamSpecification;
import com.alicloud.openservices.tablestore.model.StreamStatus;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** A table's stream, read directly. */
final class WalkStreams extends Section {
    private static final String TABLE = "streams";
    private String stream;
    private String shard;
    private String caughtUp;
    private List<StreamShard> shards;

    /** What was read of a shard; next is null when there is no more to come. */
    private static final class Drained {
        final List<StreamRecord> records = new ArrayList<>();
        String next;
    }

    WalkStreams(Walk walk) {
        super(walk);
    }

    private String streamOf(String table) {
        List<Stream> streams = w.table.listStream(new ListStreamRequest(table)).getStreams();
        equal("streams", streams.size(), 1);
        return streams.get(0).getStreamId();
    }

    private List<StreamShard> shardsOf(String stream) {
        return w.table.describeStream(new DescribeStreamRequest(stream)).getShards();
    }

    private String iterator(String stream, String shard, Long since) {
        GetShardIteratorRequest request = new GetShardIteratorRequest(stream, shard);
        if (since != null) {
            request.setTimestamp(since);
        }
        while (true) {
            GetShardIteratorResponse got = w.table.getShardIterator(request);
            if (got.getNextToken() == null) {
                return got.getShardIterator();
            }
            request.setToken(got.getNextToken()); // the service is still looking for the time
        }
    }

    /** Reads until it is caught up (the iterator stays) or done (there is none), and checks the order. */
    private Drained drain(String iterator) {
        Drained drained = new Drained();
        for (drained.next = iterator; drained.next != null;) {
            GetStreamRecordResponse got = w.table.getStreamRecord(new GetStreamRecordRequest(drained.next));
            drained.records.addAll(got.getRecords());
            if (drained.next.equals(got.getNextShardIterator())) {
                break;
            }
            drained.next = got.getNextShardIterator();
        }
        for (int index = 1; index < drained.records.size(); index++) {
            var before = drained.records.get(index - 1).getSequenceInfo();
            var after = drained.records.get(index).getSequenceInfo();
            yes("order of " + before + ", " + after, before.getTimestamp() < after.getTimestamp()
                    || before.getTimestamp() == after.getTimestamp() && before.getRowIndex() < after.getRowIndex());
        }
        return drained;
    }

    private Drained drain(String stream, String shard, Long since) {
        return drain(iterator(stream, shard, since));
    }

    @Override
    void run() {
        w.step("create", () -> create(TABLE, "s", Section::withStream));
        w.step("list", () -> {
            stream = streamOf(TABLE);
            Stream found = w.table.listStream(new ListStreamRequest()).getStreams().stream()
                    .filter(one -> one.getStreamId().equals(stream)).findFirst().orElseThrow();
            equal("table", found.getTableName(), TABLE);
            yes("microseconds", found.getCreationTime() > EPOCH * 1000);
        });
        w.step("list of a table without", () -> {
            create("plain_stream", "s");
            equal("streams", w.table.listStream(new ListStreamRequest("plain_stream")).getStreams().size(), 0);
        });
        w.step("describe", () -> {
            DescribeStreamResponse got = w.table.describeStream(new DescribeStreamRequest(stream));
            equal("shards", got.getShards().size(), 1);
            shard = got.getShards().get(0).getShardId();
            equal("stream", got.getStreamId(), stream);
            equal("hours", got.getExpirationTime(), 24);
            equal("table", got.getTableName(), TABLE);
            equal("status", got.getStatus(), StreamStatus.ACTIVE);
            equal("more", got.getNextShardId(), null);
            equal("parent", got.getShards().get(0).getParentId(), null);
        });
        w.step("empty: caught up at once", () -> {
            Drained drained = drain(stream, shard, null);
            equal("records", drained.records.size(), 0);
            yes("open", drained.next != null);
        });
        w.step("every kind of change", this::changes);
        w.step("continue where it was caught up", () -> {
            put(TABLE, key("s"), v("a", 1, 1));
            equal("records", Rows.show(drain(caughtUp).records), "PUT [s] a@1=1");
        });
        w.step("a limit", () -> {
            List<Integer> pages = new ArrayList<>();
            String at = iterator(stream, shard, null);
            for (int page = 0; page < 3; page++) {
                GetStreamRecordRequest request = new GetStreamRecordRequest(at);
                request.setLimit(2);
                GetStreamRecordResponse got = w.table.getStreamRecord(request);
                pages.add(got.getRecords().size());
                at = got.getNextShardIterator();
            }
            equal("pages", pages, List.of(2, 2, 1));
        });
        w.step("from a time", () -> {
            List<StreamRecord> all = drain(stream, shard, null).records;
            long since = all.get(2).getSequenceInfo().getTimestamp();
            equal("records", Rows.show(drain(stream, shard, since).records), Rows.show(all.subList(2, all.size())));
        });
        w.step("former values of origin columns", () -> {
            create("origins", "s", request -> {
                StreamSpecification specification = new StreamSpecification(true, 24);
                specification.addOriginColumnsToGet("a");
                request.setStreamSpecification(specification);
            });
            put("origins", key("r"), v("a", 1, 1), v("b", 1, 1));
            update("origins", key("r"), change -> change.put("a", value(2), EPOCH + 2));
            update("origins", key("r"), change -> change.deleteColumns("a"));
            delete("origins", key("r"));
            String origins = streamOf("origins");
            equal("records", Rows.show(drain(origins, shardsOf(origins).get(0).getShardId(), null).records),
                    "PUT [r] a@1=1 b@1=1; UPDATE [r] a@2=2 was a@1=1; UPDATE [r] -a was a@2=2; DELETE [r]");
            equal("described", w.table.describeTable(new DescribeTableRequest("origins")).getStreamDetails()
                    .getOriginColumnsToGet(), Set.of("a"));
        });
        shards();
        refusals();
    }

    private void changes() throws Exception {
        put(TABLE, key("r"), v("a", 1, 1), v("b", "x", 1), v("c", true, 1));
        update(TABLE, key("r"), change -> change.put("a", value(2), EPOCH + 2).deleteColumn("b", EPOCH + 1).deleteColumns("c"));
        update(TABLE, key("r"), change -> change.increment(increment("a", 5)));
        delete(TABLE, key("r"));
        RowPutChange refused = putChange(TABLE, key("r"), c("a", 1));
        refused.setCondition(new Condition(MUST_EXIST)); // a write that fails leaves no record
        wantRefusal("OTSConditionCheckFail", "", () -> w.table.putRow(new PutRowRequest(refused)));
        Drained drained = drain(stream, shard, null);
        caughtUp = drained.next;
        equal("records", Rows.show(drained.records), "PUT [r] a@1=1 b@1=x c@1=true; UPDATE [r] a@2=2 -b@1 -c; "
                + "UPDATE [r] a@now=7; DELETE [r]");
        yes("open", drained.next != null);
    }

    private void write(int... numbers) {
        for (int number : numbers) {
            for (char name = 'a'; name <= 'h'; name++) {
                put("sharded", key(String.valueOf(name)), v("n", number, 1));
            }
        }
    }

    private void counts(String stream, String want) {
        shards = shardsOf(stream);
        equal("records per shard", shards.stream().map(one -> {
            Drained drained = drain(stream, one.getShardId(), null);
            return drained.records.size() + (drained.next == null ? " done" : " open");
        }).collect(Collectors.joining(", ")), want);
    }

    /** Splits a stream's only shard and merges its children. */
    private void shards() {
        String[] sharded = new String[1];
        w.step("before a split", () -> {
            create("sharded", "s", Section::withStream);
            write(1, 2);
            sharded[0] = streamOf("sharded");
            counts(sharded[0], "16 open");
        });
        w.step("a split", () -> {
            String parent = shards.get(0).getShardId();
            w.control("/split", "table", "sharded");
            write(3);
            counts(sharded[0], "16 done, 4 open, 4 open");
            for (StreamShard child : shards.subList(1, 3)) {
                equal("parent", child.getParentId(), parent);
                equal("sibling", child.getParentSiblingId(), null);
            }
        });
        w.step("a merge", () -> {
            Set<String> parents = Set.of(shards.get(1).getShardId(), shards.get(2).getShardId());
            w.control("/merge", "table", "sharded");
            write(4);
            counts(sharded[0], "16 done, 4 done, 4 done, 8 open");
            equal("parents", Set.of(shards.get(3).getParentId(), shards.get(3).getParentSiblingId()), parents);
        });
        w.step("describe in pages", () -> {
            List<String> seen = new ArrayList<>();
            for (String next = ""; next != null && seen.size() < 9;) {
                DescribeStreamRequest request = new DescribeStreamRequest(sharded[0]);
                request.setShardLimit(1);
                if (!next.isEmpty()) {
                    request.setInclusiveStartShardId(next);
                }
                DescribeStreamResponse got = w.table.describeStream(request);
                got.getShards().forEach(one -> seen.add(one.getShardId()));
                next = got.getNextShardId();
            }
            equal("shards", seen, shards.stream().map(StreamShard::getShardId).collect(Collectors.toList()));
        });
        w.refused("trimmed", "OTSTrimmedDataAccess", "Requested stream data is already trimmed or does not exist.", () -> {
            String at = iterator(sharded[0], shards.get(3).getShardId(), null);
            w.control("/streams/trim", "table", "sharded");
            drain(at);
        });
    }

    private void refusals() {
        w.refused("list of no table", "OTSObjectNotExist", NO_TABLE,
                () -> w.table.listStream(new ListStreamRequest("missing")));
        w.refused("describe no stream", "OTSObjectNotExist", "",
                () -> w.table.describeStream(new DescribeStreamRequest("none_1")));
        w.refused("iterator of no stream", "OTSObjectNotExist", "", () -> iterator("none_1", shard, null));
        w.refused("iterator of no shard", "OTSObjectNotExist", "", () -> iterator(stream, "none", null));
        refusedParameter("records of no iterator", "",
                () -> w.table.getStreamRecord(new GetStreamRecordRequest("none")));
    }
}

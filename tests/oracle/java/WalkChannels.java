package oracle;

import static oracle.Rows.EPOCH;
import static oracle.Rows.key;
import static oracle.Rows.v;
import static oracle.Rows.value;
import static oracle.Walk.equal;
import static oracle.Walk.wantRefusal;
import static oracle.Walk.yes;

import com.alicloud.openservices.tablestore.TableStoreException;
import com.alicloud.openservices.tablestore.model.RecordSequenceInfo;
import com.alicloud.openservices.tablestore.model.StreamRecord;
import com.alicloud.openservices.tablestore.model.tunnel.ChannelInfo;
import com.alicloud.openservices.tablestore.model.tunnel.DescribeTunnelResponse;
import com.alicloud.openservices.tablestore.model.tunnel.StartOffsetFlag;
import com.alicloud.openservices.tablestore.model.tunnel.StreamTunnelConfig;
import com.alicloud.openservices.tablestore.model.tunnel.TunnelStage;
import com.alicloud.openservices.tablestore.model.tunnel.TunnelType;
import com.alicloud.openservices.tablestore.model.tunnel.internal.ConnectTunnelRequest;
import com.alicloud.openservices.tablestore.model.tunnel.internal.HeartbeatRequest;
import com.alicloud.openservices.tablestore.model.tunnel.internal.ReadRecordsResponse;
import com.alicloud.openservices.tablestore.tunnel.worker.TunnelClientConfig;
import java.util.List;

/** From connect to the last checkpoint, call by call. */
final class WalkChannels extends Section {
    private static final String TABLE = "channels";
    private static final String FINISHED = "finished";
    private TunnelByHand mine;
    private String base;
    private String stream;

    WalkChannels(Walk walk) {
        super(walk);
    }

    private DescribeTunnelResponse described() {
        return WalkTunnels.describe(w, TABLE, "t");
    }

    @Override
    void run() {
        w.step("create", () -> {
            create(TABLE, "si");
            put(TABLE, key("a", 1), v("n", 1, 1), v("s", "x", 1));
            put(TABLE, key("b", -1), v("n", 2.5, 2), v("b", new byte[] {0, 1}, 1));
            mine = new TunnelByHand(w, WalkTunnels.create(w, TABLE, "t", TunnelType.BaseAndStream, null), "by-hand");
            yes("client tag", mine.id.startsWith("by-hand"));
        });
        w.step("heartbeat gives the base channel", () -> {
            mine.gets("OPEN");
            base = mine.ids().get(0);
            yes("base channel", base.startsWith("BaseData_"));
        });
        w.step("base checkpoint", () -> {
            equal("sequence", mine.checkpoint(base).getSequenceNumber(), 0);
            yes("token", !mine.checkpoint(base).getCheckpoint().isEmpty());
        });
        w.step("base records", () -> {
            TunnelByHand.Drained drained = mine.read(base);
            for (StreamRecord record : drained.records) {
                yes("no time", record.getSequenceInfo() == null || record.getSequenceInfo().getTimestamp() == 0);
            }
            equal("records", Rows.show(drained.records), "PUT [a,1] n@1=1 s@1=x; PUT [b,-1] b@1=0001 n@2=2.5");
            equal("token", drained.token, FINISHED);
        });
        w.step("base done, stream begins", () -> {
            mine.finish(base, 2);
            mine.gets("OPEN");
            stream = mine.ids().get(0);
            DescribeTunnelResponse got = described();
            equal("stage", got.getTunnelInfo().getStage(), TunnelStage.ProcessStream);
            equal("channels", WalkTunnels.showChannels(got), "BaseData TERMINATED, Stream OPEN");
            equal("owner", got.getChannelInfos().get(1).getClientId(), mine.id);
        });
        streams();
        scaling();
        offsets();
        refusals();
    }

    private void streams() {
        w.step("stream records", () -> {
            put(TABLE, key("a", 1), v("n", 3, 3));
            update(TABLE, key("a", 1), change -> change.put("m", value("x"), EPOCH + 4)
                    .deleteColumn("n", EPOCH + 3).deleteColumns("s"));
            delete(TABLE, key("b", -1));
            List<StreamRecord> records = mine.read(stream).records;
            RecordSequenceInfo before = new RecordSequenceInfo(0, EPOCH * 1000, 0);
            for (StreamRecord record : records) {
                RecordSequenceInfo info = record.getSequenceInfo();
                yes("order", info.getTimestamp() > before.getTimestamp()
                        || info.getTimestamp() == before.getTimestamp() && info.getRowIndex() > before.getRowIndex());
                before = info;
            }
            equal("records", Rows.show(records), "PUT [a,1] n@3=3; UPDATE [a,1] m@4=x -n@3 -s; DELETE [b,-1]");
        });
        w.step("a page says whether there is more", () -> {
            ReadRecordsResponse page = mine.page(stream, mine.checkpoint(stream).getCheckpoint());
            equal("records", page.getRecords().size(), 3);
            yes("size", page.getMemoizedSerializedSize() > 0);
            equal("more", page.getMayMoreRecord(), false);
            equal("next page", mine.page(stream, page.getNextToken()).getRecords().size(), 0);
        });
        w.step("checkpoints", () -> {
            String token = mine.read(stream).token;
            Walk.Body one = () -> mine.store(stream, token, 1);
            Walk.Body two = () -> mine.store(stream, token, 2);
            one.run();
            wantRefusal("OTSSequenceNumberNotMatch", "", one);
            two.run();
            wantRefusal("OTSSequenceNumberNotMatch", "", one);
            mine.store(stream, token, 0);
            wantRefusal("OTSSequenceNumberNotMatch", "", two);
            mine.store(stream, token, 7);
            equal("token", mine.checkpoint(stream).getCheckpoint(), token);
            equal("sequence", mine.checkpoint(stream).getSequenceNumber(), 7);
        });
        w.step("describe shows what was consumed", () -> {
            ChannelInfo channel = described().getChannelInfos().get(1);
            long now = System.currentTimeMillis();
            yes("consume point", Math.abs(now - channel.getChannelConsumePoint().getTime()) < 60_000);
            yes("lag", Math.abs(channel.getChannelRpo()) < 60_000);
            equal("records", channel.getChannelCount(), 3);
            yes("the tunnel's", Math.abs(now - described().getTunnelConsumePoint().getTime()) < 60_000);
        });
    }

    /** Splits and merges under one client, and shares the channels with a second one. */
    private void scaling() {
        TunnelByHand[] other = new TunnelByHand[1];
        w.step("a split: children after the parent", () -> {
            put(TABLE, key("z", 1));
            w.control("/split", "table", TABLE);
            put(TABLE, key("a", 1));
            put(TABLE, key("z", 1));
            mine.gets("OPEN");
            equal("only the parent", mine.ids(), List.of(stream));
            equal("channels", WalkTunnels.showChannels(described()),
                    "BaseData TERMINATED, Stream OPEN, Stream WAIT, Stream WAIT");
            mine.finish(stream, 1);
            mine.gets("OPEN, OPEN");
        });
        w.step("a second client takes half", () -> {
            other[0] = new TunnelByHand(w, mine.tunnelId, "other");
            other[0].gets("");
            mine.gets("CLOSING, OPEN");
            mine.close();
            mine.gets("OPEN");
            other[0].gets("OPEN");
            mine.gets("OPEN");
            yes("no channel twice", !mine.ids().equals(other[0].ids()));
        });
        w.step("shutdown gives all back", () -> {
            other[0].shutdown();
            mine.gets("OPEN, OPEN");
            wantRefusal("OTSResourceGone", "client not exist", other[0]::beat);
        });
        w.step("a merge: the child after both parents", () -> {
            List<String> children = mine.ids();
            w.control("/merge", "table", TABLE);
            put(TABLE, key("b", 7), v("n", 1, 1));
            mine.gets("OPEN, OPEN");
            mine.finish(children.get(0), 1);
            mine.gets("OPEN");
            mine.finish(children.get(1), 1);
            mine.gets("OPEN");
            stream = mine.ids().get(0);
            equal("records", Rows.show(mine.read(stream).records), "PUT [b,7] n@1=1");
        });
    }

    /** Tunnels that start and end somewhere in the log. */
    private void offsets() {
        long[] middle = new long[1];
        w.step("a log", () -> {
            create("offsets", "s", Section::withStream);
            put("offsets", key("a"), v("n", 1, 1));
            Thread.sleep(5); // the log counts in time
            middle[0] = System.currentTimeMillis();
            Thread.sleep(5);
            put("offsets", key("b"), v("n", 2, 1));
        });
        offset("earliest", "PUT [a] n@1=1; PUT [b] n@1=2", false, () -> new StreamTunnelConfig(StartOffsetFlag.EARLIEST));
        offset("latest", "", false, () -> new StreamTunnelConfig(StartOffsetFlag.LATEST));
        offset("a-start", "PUT [b] n@1=2", false, () -> new StreamTunnelConfig(middle[0], 0));
        offset("an-end", "PUT [a] n@1=1", true, () -> new StreamTunnelConfig(StartOffsetFlag.EARLIEST, 0, middle[0]));
    }

    private void offset(String name, String want, boolean ends, java.util.function.Supplier<StreamTunnelConfig> config) {
        w.step("from " + name, () -> {
            String id = WalkTunnels.create(w, "offsets", name, TunnelType.Stream, config.get());
            TunnelByHand reader = new TunnelByHand(w, id, "reader");
            reader.gets("OPEN");
            TunnelByHand.Drained drained = reader.read(reader.ids().get(0));
            equal("records", Rows.show(drained.records), want);
            equal("finished", drained.token.equals(FINISHED), ends);
        });
    }

    private void refusals() {
        w.refused("a client that was forgotten", "OTSResourceGone", "client not exist", () -> {
            w.control("/clients/expire", "tunnel", mine.tunnelId);
            mine.beat();
        });
        w.step("shutdown of a client that is gone", () -> {
            try {
                mine.shutdown();
            } catch (TableStoreException refusal) { // either is tolerated
                equal("code", refusal.getErrorCode(), "OTSResourceGone");
            }
        });
        refusedParameter("checkpoint of no channel", "", () -> mine.checkpoint("none"));
        refusedParameter("read from no token", "", () -> mine.page(stream, "none"));
        refusedParameter("store no token", "", () -> mine.store(stream, "none", 1));
        w.step("trimmed data", () -> {
            TunnelByHand late = new TunnelByHand(w, WalkTunnels.create(w, TABLE, "u", TunnelType.Stream, null), "late");
            late.gets("OPEN");
            String channel = late.ids().get(0);
            String token = late.checkpoint(channel).getCheckpoint();
            put(TABLE, key("a", 1));
            w.control("/streams/trim", "table", TABLE);
            try {
                late.page(channel, token);
                throw new Walk.Wrong("read what was trimmed");
            } catch (TableStoreException refusal) {
                yes(refusal.getErrorCode() + " " + refusal.getMessage(), refusal.getErrorCode().equals("OTSTunnelExpired")
                        || refusal.getMessage().startsWith("OTSTrimmedDataAccess"));
            }
        });
        w.step("an expired tunnel", () -> {
            String id = WalkTunnels.create(w, TABLE, "v", TunnelType.Stream, null);
            w.control("/tunnels/expire", "tunnel", id);
            equal("expired", WalkTunnels.describe(w, TABLE, "v").getTunnelInfo().isExpired(), true);
            wantRefusal("OTSTunnelExpired", "",
                    () -> w.tunnel.connectTunnel(new ConnectTunnelRequest(id, new TunnelClientConfig(10, "tag"))));
            wantRefusal("OTSTunnelExpired", "", () -> w.tunnel.heartbeat(new HeartbeatRequest(id, "any", List.of())));
        });
    }
}

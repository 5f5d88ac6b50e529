package oracle;

import static oracle.Rows.key;
import static oracle.Rows.v;
import static oracle.Walk.equal;
import static oracle.Walk.until;
import static oracle.Walk.yes;

import com.alicloud.openservices.tablestore.model.tunnel.CreateTunnelRequest;
import com.alicloud.openservices.tablestore.model.tunnel.DeleteTunnelRequest;
import com.alicloud.openservices.tablestore.model.tunnel.DescribeTunnelRequest;
import com.alicloud.openservices.tablestore.model.tunnel.DescribeTunnelResponse;
import com.alicloud.openservices.tablestore.model.tunnel.ListTunnelRequest;
import com.alicloud.openservices.tablestore.model.tunnel.StartOffsetFlag;
import com.alicloud.openservices.tablestore.model.tunnel.StreamTunnelConfig;
import com.alicloud.openservices.tablestore.model.tunnel.TunnelInfo;
import com.alicloud.openservices.tablestore.model.tunnel.TunnelStage;
import com.alicloud.openservices.tablestore.model.tunnel.TunnelType;
import com.alicloud.openservices.tablestore.model.tunnel.internal.CheckpointRequest;
import com.alicloud.openservices.tablestore.model.tunnel.internal.ConnectTunnelRequest;
import com.alicloud.openservices.tablestore.model.tunnel.internal.GetCheckpointRequest;
import com.alicloud.openservices.tablestore.model.tunnel.internal.HeartbeatRequest;
import com.alicloud.openservices.tablestore.model.tunnel.internal.ReadRecordsRequest;
import com.alicloud.openservices.tablestore.model.tunnel.internal.ShutdownTunnelRequest;
import com.alicloud.openservices.tablestore.tunnel.worker.TunnelClientConfig;
import java.util.List;
import java.util.stream.Collectors;

/** Tunnels: created in every way, described, listed, deleted. */
final class WalkTunnels extends Section {
    static final String NO_TUNNEL = "tunnel not exist";
    private static final String TABLE = "tunnels";
    private static final long MINUTE = 60_000;

    WalkTunnels(Walk walk) {
        super(walk);
    }

    static DescribeTunnelResponse describe(Walk w, String table, String name) {
        return w.tunnel.describeTunnel(new DescribeTunnelRequest(table, name));
    }

    /** Creates a tunnel and waits until its channels are there; returns its id. */
    static String create(Walk w, String table, String name, TunnelType type, StreamTunnelConfig config) throws Exception {
        CreateTunnelRequest request = new CreateTunnelRequest(table, name, type);
        if (config != null) {
            request.setStreamTunnelConfig(config);
        }
        String id = w.tunnel.createTunnel(request).getTunnelId();
        until(() -> {
            DescribeTunnelResponse got = describe(w, table, name);
            if (got.getTunnelInfo().getStage() == TunnelStage.InitBaseDataAndStreamShard) {
                equal("channels of a tunnel that is initialised", got.getChannelInfos().size(), 0);
                throw new Walk.Wrong("still in its first stage");
            }
        });
        return id;
    }

    /** Channels as "TYPE STATUS", in the order in which they are described. */
    static String showChannels(DescribeTunnelResponse described) {
        return described.getChannelInfos().stream()
                .map(channel -> channel.getChannelType() + " " + channel.getChannelStatus())
                .collect(Collectors.joining(", "));
    }

    private static String show(StreamTunnelConfig config) {
        return config == null ? "none"
                : config.getFlag() + " " + config.getStartOffset() + " " + config.getEndOffset();
    }

    private void created(String name, TunnelType type, StreamTunnelConfig config, String echo, String channels) {
        w.step("create " + name, () -> {
            String id = create(w, TABLE, name, type, config);
            DescribeTunnelResponse got = describe(w, TABLE, name);
            TunnelInfo info = got.getTunnelInfo();
            equal("id", info.getTunnelId(), id);
            equal("name", info.getTunnelName(), name);
            equal("type", info.getTunnelType(), type);
            equal("table", info.getTableName(), TABLE);
            equal("instance", info.getInstanceName(), w.account.instance);
            equal("stage", info.getStage(), type == TunnelType.Stream ? TunnelStage.ProcessStream : TunnelStage.ProcessBaseData);
            equal("expired", info.isExpired(), false);
            equal("channels", showChannels(got), channels);
            equal("consume point", got.getTunnelConsumePoint().getTime(), 0);
            yes("created just now", Math.abs(System.currentTimeMillis() - info.getCreateTime()) < 60_000);
            if (type != TunnelType.BaseData) {
                equal("config", show(info.getStreamTunnelConfig()), echo);
            }
        });
    }

    @Override
    void run() {
        w.step("a table", () -> {
            create(TABLE, "s");
            put(TABLE, key("a"), v("n", 1, 1));
        });
        long now = System.currentTimeMillis(); // the SDK takes and gives milliseconds
        long ago = now - MINUTE;
        long soon = now + 60 * MINUTE;
        StartOffsetFlag earliest = StartOffsetFlag.EARLIEST;
        StartOffsetFlag latest = StartOffsetFlag.LATEST;
        created("base", TunnelType.BaseData, null, "", "BaseData WAIT");
        created("base-configured", TunnelType.BaseData, new StreamTunnelConfig(earliest), "", "BaseData WAIT");
        created("stream", TunnelType.Stream, null, "LATEST 0 0", "Stream WAIT");
        created("stream-latest", TunnelType.Stream, new StreamTunnelConfig(latest), "LATEST 0 0", "Stream WAIT");
        created("stream-earliest", TunnelType.Stream, new StreamTunnelConfig(earliest), "EARLIEST 0 0", "Stream WAIT");
        created("stream-start", TunnelType.Stream, new StreamTunnelConfig(ago, 0), "LATEST " + ago + " 0", "Stream WAIT");
        created("stream-range", TunnelType.Stream, new StreamTunnelConfig(ago, now), "LATEST " + ago + " " + now, "Stream WAIT");
        created("stream-until", TunnelType.Stream, new StreamTunnelConfig(earliest, 0, soon), "EARLIEST 0 " + soon, "Stream WAIT");
        created("both", TunnelType.BaseAndStream, null, "LATEST 0 0", "BaseData WAIT, Stream WAIT");
        w.step("the stream was switched on",
                () -> equal("hours", describe(TABLE).getStreamDetails().getExpirationTime(), 168));
        w.step("list", () -> {
            List<TunnelInfo> tunnels = w.tunnel.listTunnel(new ListTunnelRequest(TABLE)).getTunnelInfos();
            equal("tunnels", tunnels.size(), 9);
            yes("both", tunnels.stream().anyMatch(info -> info.getTunnelName().equals("both")));
        });
        w.step("list of a table without", () -> {
            create("no_tunnels", "s");
            equal("tunnels", w.tunnel.listTunnel(new ListTunnelRequest("no_tunnels")).getTunnelInfos().size(), 0);
        });
        w.step("delete", () -> {
            w.tunnel.deleteTunnel(new DeleteTunnelRequest(TABLE, "both"));
            Walk.wantRefusal("OTSParameterInvalid", NO_TUNNEL, () -> describe(w, TABLE, "both"));
        });
        w.step("the same name again", () -> create(w, TABLE, "both", TunnelType.BaseAndStream, null));
        creationRefusals(now);
        refusals();
    }

    private void refused(String what, String code, String table, String name, StreamTunnelConfig config) {
        w.refused("create " + what, code, "", () -> create(w, table, name, TunnelType.Stream, config));
    }

    private void creationRefusals(long now) {
        refused("what exists", "OTSTunnelExist", TABLE, "both", null);
        refused("on no table", "OTSParameterInvalid", "missing", "t", null);
        refused("with a bad name", "OTSParameterInvalid", TABLE, "a b", null);
        refused("that ends before it starts", "OTSParameterInvalid", TABLE, "t", new StreamTunnelConfig(now, now - 1));
        refused("from before the log", "OTSParameterInvalid", TABLE, "t",
                new StreamTunnelConfig(now - 8 * 24 * 60 * MINUTE, 0));
        refused("from the future", "OTSParameterInvalid", TABLE, "t", new StreamTunnelConfig(now + 60 * MINUTE, 0));
    }

    private void missing(String what, Walk.Body body) {
        refusedParameter(what, NO_TUNNEL, body);
    }

    private void refusals() {
        String nothing = "00000000-0000-0000-0000-000000000000";
        missing("describe missing", () -> describe(w, TABLE, "missing"));
        missing("describe on another table", () -> describe(w, "no_tunnels", "both"));
        missing("delete missing", () -> w.tunnel.deleteTunnel(new DeleteTunnelRequest(TABLE, "missing")));
        missing("connect to a missing tunnel",
                () -> w.tunnel.connectTunnel(new ConnectTunnelRequest(nothing, new TunnelClientConfig(10, "tag"))));
        missing("heartbeat on a missing tunnel", () -> w.tunnel.heartbeat(new HeartbeatRequest(nothing, "c", List.of())));
        missing("shutdown on a missing tunnel", () -> w.tunnel.shutdownTunnel(new ShutdownTunnelRequest(nothing, "c")));
        missing("checkpoint of a missing tunnel",
                () -> w.tunnel.getCheckpoint(new GetCheckpointRequest(nothing, "c", "ch")));
        missing("store a checkpoint of a missing tunnel",
                () -> w.tunnel.checkpoint(new CheckpointRequest(nothing, "c", "ch", "t", 1)));
        missing("read from a missing tunnel", () -> w.tunnel.readRecords(new ReadRecordsRequest(nothing, "c", "ch", "t")));
    }
}

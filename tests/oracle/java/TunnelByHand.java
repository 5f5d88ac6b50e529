package oracle;

import static oracle.Walk.equal;

import com.alicloud.openservices.tablestore.model.StreamRecord;
import com.alicloud.openservices.tablestore.model.tunnel.ChannelStatus;
import com.alicloud.openservices.tablestore.model.tunnel.internal.Channel;
import com.alicloud.openservices.tablestore.model.tunnel.internal.CheckpointRequest;
import com.alicloud.openservices.tablestore.model.tunnel.internal.ConnectTunnelRequest;
import com.alicloud.openservices.tablestore.model.tunnel.internal.GetCheckpointRequest;
import com.alicloud.openservices.tablestore.model.tunnel.internal.GetCheckpointResponse;
import com.alicloud.openservices.tablestore.model.tunnel.internal.HeartbeatRequest;
import com.alicloud.openservices.tablestore.model.tunnel.internal.ReadRecordsRequest;
import com.alicloud.openservices.tablestore.model.tunnel.internal.ReadRecordsResponse;
import com.alicloud.openservices.tablestore.model.tunnel.internal.ShutdownTunnelRequest;
import com.alicloud.openservices.tablestore.tunnel.worker.TunnelClientConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** A connected worker made by hand. */
final class TunnelByHand {
    /** What was read of a channel, and where it stands then. */
    static final class Drained {
        final List<StreamRecord> records = new ArrayList<>();
        String token;
    }

    final String tunnelId;
    final String id;
    private final Walk w;
    private final TreeMap<String, Channel> held = new TreeMap<>();

    TunnelByHand(Walk walk, String tunnelId, String tag) {
        w = walk;
        this.tunnelId = tunnelId;
        id = w.tunnel.connectTunnel(new ConnectTunnelRequest(tunnelId, new TunnelClientConfig(30, tag))).getClientId();
    }

    /** Sends what it holds, takes what it is given, and shows it as "STATUS, STATUS". */
    String beat() {
        List<Channel> given =
                w.tunnel.heartbeat(new HeartbeatRequest(tunnelId, id, new ArrayList<>(held.values()))).getChannels();
        held.clear();
        given.forEach(channel -> held.put(channel.getChannelId(), channel));
        return given.stream().map(channel -> channel.getStatus().toString()).sorted().collect(Collectors.joining(", "));
    }

    /** Beats and compares. */
    void gets(String want) {
        equal("channels", beat(), want);
    }

    List<String> ids() {
        return new ArrayList<>(held.keySet());
    }

    /** Changes a channel's state as a worker does, which then speaks of it in its next heartbeat. */
    private void report(String channel, ChannelStatus status) {
        held.put(channel, new Channel(channel, held.get(channel).getVersion() + 1, status));
    }

    /** Closes the channels in CLOSING. */
    void close() {
        for (Channel channel : new ArrayList<>(held.values())) {
            if (channel.getStatus() == ChannelStatus.CLOSING) {
                report(channel.getChannelId(), ChannelStatus.CLOSE);
            }
        }
    }

    GetCheckpointResponse checkpoint(String channel) {
        return w.tunnel.getCheckpoint(new GetCheckpointRequest(tunnelId, id, channel));
    }

    void store(String channel, String token, long sequence) {
        w.tunnel.checkpoint(new CheckpointRequest(tunnelId, id, channel, token, sequence));
    }

    ReadRecordsResponse page(String channel, String token) {
        return w.tunnel.readRecords(new ReadRecordsRequest(tunnelId, id, channel, token));
    }

    /** Reads a channel from its checkpoint until there is nothing more. */
    Drained read(String channel) {
        Drained drained = new Drained();
        drained.token = checkpoint(channel).getCheckpoint();
        while (!drained.token.equals("finished")) {
            ReadRecordsResponse page = page(channel, drained.token);
            drained.records.addAll(page.getRecords());
            drained.token = page.getNextToken() == null ? "finished" : page.getNextToken();
            if (page.getRecords().isEmpty()) {
                break;
            }
        }
        return drained;
    }

    /** Reads a channel to its end, stores that, and speaks of it in the next heartbeat. */
    void finish(String channel, int want) {
        Drained drained = read(channel);
        equal("records", drained.records.size(), want);
        equal("token", drained.token, "finished");
        store(channel, drained.token, checkpoint(channel).getSequenceNumber() + 1);
        report(channel, ChannelStatus.TERMINATED);
    }

    void shutdown() {
        w.tunnel.shutdownTunnel(new ShutdownTunnelRequest(tunnelId, id));
    }
}

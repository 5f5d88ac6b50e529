package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel/protocol"
)

const (
	latest   = protocol.StartOffsetFlag_LATEST
	earliest = protocol.StartOffsetFlag_EARLIEST
)

// createTunnel creates one and waits until its channels are there.
func (w *walk) createTunnel(table, name string, kind tunnel.TunnelType, config *tunnel.StreamTunnelConfig) (string, error) {
	created, err := w.tunnel.CreateTunnel(&tunnel.CreateTunnelRequest{
		TableName: table, TunnelName: name, Type: kind, StreamTunnelConfig: config})
	if err != nil {
		return "", err
	}
	return created.TunnelId, until(func() error {
		got, err := w.describeTunnel(table, name)
		if err == nil && got.Tunnel.Stage == "InitBaseDataAndStreamShard" {
			err = equal("channels of a tunnel that is initialised", len(got.Channels), 0)
			if err == nil {
				err = fmt.Errorf("still in its first stage")
			}
		}
		return err
	})
}

func (w *walk) describeTunnel(table, name string) (*tunnel.DescribeTunnelResponse, error) {
	return w.tunnel.DescribeTunnel(&tunnel.DescribeTunnelRequest{TableName: table, TunnelName: name})
}

func (w *walk) deleteTunnel(table, name string) error {
	return only(w.tunnel.DeleteTunnel(&tunnel.DeleteTunnelRequest{TableName: table, TunnelName: name}))
}

// channels shows the channels of a tunnel as "TYPE STATUS", sorted as described.
func showChannels(described *tunnel.DescribeTunnelResponse) string {
	shown := []string{}
	for _, channel := range described.Channels {
		shown = append(shown, channel.ChannelType+" "+channel.ChannelStatus)
	}
	return strings.Join(shown, ", ")
}

func walkTunnels(w *walk) {
	const table = "tunnels"
	w.step("a table", func() error { return first(w.create(table, "s"), w.put(table, key("a"), v("n", 1, 1))) })
	now := time.Now().UnixNano()
	for _, one := range []struct {
		name            string
		kind            tunnel.TunnelType
		config, echo    *tunnel.StreamTunnelConfig
		stage, channels string
	}{
		{"base", tunnel.TunnelTypeBaseData, nil, nil, "ProcessBaseData", "BaseData WAIT"},
		{"base-configured", tunnel.TunnelTypeBaseData, &tunnel.StreamTunnelConfig{Flag: earliest}, nil, "ProcessBaseData", "BaseData WAIT"},
		{"stream", tunnel.TunnelTypeStream, nil, &tunnel.StreamTunnelConfig{Flag: latest}, "ProcessStream", "Stream WAIT"},
		{"stream-latest", tunnel.TunnelTypeStream, &tunnel.StreamTunnelConfig{Flag: latest},
			&tunnel.StreamTunnelConfig{Flag: latest}, "ProcessStream", "Stream WAIT"},
		{"stream-earliest", tunnel.TunnelTypeStream, &tunnel.StreamTunnelConfig{Flag: earliest},
			&tunnel.StreamTunnelConfig{Flag: earliest}, "ProcessStream", "Stream WAIT"},
		{"stream-start", tunnel.TunnelTypeStream, &tunnel.StreamTunnelConfig{StartOffset: uint64(now - int64(time.Minute))},
			&tunnel.StreamTunnelConfig{StartOffset: uint64(now - int64(time.Minute))}, "ProcessStream", "Stream WAIT"},
		{"stream-range", tunnel.TunnelTypeStream,
			&tunnel.StreamTunnelConfig{StartOffset: uint64(now - int64(time.Minute)), EndOffset: uint64(now)},
			&tunnel.StreamTunnelConfig{StartOffset: uint64(now - int64(time.Minute)), EndOffset: uint64(now)},
			"ProcessStream", "Stream WAIT"},
		{"stream-until", tunnel.TunnelTypeStream, &tunnel.StreamTunnelConfig{Flag: earliest, EndOffset: uint64(now + int64(time.Hour))},
			&tunnel.StreamTunnelConfig{Flag: earliest, EndOffset: uint64(now + int64(time.Hour))}, "ProcessStream", "Stream WAIT"},
		{"both", tunnel.TunnelTypeBaseStream, nil, &tunnel.StreamTunnelConfig{Flag: latest}, "ProcessBaseData", "BaseData WAIT, Stream WAIT"},
	} {
		w.step("create "+one.name, func() error {
			id, err := w.createTunnel(table, one.name, one.kind, one.config)
			if err != nil {
				return err
			}
			got, err := w.describeTunnel(table, one.name)
			if err != nil {
				return err
			}
			info := got.Tunnel
			if one.kind != tunnel.TunnelTypeBaseData {
				err = equal("config", info.StreamTunnelConfig, one.echo)
				if err == nil && !strings.HasPrefix(info.StreamId, table+"_") {
					err = fmt.Errorf("stream id %q", info.StreamId)
				}
			}
			return first(err, equal("id", info.TunnelId, id), equal("name", info.TunnelName, one.name),
				equal("type", info.TunnelType, string(one.kind)), equal("table", info.TableName, table),
				equal("instance", info.InstanceName, w.instance), equal("stage", info.Stage, one.stage),
				equal("expired", info.Expired, false), equal("channels", showChannels(got), one.channels),
				equal("consume point", got.TunnelRPO, int64(0)),
				equal("created just now", time.Since(info.CreateTime).Abs() < time.Minute, true))
		})
	}
	w.step("the stream was switched on", func() error {
		got, err := w.describe(table)
		return first(err, equal("hours", got.StreamDetails.ExpirationTime, int32(168)))
	})
	w.step("list", func() error {
		got, err := w.tunnel.ListTunnel(&tunnel.ListTunnelRequest{TableName: table})
		if err != nil {
			return err
		}
		names := map[string]bool{}
		for _, info := range got.Tunnels {
			names[info.TunnelName] = true
		}
		return first(equal("tunnels", len(got.Tunnels), 9), equal("both", names["both"], true))
	})
	w.step("list of a table without", func() error {
		if err := w.create("no_tunnels", "s"); err != nil {
			return err
		}
		got, err := w.tunnel.ListTunnel(&tunnel.ListTunnelRequest{TableName: "no_tunnels"})
		return first(err, equal("tunnels", len(got.Tunnels), 0))
	})
	w.step("delete", func() error {
		return first(w.deleteTunnel(table, "both"), wantRefusal(only(w.describeTunnel(table, "both")), "OTSParameterInvalid", "tunnel not exist"))
	})
	w.step("the same name again", func() error { return only(w.createTunnel(table, "both", tunnel.TunnelTypeBaseStream, nil)) })
	walkTunnelRefusals(w, table, now)
}

func walkTunnelRefusals(w *walk, table string, now int64) {
	create := func(what, code, text, table, name string, config *tunnel.StreamTunnelConfig) {
		w.refused("create "+what, code, text, func() error {
			return only(w.createTunnel(table, name, tunnel.TunnelTypeStream, config))
		})
	}
	create("what exists", "OTSTunnelExist", "", table, "both", nil)
	create("on no table", "OTSParameterInvalid", "", "missing", "t", nil)
	create("without a name", "OTSParameterInvalid", "", table, "", nil)
	create("with a bad name", "OTSParameterInvalid", "", table, "a b", nil)
	create("that ends before it starts", "OTSParameterInvalid", "", table, "t",
		&tunnel.StreamTunnelConfig{StartOffset: uint64(now), EndOffset: uint64(now - 1)})
	create("from before the log", "OTSParameterInvalid", "", table, "t",
		&tunnel.StreamTunnelConfig{StartOffset: uint64(now - int64(8*24*time.Hour))})
	create("from the future", "OTSParameterInvalid", "", table, "t",
		&tunnel.StreamTunnelConfig{StartOffset: uint64(now + int64(time.Hour))})
	missing := func(what string, run func() error) {
		w.refused(what, "OTSParameterInvalid", "tunnel not exist", run)
	}
	nothing := "00000000-0000-0000-0000-000000000000"
	missing("describe missing", func() error { return only(w.describeTunnel(table, "missing")) })
	missing("describe on another table", func() error { return only(w.describeTunnel("no_tunnels", "both")) })
	missing("delete missing", func() error { return w.deleteTunnel(table, "missing") })
	missing("connect to a missing tunnel", func() error { return only(connect(w.tunnel, nothing, 10)) })
	missing("heartbeat on a missing tunnel", func() error { return only(heartbeat(w.tunnel, nothing, "c", nil)) })
	missing("shutdown on a missing tunnel", func() error { return shutdown(w.tunnel, nothing, "c") })
	missing("checkpoint of a missing tunnel", func() error {
		_, _, err := w.tunnel.GetCheckpoint(nothing, "c", "ch")
		return err
	})
	missing("store a checkpoint of a missing tunnel", func() error { return w.tunnel.Checkpoint(nothing, "c", "ch", "t", 1) })
	missing("read from a missing tunnel", func() error {
		return only(w.tunnel.ReadRecords(&tunnel.ReadRecordRequest{TunnelId: nothing, ChannelId: "c", Token: "t"}))
	})
	missing("rpo of a missing tunnel", func() error { return only(w.tunnel.GetRpo(&tunnel.GetRpoRequest{TunnelId: nothing})) })
	missing("rpo by offset of a missing tunnel", func() error {
		return only(w.tunnel.GetRpoByOffset(&tunnel.GetRpoRequest{TunnelId: nothing}))
	})
	missing("schedule of a missing tunnel", func() error {
		return only(w.tunnel.Schedule(&tunnel.ScheduleRequest{TunnelId: nothing}))
	})
}

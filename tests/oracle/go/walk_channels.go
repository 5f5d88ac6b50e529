package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	ots "github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel/protocol"
	"github.com/golang/protobuf/proto"
)

// client is a connected worker made by hand.
type client struct {
	*walk
	tunnelID, id string
	held         map[string]*protocol.Channel
}

func (w *walk) connect(tunnelID string) (*client, error) {
	id, err := connect(w.tunnel, tunnelID, 30)
	return &client{w, tunnelID, id, map[string]*protocol.Channel{}}, err
}

// beat sends what it holds, takes what it is given, and shows it as "STATUS, STATUS".
func (c *client) beat() (string, error) {
	report := []*protocol.Channel{}
	for _, channel := range c.held {
		report = append(report, channel)
	}
	given, err := heartbeat(c.tunnel, c.tunnelID, c.id, report)
	if err != nil {
		return "", err
	}
	c.held = map[string]*protocol.Channel{}
	shown := []string{}
	for _, channel := range given {
		c.held[channel.GetChannelId()] = channel
		shown = append(shown, channel.GetStatus().String())
	}
	sort.Strings(shown)
	return strings.Join(shown, ", "), nil
}

// gets beats and compares.
func (c *client) gets(want string) error {
	got, err := c.beat()
	return first(err, equal("channels", got, want))
}

// report changes the state of a channel as a worker does, which then speaks of it in its next heartbeat.
func (c *client) report(id string, status protocol.ChannelStatus) {
	channel := c.held[id]
	c.held[id] = &protocol.Channel{ChannelId: &id, Version: proto.Int64(channel.GetVersion() + 1), Status: status.Enum()}
}

func (c *client) ids() []string {
	ids := []string{}
	for id := range c.held {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}

// read drains a channel from its checkpoint and shows its records; token is where it stands then.
func (c *client) read(channel string) (records []*tunnel.Record, token string, err error) {
	token, _, err = c.tunnel.GetCheckpoint(c.tunnelID, c.id, channel)
	for err == nil && token != tunnel.FinishTag {
		var page *tunnel.ReadRecordResponse
		page, err = c.tunnel.ReadRecords(&tunnel.ReadRecordRequest{
			TunnelId: c.tunnelID, ClientId: c.id, ChannelId: channel, Token: token})
		if err == nil {
			records, token = append(records, page.Records...), page.NextToken
			if page.RecordCount == 0 {
				break
			}
		}
	}
	return records, token, err
}

// finish reads a channel to its end, stores that, and speaks of it in the next heartbeat.
func (c *client) finish(channel string, want int) error {
	records, token, err := c.read(channel)
	if err != nil {
		return err
	}
	_, sequence, err := c.tunnel.GetCheckpoint(c.tunnelID, c.id, channel)
	err = first(err, equal("records", len(records), want), equal("token", token, tunnel.FinishTag),
		c.tunnel.Checkpoint(c.tunnelID, c.id, channel, token, sequence+1))
	c.report(channel, protocol.ChannelStatus_TERMINATED)
	return err
}

func (w *walk) showTunnelRecords(records []*tunnel.Record) string {
	shown := make([]string, len(records))
	for index, record := range records {
		values := []string{}
		for _, column := range record.PrimaryKey.PrimaryKeys {
			values = append(values, value(column.Value))
		}
		parts := []string{record.Type.String(), "[" + strings.Join(values, ",") + "]"}
		for _, column := range record.Columns {
			switch column.Type {
			case tunnel.RCT_Put:
				parts = append(parts, fmt.Sprintf("%s@%s=%s", *column.Name, w.version(*column.Timestamp), value(column.Value)))
			case tunnel.RCT_DeleteOneVersion:
				parts = append(parts, fmt.Sprintf("-%s@%s", *column.Name, w.version(*column.Timestamp)))
			case tunnel.RCT_DeleteAllVersions:
				parts = append(parts, "-"+*column.Name)
			}
		}
		shown[index] = strings.Join(parts, " ")
	}
	return strings.Join(shown, "; ")
}

func walkChannels(w *walk) {
	const table = "channels"
	var mine *client
	var base, stream string
	w.step("create", func() error {
		err := first(w.create(table, "si"),
			w.put(table, key("a", 1), v("n", 1, 1), v("s", "x", 1)), w.put(table, key("b", -1), v("n", 2.5, 2), v("b", []byte{0, 1}, 1)))
		if err != nil {
			return err
		}
		id, err := w.createTunnel(table, "t", tunnel.TunnelTypeBaseStream, nil)
		if err != nil {
			return err
		}
		mine, err = w.connect(id)
		host, _ := os.Hostname()
		return first(err, equal("client tag", strings.HasPrefix(mine.id, host), true))
	})
	w.step("heartbeat gives the base channel", func() error {
		if err := mine.gets("OPEN"); err != nil {
			return err
		}
		base = mine.ids()[0]
		return equal("base channel", strings.HasPrefix(base, "BaseData_"), true)
	})
	w.step("base checkpoint", func() error {
		token, sequence, err := w.tunnel.GetCheckpoint(mine.tunnelID, mine.id, base)
		if err != nil {
			return err
		}
		content, err := tunnel.ParseRequestToken(token)
		return first(err, equal("sequence", sequence, int64(0)), equal("key", len(content.PrimaryKey) > 0, true),
			equal("iterator", content.GetIterator(), ""), equal("count", content.GetTotalCount(), int64(0)))
	})
	w.step("base records", func() error {
		records, token, err := mine.read(base)
		if err != nil {
			return err
		}
		for _, record := range records {
			if record.SequenceInfo != nil || record.Timestamp != 0 {
				return fmt.Errorf("base record with a time: %v", record)
			}
		}
		return first(equal("records", w.showTunnelRecords(records),
			"PutRow [a,1] n@1=1 s@1=x; PutRow [b,-1] b@1=0001 n@2=2.5"), equal("token", token, tunnel.FinishTag))
	})
	w.step("binary records", func() error {
		token, _, err := w.tunnel.GetCheckpoint(mine.tunnelID, mine.id, base)
		if err != nil {
			return err
		}
		page, err := w.tunnel.ReadRecords(&tunnel.ReadRecordRequest{
			TunnelId: mine.tunnelID, ClientId: mine.id, ChannelId: base, Token: token, NeedBinaryRecord: true})
		if err != nil {
			return err
		}
		records, err := tunnel.UnSerializeBatchBinaryRecordFromBytes(page.BinaryRecords)
		if err != nil {
			return err
		}
		rows, next, _, size, err := w.tunnel.ReadRows(mine.tunnelID, mine.id, base, token)
		return first(err, equal("records", w.showTunnelRecords(records), "PutRow [a,1] n@1=1 s@1=x; PutRow [b,-1] b@1=0001 n@2=2.5"),
			equal("rows", len(rows), 2), equal("next", next, page.NextToken), equal("size", size, page.Size))
	})
	w.step("base done, stream begins", func() error {
		if err := first(mine.finish(base, 2), mine.gets("OPEN")); err != nil {
			return err
		}
		stream = mine.ids()[0]
		got, err := w.describeTunnel(table, "t")
		return first(err, equal("stage", got.Tunnel.Stage, "ProcessStream"),
			equal("channels", showChannels(got), "BaseData TERMINATED, Stream OPEN"),
			equal("owner", got.Channels[1].ClientId, mine.id))
	})
	walkStreamChannel(w, table, &mine, &stream)
	walkSchedule(w, table, &mine, &stream)
	walkScaling(w, table, &mine, &stream)
	walkOffsets(w)
	walkChannelRefusals(w, table, &mine)
}

func walkStreamChannel(w *walk, table string, mine **client, stream *string) {
	checkpoint := func(token string, sequence int64) error {
		return w.tunnel.Checkpoint((*mine).tunnelID, (*mine).id, *stream, token, sequence)
	}
	w.step("stream records", func() error {
		token, _, err := w.tunnel.GetCheckpoint((*mine).tunnelID, (*mine).id, *stream)
		if err != nil {
			return err
		}
		content, err := tunnel.ParseRequestToken(token)
		if err != nil || content.GetIterator() == "" {
			return fmt.Errorf("token %v, error %v", content, err)
		}
		err = first(w.put(table, key("a", 1), v("n", 3, 3)),
			w.update(table, key("a", 1), func(change *ots.UpdateRowChange) {
				change.PutColumnWithTimestamp("m", "x", w.epoch+4)
				change.DeleteColumnWithTimestamp("n", w.epoch+3)
				change.DeleteColumn("s")
			}), w.delete(table, key("b", -1)))
		if err != nil {
			return err
		}
		records, _, err := (*mine).read(*stream)
		if err != nil {
			return err
		}
		for index, record := range records {
			if info := record.SequenceInfo; info == nil || info.Timestamp < w.epoch*1000 ||
				index > 0 && !tunnel.StreamRecordSequenceLess(records[index-1].SequenceInfo, info) {
				return fmt.Errorf("record %d: sequence %v", index, info)
			}
		}
		return equal("records", w.showTunnelRecords(records), "PutRow [a,1] n@3=3; UpdateRow [a,1] m@4=x -n@3 -s; DeleteRow [b,-1]")
	})
	w.step("checkpoints", func() error {
		_, token, err := (*mine).read(*stream)
		if err != nil {
			return err
		}
		mismatch := func(sequence int64) error {
			return wantRefusal(checkpoint(token, sequence), "OTSSequenceNumberNotMatch", "")
		}
		err = first(checkpoint(token, 1), mismatch(1), checkpoint(token, 2), mismatch(1), checkpoint(token, 0), mismatch(2),
			checkpoint(token, 7))
		if err != nil {
			return err
		}
		stored, sequence, err := w.tunnel.GetCheckpoint((*mine).tunnelID, (*mine).id, *stream)
		return first(err, equal("token", stored, token), equal("sequence", sequence, int64(7)))
	})
	for what, call := range map[string]func(*tunnel.GetRpoRequest) (*tunnel.GetRpoResponse, error){
		"rpo": w.tunnel.GetRpo, "rpo by offset": w.tunnel.GetRpoByOffset,
	} {
		w.step(what, func() error {
			got, err := call(&tunnel.GetRpoRequest{TunnelId: (*mine).tunnelID})
			if err != nil {
				return err
			}
			one, all := got.RpoInfos["Stream"][*stream], got.TunnelRpoInfos["Stream"]
			if one == nil || all == nil {
				return fmt.Errorf("channels %v, totals %v", got.RpoInfos, got.TunnelRpoInfos)
			}
			return first(equal("status", one.Status, "OPEN"), equal("type", one.ChannelTyp, tunnel.ChannelType_Stream),
				equal("records", one.TotalCount, int64(3)), equal("total", all.TotalCount, int64(3)),
				equal("consumed just now, in ns", time.Since(time.Unix(0, one.RpoTime)).Abs() < time.Minute, true),
				equal("base", got.TunnelRpoInfos["BaseData"] != nil, true))
		})
	}
}

func walkSchedule(w *walk, table string, mine **client, stream *string) {
	schedule := func(channel *tunnel.ScheduleChannel) error {
		return only(w.tunnel.Schedule(&tunnel.ScheduleRequest{
			TunnelId: (*mine).tunnelID, Channels: []*tunnel.ScheduleChannel{channel}}))
	}
	shows := func(want string) error {
		got, err := w.describeTunnel(table, "t")
		return first(err, equal("channels", showChannels(got), "BaseData TERMINATED, "+want))
	}
	w.step("suspend", func() error {
		err := first(schedule(tunnel.SuspendChannel(*stream)), (*mine).gets("CLOSING"), shows("Stream CLOSING"))
		if err != nil {
			return err
		}
		(*mine).report(*stream, protocol.ChannelStatus_CLOSE)
		return first((*mine).gets(""), (*mine).gets(""), shows("Stream CLOSING"))
	})
	w.step("resume", func() error {
		err := first(schedule(tunnel.ResumeChannel(*stream)), (*mine).gets("OPEN"), shows("Stream OPEN"))
		return first(err, equal("it has grown older", (*mine).held[*stream].GetVersion() >= 4, true))
	})
	w.refused("schedule of no channel", "OTSParameterInvalid", "", func() error { return schedule(tunnel.OpenChannel("none")) })
}

// walkScaling splits and merges under one client, and then shares the channels with a second one.
func walkScaling(w *walk, table string, mine **client, stream *string) {
	var children []string
	w.step("a split: children after the parent", func() error {
		if err := w.put(table, key("z", 1)); err != nil {
			return err
		}
		if _, err := w.control("/split", map[string]interface{}{"table": table}); err != nil {
			return err
		}
		err := first(w.put(table, key("a", 1)), w.put(table, key("z", 1)), (*mine).gets("OPEN"),
			equal("only the parent", (*mine).ids(), []string{*stream}))
		if err != nil {
			return err
		}
		got, err := w.describeTunnel(table, "t")
		err = first(err, equal("channels", showChannels(got), "BaseData TERMINATED, Stream OPEN, Stream WAIT, Stream WAIT"),
			(*mine).finish(*stream, 1), (*mine).gets("OPEN, OPEN"))
		children = (*mine).ids()
		return err
	})
	var other *client
	w.step("a second client takes half", func() (err error) {
		if other, err = w.connect((*mine).tunnelID); err != nil {
			return err
		}
		if err = first(other.gets(""), (*mine).gets("CLOSING, OPEN")); err != nil {
			return err
		}
		for id, channel := range (*mine).held {
			if channel.GetStatus() == protocol.ChannelStatus_CLOSING {
				(*mine).report(id, protocol.ChannelStatus_CLOSE)
			}
		}
		return first((*mine).gets("OPEN"), other.gets("OPEN"), (*mine).gets("OPEN"),
			equal("no channel twice", (*mine).ids()[0] != other.ids()[0], true))
	})
	w.step("shutdown gives all back", func() error {
		gone := other.id
		err := first(shutdown(w.tunnel, other.tunnelID, gone), (*mine).gets("OPEN, OPEN"), equal("children", (*mine).ids(), children))
		return first(err, wantRefusal(only(other.beat()), "OTSResourceGone", "client not exist"))
	})
	w.step("a merge: the child after both parents", func() error {
		merge := map[string]interface{}{"table": table}
		if _, err := w.control("/merge", merge); err != nil {
			return err
		}
		if err := w.put(table, key("b", 7), v("n", 1, 1)); err != nil {
			return err
		}
		if err := first((*mine).gets("OPEN, OPEN"), (*mine).finish(children[0], 1), (*mine).gets("OPEN"),
			(*mine).finish(children[1], 1), (*mine).gets("OPEN")); err != nil {
			return err
		}
		*stream = (*mine).ids()[0]
		records, _, err := (*mine).read(*stream)
		return first(err, equal("records", w.showTunnelRecords(records), "PutRow [b,7] n@1=1"))
	})
	w.step("terminate", func() error {
		err := only(w.tunnel.Schedule(&tunnel.ScheduleRequest{TunnelId: (*mine).tunnelID,
			Channels: []*tunnel.ScheduleChannel{tunnel.TerminateChannel(*stream)}}))
		return first(err, (*mine).gets(""))
	})
}

// walkOffsets reads tunnels that start and end somewhere in the log.
func walkOffsets(w *walk) {
	const table = "offsets"
	var middle int64
	w.step("a log", func() error {
		err := first(w.create(table, "s", withStream), w.put(table, key("a"), v("n", 1, 1)))
		time.Sleep(5 * time.Millisecond) // the log counts in time
		middle = time.Now().UnixNano()
		time.Sleep(5 * time.Millisecond)
		return first(err, w.put(table, key("b"), v("n", 2, 1)))
	})
	for name, one := range map[string]struct {
		config *tunnel.StreamTunnelConfig
		want   string
		ends   bool
	}{
		"earliest": {&tunnel.StreamTunnelConfig{Flag: earliest}, "PutRow [a] n@1=1; PutRow [b] n@1=2", false},
		"latest":   {&tunnel.StreamTunnelConfig{Flag: latest}, "", false},
		"a start":  {&tunnel.StreamTunnelConfig{StartOffset: 0}, "PutRow [b] n@1=2", false},
		"an end":   {&tunnel.StreamTunnelConfig{Flag: earliest, EndOffset: 1}, "PutRow [a] n@1=1", true},
	} {
		w.step("from "+name, func() error {
			if name == "a start" {
				one.config.StartOffset = uint64(middle)
			}
			if one.ends {
				one.config.EndOffset = uint64(middle)
			}
			id, err := w.createTunnel(table, strings.ReplaceAll(name, " ", "-"), tunnel.TunnelTypeStream, one.config)
			if err != nil {
				return err
			}
			reader, err := w.connect(id)
			if err = first(err, reader.gets("OPEN")); err != nil {
				return err
			}
			records, token, err := reader.read(reader.ids()[0])
			return first(err, equal("records", w.showTunnelRecords(records), one.want),
				equal("finished", token == tunnel.FinishTag, one.ends))
		})
	}
}

func walkChannelRefusals(w *walk, table string, mine **client) {
	w.step("a client that was forgotten", func() error {
		if _, err := w.control("/clients/expire", map[string]interface{}{"tunnel": (*mine).tunnelID}); err != nil {
			return err
		}
		return wantRefusal(only((*mine).beat()), "OTSResourceGone", "client not exist")
	})
	w.step("shutdown of a client that is gone", func() error {
		err := shutdown(w.tunnel, (*mine).tunnelID, (*mine).id)
		if err != nil { // either is tolerated
			return wantRefusal(err, "OTSResourceGone", "")
		}
		return nil
	})
	w.refused("checkpoint of no channel", "OTSParameterInvalid", "", func() error {
		_, _, err := w.tunnel.GetCheckpoint((*mine).tunnelID, (*mine).id, "none")
		return err
	})
	var id, channel, token string
	read := func(token string) error {
		return only(w.tunnel.ReadRecords(&tunnel.ReadRecordRequest{TunnelId: id, ClientId: "any", ChannelId: channel, Token: token}))
	}
	w.step("no owner is needed to read", func() (err error) {
		if id, err = w.createTunnel(table, "u", tunnel.TunnelTypeStream, nil); err != nil {
			return err
		}
		got, err := w.describeTunnel(table, "u")
		if err != nil {
			return err
		}
		for _, one := range got.Channels {
			if one.ChannelStatus == "WAIT" {
				channel = one.ChannelId
			}
		}
		token, _, err = w.tunnel.GetCheckpoint(id, "any", channel)
		return first(err, read(token))
	})
	w.refused("read from no token", "OTSParameterInvalid", "", func() error { return read("none") })
	w.refused("store no token", "OTSParameterInvalid", "", func() error { return w.tunnel.Checkpoint(id, "any", channel, "none", 1) })
	w.step("trimmed data", func() error {
		if _, err := w.control("/streams/trim", map[string]interface{}{"table": table}); err != nil {
			return err
		}
		err := first(w.put(table, key("a", 1)), w.put(table, key("z", 1)))
		if err != nil {
			return err
		}
		if _, err = w.control("/streams/trim", map[string]interface{}{"table": table}); err != nil {
			return err
		}
		err = read(token)
		if wantRefusal(err, "OTSTunnelExpired", "") == nil {
			return nil
		}
		return wantRefusal(err, "OTSTunnelServerUnavailable", "OTSTrimmedDataAccess")
	})
	w.step("an expired tunnel", func() error {
		if _, err := w.control("/tunnels/expire", map[string]interface{}{"tunnel": id}); err != nil {
			return err
		}
		got, err := w.describeTunnel(table, "u")
		return first(err, equal("expired", got.Tunnel.Expired, true),
			wantRefusal(only(connect(w.tunnel, id, 10)), "OTSTunnelExpired", ""),
			wantRefusal(only(heartbeat(w.tunnel, id, "any", nil)), "OTSTunnelExpired", ""),
			wantRefusal(read(token), "OTSTunnelExpired", ""))
	})
}

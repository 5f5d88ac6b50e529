package main

import (
	"fmt"
	"sort"
	"strings"

	ots "github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// streamOf finds the one stream of a table.
func (w *walk) streamOf(table string) (*ots.StreamId, error) {
	got, err := w.table.ListStream(&ots.ListStreamRequest{TableName: &table})
	if err != nil {
		return nil, err
	}
	if len(got.Streams) != 1 {
		return nil, fmt.Errorf("%d streams, wanted 1", len(got.Streams))
	}
	return got.Streams[0].Id, nil
}

// shards of a stream, in the order in which they are described.
func (w *walk) shards(stream *ots.StreamId) ([]*ots.StreamShard, error) {
	got, err := w.table.DescribeStream(&ots.DescribeStreamRequest{StreamId: stream})
	if err != nil {
		return nil, err
	}
	return got.Shards, nil
}

func (w *walk) iterator(stream *ots.StreamId, shard *ots.ShardId, since *int64) (*ots.ShardIterator, error) {
	request := &ots.GetShardIteratorRequest{StreamId: stream, ShardId: shard, Timestamp: since}
	for {
		got, err := w.table.GetShardIterator(request)
		if err != nil {
			return nil, err
		}
		if got.Token == nil {
			return got.ShardIterator, nil
		}
		request.Token = got.Token // the service is still looking for the time
	}
}

// drain reads a shard until it is caught up (the iterator stays) or done (there is none); it checks the order.
func (w *walk) drain(iterator *ots.ShardIterator) (records []*ots.StreamRecord, at *ots.ShardIterator, err error) {
	for at = iterator; at != nil; {
		got, err := w.table.GetStreamRecord(&ots.GetStreamRecordRequest{ShardIterator: at})
		if err != nil {
			return nil, nil, err
		}
		records = append(records, got.Records...)
		if got.NextShardIterator != nil && *got.NextShardIterator == *at {
			break
		}
		at = got.NextShardIterator
	}
	for index := 1; index < len(records); index++ {
		if before, after := records[index-1].Info, records[index].Info; before.Timestamp > after.Timestamp ||
			before.Timestamp == after.Timestamp && before.RowIndex >= after.RowIndex {
			return nil, nil, fmt.Errorf("%v before %v", before, after)
		}
	}
	return records, at, nil
}

func (w *walk) showRecords(records []*ots.StreamRecord) string {
	shown := make([]string, len(records))
	for index, record := range records {
		parts := []string{strings.Trim(record.Type.String(), `"`), showKey(record.PrimaryKey)}
		for _, column := range record.Columns {
			parts = append(parts, w.showColumn(column))
		}
		for _, column := range record.OriginColumns {
			parts = append(parts, "was "+w.showColumn(column))
		}
		shown[index] = strings.Join(parts, " ")
	}
	return strings.Join(shown, "; ")
}

func (w *walk) showColumn(column *ots.RecordColumn) string {
	switch column.Type {
	case ots.RCT_DeleteAllVersions:
		return "-" + *column.Name
	case ots.RCT_DeleteOneVersion:
		return fmt.Sprintf("-%s@%s", *column.Name, w.version(*column.Timestamp))
	}
	return fmt.Sprintf("%s@%s=%s", *column.Name, w.version(*column.Timestamp), value(column.Value))
}

func walkStreams(w *walk) {
	const table = "streams"
	var stream *ots.StreamId
	var shard *ots.ShardId
	var caughtUp *ots.ShardIterator
	w.step("create", func() error { return w.create(table, "s", withStream) })
	w.step("list", func() (err error) {
		if stream, err = w.streamOf(table); err != nil {
			return err
		}
		got, err := w.table.ListStream(&ots.ListStreamRequest{})
		if err != nil {
			return err
		}
		for _, one := range got.Streams {
			if *one.Id == *stream {
				return first(equal("table", *one.TableName, table), equal("microseconds", one.CreationTime > w.epoch*1000, true))
			}
		}
		return fmt.Errorf("%s is not among all streams", *stream)
	})
	w.step("list of a table without", func() error {
		name := "plain_stream"
		if err := w.create(name, "s"); err != nil {
			return err
		}
		got, err := w.table.ListStream(&ots.ListStreamRequest{TableName: &name})
		return first(err, equal("streams", len(got.Streams), 0))
	})
	w.step("describe", func() error {
		got, err := w.table.DescribeStream(&ots.DescribeStreamRequest{StreamId: stream})
		if err != nil {
			return err
		}
		if len(got.Shards) != 1 {
			return fmt.Errorf("%d shards, wanted 1", len(got.Shards))
		}
		shard = got.Shards[0].SelfShard
		return first(equal("stream", *got.StreamId, *stream), equal("hours", got.ExpirationTime, int32(24)),
			equal("table", *got.TableName, table), equal("status", got.Status, ots.SS_Active),
			equal("more", got.NextShardId == nil, true), equal("parents", got.Shards[0].FatherShard == nil, true))
	})
	w.step("empty: caught up at once", func() error {
		at, err := w.iterator(stream, shard, nil)
		if err != nil {
			return err
		}
		records, next, err := w.drain(at)
		return first(err, equal("records", len(records), 0), equal("open", next != nil, true))
	})
	w.step("every kind of change", func() error {
		err := first(
			w.put(table, key("r"), v("a", 1, 1), v("b", "x", 1), v("c", true, 1)),
			w.update(table, key("r"), func(change *ots.UpdateRowChange) {
				change.PutColumnWithTimestamp("a", int64(2), w.epoch+2)
				change.DeleteColumnWithTimestamp("b", w.epoch+1)
				change.DeleteColumn("c")
			}),
			w.update(table, key("r"), func(change *ots.UpdateRowChange) { change.IncrementColumn("a", 5) }),
			w.delete(table, key("r")))
		if err != nil {
			return err
		}
		refused := w.putChange(table, key("r"), c("a", 1))
		refused.SetCondition(mustExist) // a write that fails leaves no record
		if err := wantRefusal(only(w.table.PutRow(&ots.PutRowRequest{PutRowChange: refused})), "OTSConditionCheckFail", ""); err != nil {
			return err
		}
		at, err := w.iterator(stream, shard, nil)
		if err != nil {
			return err
		}
		records, next, err := w.drain(at)
		caughtUp = next
		return first(err, equal("records", w.showRecords(records), "PutRow [r] a@1=1 b@1=x c@1=true; "+
			"UpdateRow [r] a@2=2 -b@1 -c; UpdateRow [r] a@now=7; DeleteRow [r]"), equal("open", next != nil, true))
	})
	w.step("continue where it was caught up", func() error {
		if err := w.put(table, key("s"), v("a", 1, 1)); err != nil {
			return err
		}
		records, _, err := w.drain(caughtUp)
		return first(err, equal("records", w.showRecords(records), "PutRow [s] a@1=1"))
	})
	w.step("a limit", func() error {
		at, err := w.iterator(stream, shard, nil)
		if err != nil {
			return err
		}
		limit, shown := int32(2), []string{}
		for page := 0; page < 3; page++ {
			got, err := w.table.GetStreamRecord(&ots.GetStreamRecordRequest{ShardIterator: at, Limit: &limit})
			if err != nil {
				return err
			}
			shown, at = append(shown, fmt.Sprint(len(got.Records))), got.NextShardIterator
		}
		return equal("pages", shown, []string{"2", "2", "1"})
	})
	w.step("from a time", func() error {
		at, err := w.iterator(stream, shard, nil)
		if err != nil {
			return err
		}
		all, _, err := w.drain(at)
		if err != nil {
			return err
		}
		since := all[2].Info.Timestamp
		if at, err = w.iterator(stream, shard, &since); err != nil {
			return err
		}
		rest, _, err := w.drain(at)
		return first(err, equal("records", w.showRecords(rest), w.showRecords(all[2:])))
	})
	w.step("former values of origin columns", func() error {
		const table = "origins"
		err := first(
			w.create(table, "s", func(request *ots.CreateTableRequest) {
				withStream(request)
				request.StreamSpec.OriginColumnsToGet = []string{"a"}
			}),
			w.put(table, key("r"), v("a", 1, 1), v("b", 1, 1)),
			w.update(table, key("r"), func(change *ots.UpdateRowChange) {
				change.PutColumnWithTimestamp("a", int64(2), w.epoch+2)
			}),
			w.update(table, key("r"), func(change *ots.UpdateRowChange) { change.DeleteColumn("a") }),
			w.delete(table, key("r")))
		if err != nil {
			return err
		}
		stream, err := w.streamOf(table)
		if err != nil {
			return err
		}
		shards, err := w.shards(stream)
		if err != nil {
			return err
		}
		at, err := w.iterator(stream, shards[0].SelfShard, nil)
		if err != nil {
			return err
		}
		records, _, err := w.drain(at)
		return first(err, equal("records", w.showRecords(records),
			"PutRow [r] a@1=1 b@1=1; UpdateRow [r] a@2=2 was a@1=1; UpdateRow [r] -a was a@2=2; DeleteRow [r]"))
	})
	walkShards(w)
	walkStreamRefusals(w, stream, shard)
}

// walkShards splits a stream's only shard and merges its children.
func walkShards(w *walk) {
	const table = "sharded"
	var stream *ots.StreamId
	var shards []*ots.StreamShard
	write := func(numbers ...int) error {
		var err error
		for _, number := range numbers {
			for name := 'a'; name <= 'h' && err == nil; name++ {
				err = w.put(table, key(string(name)), v("n", number, 1))
			}
		}
		return err
	}
	find := func(wanted int) (err error) {
		if shards, err = w.shards(stream); err != nil {
			return err
		}
		return equal("shards", len(shards), wanted)
	}
	// count reads a whole shard: how many records, and whether it is done.
	count := func(shard *ots.StreamShard) (int, bool, error) {
		at, err := w.iterator(stream, shard.SelfShard, nil)
		if err != nil {
			return 0, false, err
		}
		records, next, err := w.drain(at)
		return len(records), next == nil, err
	}
	counts := func(shards []*ots.StreamShard, wanted string) error {
		shown := []string{}
		for _, shard := range shards {
			number, done, err := count(shard)
			if err != nil {
				return err
			}
			shown = append(shown, fmt.Sprintf("%d %v", number, map[bool]string{true: "done", false: "open"}[done]))
		}
		return equal("records per shard", strings.Join(shown, ", "), wanted)
	}
	w.step("before a split", func() (err error) {
		if err = first(w.create(table, "s", withStream), write(1, 2)); err != nil {
			return err
		}
		if stream, err = w.streamOf(table); err != nil {
			return err
		}
		return first(find(1), counts(shards, "16 open"))
	})
	w.step("a split", func() error {
		before, err := w.shards(stream)
		if err != nil {
			return err
		}
		if _, err := w.control("/split", map[string]interface{}{"table": table}); err != nil {
			return err
		}
		if err := first(write(3), find(3), counts(shards, "16 done, 4 open, 4 open")); err != nil {
			return err
		}
		for _, child := range shards[1:] {
			if child.FatherShard == nil || *child.FatherShard != *before[0].SelfShard || child.MotherShard != nil {
				return fmt.Errorf("a child's parents: %v, %v", child.FatherShard, child.MotherShard)
			}
		}
		return nil
	})
	w.step("a merge", func() error {
		children := []string{string(*shards[1].SelfShard), string(*shards[2].SelfShard)}
		if _, err := w.control("/merge", map[string]interface{}{"table": table}); err != nil {
			return err
		}
		if err := first(write(4), find(4), counts(shards, "16 done, 4 done, 4 done, 8 open")); err != nil {
			return err
		}
		merged := shards[3]
		if merged.FatherShard == nil || merged.MotherShard == nil {
			return fmt.Errorf("parents: %v, %v", merged.FatherShard, merged.MotherShard)
		}
		parents := []string{string(*merged.FatherShard), string(*merged.MotherShard)}
		sort.Strings(parents)
		sort.Strings(children)
		return equal("parents", parents, children)
	})
	w.step("describe in pages", func() error {
		limit, seen := int32(1), []string{}
		for next := (*ots.ShardId)(nil); ; {
			got, err := w.table.DescribeStream(&ots.DescribeStreamRequest{
				StreamId: stream, InclusiveStartShardId: next, ShardLimit: &limit})
			if err != nil {
				return err
			}
			for _, shard := range got.Shards {
				seen = append(seen, string(*shard.SelfShard))
			}
			if next = got.NextShardId; next == nil || len(seen) > 4 {
				break
			}
		}
		all := []string{}
		for _, shard := range shards {
			all = append(all, string(*shard.SelfShard))
		}
		return equal("shards", seen, all)
	})
	w.refused("trimmed", "OTSTrimmedDataAccess", "Requested stream data is already trimmed or does not exist.", func() error {
		at, err := w.iterator(stream, shards[3].SelfShard, nil)
		if err != nil {
			return err
		}
		if _, err := w.control("/streams/trim", map[string]interface{}{"table": table}); err != nil {
			return err
		}
		_, _, err = w.drain(at)
		return err
	})
}

func walkStreamRefusals(w *walk, stream *ots.StreamId, shard *ots.ShardId) {
	noStream, noShard, noIterator := ots.StreamId("none_1"), ots.ShardId("none"), ots.ShardIterator("none")
	missing := "missing"
	w.refused("list of no table", "OTSObjectNotExist", "Requested table does not exist.", func() error {
		return only(w.table.ListStream(&ots.ListStreamRequest{TableName: &missing}))
	})
	for _, code := range []struct {
		what, code string
		run        func() error
	}{
		{"describe no stream", "OTSObjectNotExist", func() error {
			return only(w.table.DescribeStream(&ots.DescribeStreamRequest{StreamId: &noStream}))
		}},
		{"iterator of no stream", "OTSObjectNotExist", func() error { return only(w.iterator(&noStream, shard, nil)) }},
		{"iterator of no shard", "OTSObjectNotExist", func() error { return only(w.iterator(stream, &noShard, nil)) }},
		{"records of no iterator", "OTSParameterInvalid", func() error {
			return only(w.table.GetStreamRecord(&ots.GetStreamRecordRequest{ShardIterator: &noIterator}))
		}},
	} {
		w.refused(code.what, code.code, "", code.run)
	}
}

func walkSplits(w *walk) {
	compute := func(table string, size int64, unit int64) (*ots.ComputeSplitPointsBySizeResponse, error) {
		return w.table.ComputeSplitPointsBySize(&ots.ComputeSplitPointsBySizeRequest{
			TableName: table, SplitSize: size, SplitSizeUnitInByte: &unit})
	}
	bound := func(at *ots.PrimaryKey) string {
		shown := []string{}
		for _, column := range at.PrimaryKeys {
			shown = append(shown, map[ots.PrimaryKeyOption]string{ots.MIN: "min", ots.MAX: "max", ots.NONE: "key"}[column.PrimaryKeyOption])
		}
		return strings.Join(shown, ",")
	}
	w.step("an empty table is one split", func() error {
		if err := w.create("splits", "si"); err != nil {
			return err
		}
		got, err := compute("splits", 1, 100*mebibyte)
		return first(err, equal("splits", len(got.Splits), 1), equal("columns", len(got.SchemaEntry), 0),
			equal("from", bound(got.Splits[0].LowerBound), "min,min"), equal("to", bound(got.Splits[0].UpperBound), "max,max"))
	})
	w.step("four splits of a mebibyte", func() error {
		for number := 0; number < 32; number++ {
			name := string(rune('a' + number/4))
			if err := w.put("splits", key(name, number), c("x", strings.Repeat("x", mebibyte/8))); err != nil {
				return err
			}
		}
		got, err := compute("splits", 1, mebibyte)
		if err != nil {
			return err
		}
		total := 0
		for index, split := range got.Splits {
			if index > 0 && bound(split.LowerBound) != "key,min" {
				return fmt.Errorf("split %d starts at %s", index, bound(split.LowerBound))
			}
			for from := split.LowerBound; from != nil; {
				rows, next, err := w.scan("splits", from, split.UpperBound, func(asked rangeAsk) { asked.AddColumnToGet("k0") })
				if err != nil {
					return err
				}
				total, from = total+strings.Count(rows, "["), next
			}
		}
		return first(equal("several", len(got.Splits) >= 3 && len(got.Splits) <= 8, true), equal("rows in all splits", total, 32))
	})
	w.step("at most one point", func() error {
		unit, limit := int64(mebibyte), int32(1)
		got, err := w.table.ComputeSplitPointsBySize(&ots.ComputeSplitPointsBySizeRequest{
			TableName: "splits", SplitSize: 1, SplitSizeUnitInByte: &unit, SplitPointLimit: &limit})
		return first(err, equal("splits", len(got.Splits), 2))
	})
	w.refused("no size", "OTSParameterInvalid", "The split_size should be greater than 0.", func() error {
		return only(compute("splits", 0, mebibyte))
	})
	w.refused("a small unit", "OTSParameterInvalid", "The split_size_unit_in_byte should be greater equal than: 1048576",
		func() error { return only(compute("splits", 1, mebibyte-1)) })
	w.refused("no table", "OTSObjectNotExist", "Requested table does not exist.", func() error {
		return only(compute("missing", 1, mebibyte))
	})
}

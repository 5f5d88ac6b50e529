package main

import (
	"fmt"
	"math"
	"strings"

	ots "github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/golang/protobuf/proto"
)

func (w *walk) describe(name string) (*ots.DescribeTableResponse, error) {
	return w.table.DescribeTable(&ots.DescribeTableRequest{TableName: name})
}

// options shows a table's options.
func options(given *ots.TableOption) string {
	return fmt.Sprintf("ttl %d, versions %d, deviation %d", given.TimeToAlive, given.MaxVersion, given.DeviationCellVersionInSec)
}

func walkTables(w *walk) {
	w.step("create with all options", func() error {
		return w.create("all_options", "sib", withStream, func(request *ots.CreateTableRequest) {
			request.TableOption = &ots.TableOption{
				TimeToAlive: 864000, MaxVersion: 7, DeviationCellVersionInSec: 5000, AllowUpdate: proto.Bool(false),
			}
			request.TableMeta.AddDefinedColumn("d_int", ots.DefinedColumn_INTEGER)
			request.TableMeta.AddDefinedColumn("d_double", ots.DefinedColumn_DOUBLE)
			request.TableMeta.AddDefinedColumn("d_bool", ots.DefinedColumn_BOOLEAN)
			request.TableMeta.AddDefinedColumn("d_string", ots.DefinedColumn_STRING)
			request.TableMeta.AddDefinedColumn("d_binary", ots.DefinedColumn_BINARY)
		})
	})
	w.step("describe all options", func() error {
		got, err := w.describe("all_options")
		if err != nil {
			return err
		}
		keys := ""
		for _, column := range got.TableMeta.SchemaEntry {
			keys += fmt.Sprintf("%s:%d ", *column.Name, *column.Type)
		}
		defined := ""
		for _, column := range got.TableMeta.DefinedColumns {
			defined += fmt.Sprintf("%s:%d ", column.Name, column.ColumnType)
		}
		return first(
			equal("name", got.TableMeta.TableName, "all_options"),
			equal("key", keys, "k0:2 k1:1 k2:3 "),
			equal("defined", defined, "d_int:1 d_double:2 d_bool:3 d_string:4 d_binary:5 "),
			equal("options", options(got.TableOption), "ttl 864000, versions 7, deviation 5000"),
			equal("allow_update", *got.TableOption.AllowUpdate, false),
			equal("stream", got.StreamDetails.EnableStream, true),
			equal("hours", got.StreamDetails.ExpirationTime, int32(24)),
			equal("stream id", strings.HasPrefix(string(*got.StreamDetails.StreamId), "all_options_"), true),
			equal("enabled in microseconds", got.StreamDetails.LastEnableTime > w.epoch*1000, true),
			equal("throughput", *got.ReservedThroughput, ots.ReservedThroughput{}),
		)
	})
	w.step("create plain", func() error { return w.create("plain", "s") })
	w.step("describe plain", func() error {
		got, err := w.describe("plain")
		if err != nil {
			return err
		}
		return first(
			equal("options", options(got.TableOption), "ttl -1, versions 3, deviation 86400"),
			equal("allow_update", *got.TableOption.AllowUpdate, true),
			equal("stream", got.StreamDetails.EnableStream, false),
		)
	})
	w.step("list", func() error {
		got, err := w.table.ListTable()
		return first(err, equal("tables", got.TableNames, []string{"all_options", "plain"}))
	})
	w.refused("create existing", "OTSObjectAlreadyExist", "Requested table already exists.", func() error {
		return w.create("plain", "s")
	})
	walkTableUpdates(w)
	walkTableRefusals(w)
	w.step("delete", func() error {
		_, err := w.table.DeleteTable(&ots.DeleteTableRequest{TableName: "all_options"})
		if err != nil {
			return err
		}
		got, err := w.table.ListTable()
		return first(err, equal("tables", got.TableNames, []string{"plain"}))
	})
	w.refused("describe deleted", "OTSObjectNotExist", "Requested table does not exist.", func() error {
		return only(w.describe("all_options"))
	})
	w.refused("delete missing", "OTSObjectNotExist", "Requested table does not exist.", func() error {
		return only(w.table.DeleteTable(&ots.DeleteTableRequest{TableName: "all_options"}))
	})
	w.step("quota of tables", func() error {
		second := w.account
		second.instance = "second"
		client := w.tableClient(second)
		for number := 0; number < 64; number++ {
			if _, err := client.CreateTable(tableRequest(fmt.Sprintf("t%d", number), "s")); err != nil {
				return err
			}
		}
		_, err := client.CreateTable(tableRequest("t64", "s"))
		return wantRefusal(err, "OTSQuotaExhausted", "Number of tables exceeds the quota:64.")
	})
}

func (w *walk) updateTable(fill func(*ots.UpdateTableRequest)) (*ots.UpdateTableResponse, error) {
	request := &ots.UpdateTableRequest{TableName: "plain"}
	fill(request)
	return w.table.UpdateTable(request)
}

func (w *walk) switchStream(spec ots.StreamSpecification) (*ots.UpdateTableResponse, error) {
	return w.updateTable(func(request *ots.UpdateTableRequest) { request.StreamSpec = &spec })
}

func walkTableUpdates(w *walk) {
	var old ots.StreamId
	w.step("update options", func() error {
		got, err := w.updateTable(func(request *ots.UpdateTableRequest) { request.TableOption = ots.NewTableOption(864000, 5) })
		if err != nil {
			return err
		}
		described, err := w.describe("plain")
		return first(err,
			equal("answer", options(got.TableOption), "ttl 864000, versions 5, deviation 86400"),
			equal("described", options(described.TableOption), "ttl 864000, versions 5, deviation 86400"))
	})
	w.step("update throughput", func() error {
		got, err := w.updateTable(func(request *ots.UpdateTableRequest) {
			request.ReservedThroughput = &ots.ReservedThroughput{}
		})
		return first(err, equal("options stay", options(got.TableOption), "ttl 864000, versions 5, deviation 86400"))
	})
	w.step("update deviation", func() error {
		got, err := w.updateTable(func(request *ots.UpdateTableRequest) {
			request.TableOption = &ots.TableOption{TimeToAlive: -1, MaxVersion: 3, DeviationCellVersionInSec: 90000}
		})
		return first(err, equal("answer", options(got.TableOption), "ttl -1, versions 3, deviation 90000"))
	})
	w.step("enable stream", func() error {
		got, err := w.switchStream(ots.StreamSpecification{EnableStream: true, ExpirationTime: 168})
		if err != nil {
			return err
		}
		old = *got.StreamDetails.StreamId
		return first(equal("stream", got.StreamDetails.EnableStream, true),
			equal("hours", got.StreamDetails.ExpirationTime, int32(168)))
	})
	w.refused("enable stream twice", "OTSParameterInvalid", "", func() error {
		return only(w.switchStream(ots.StreamSpecification{EnableStream: true, ExpirationTime: 168}))
	})
	w.step("disable stream", func() error {
		got, err := w.switchStream(ots.StreamSpecification{})
		return first(err, equal("stream", got.StreamDetails.EnableStream, false))
	})
	w.refused("disable stream twice", "OTSParameterInvalid", "", func() error {
		return only(w.switchStream(ots.StreamSpecification{}))
	})
	w.step("enable stream again", func() error {
		got, err := w.switchStream(ots.StreamSpecification{EnableStream: true, ExpirationTime: 1})
		return first(err, equal("a new stream", *got.StreamDetails.StreamId != old, true))
	})
	w.refused("update nothing", "OTSParameterInvalid", "", func() error {
		return only(w.updateTable(func(*ots.UpdateTableRequest) {}))
	})
	w.refused("update missing", "OTSObjectNotExist", "Requested table does not exist.", func() error {
		return only(w.updateTable(func(request *ots.UpdateTableRequest) {
			request.TableName, request.TableOption = "missing", ots.NewTableOption(-1, 1)
		}))
	})
	for hours, what := range map[int32]string{0: "no hours", 169: "too many hours"} {
		w.refused("enable stream for "+what, "OTSParameterInvalid", "", func() error {
			_, err := w.switchStream(ots.StreamSpecification{})
			if err != nil && !strings.Contains(err.Error(), "disabled") {
				return err
			}
			return only(w.switchStream(ots.StreamSpecification{EnableStream: true, ExpirationTime: hours}))
		})
	}
}

func walkTableRefusals(w *walk) {
	refused := func(what, text, name, kinds string, change func(*ots.CreateTableRequest)) {
		w.refused("create with "+what, "OTSParameterInvalid", text, func() error { return w.create(name, kinds, change) })
	}
	nothing := func(*ots.CreateTableRequest) {}
	refused("a bad name", "Invalid table name: '1abc'.", "1abc", "s", nothing)
	refused("no name", "Invalid table name: ''.", "", "s", nothing)
	refused("a hyphen", "Invalid table name: 'a-b'.", "a-b", "s", nothing)
	refused("a key twice", "Duplicated primary key name: 'k0'.", "bad", "si", func(request *ots.CreateTableRequest) {
		request.TableMeta.SchemaEntry[1].Name = proto.String("k0")
	})
	refused("auto-increment first", "First primary key can't be auto increment, table: bad.", "bad", "a", nothing)
	refused("auto-increment of a string", "AUTO_INCREMENT primary key must be integer.", "bad", "sa",
		func(request *ots.CreateTableRequest) {
			*request.TableMeta.SchemaEntry[1].Type = ots.PrimaryKeyType_STRING
		})
	refused("two auto-increments", "", "bad", "saa", nothing)
	refused("33 defined columns", "The number of defined columns must be in range: [0, 32].", "bad", "s",
		func(request *ots.CreateTableRequest) {
			for number := 0; number < 33; number++ {
				request.TableMeta.AddDefinedColumn(fmt.Sprintf("d%d", number), ots.DefinedColumn_INTEGER)
			}
		})
	refused("no time to live", "TimeToLive cannot be 0 or less than -1.", "bad", "s",
		func(request *ots.CreateTableRequest) { request.TableOption.TimeToAlive = 0 })
	refused("no versions", "", "bad", "s", func(request *ots.CreateTableRequest) { request.TableOption.MaxVersion = 0 })
	refused("an endless deviation", "The maximum deviation must be in range [0, INT64_MAX/1000000].", "bad", "s",
		func(request *ots.CreateTableRequest) { request.TableOption.DeviationCellVersionInSec = math.MaxInt64 })
	refused("169 hours of stream", "", "bad", "s", func(request *ots.CreateTableRequest) {
		withStream(request)
		request.StreamSpec.ExpirationTime = 169
	})
	w.step("nothing of a refused table", func() error {
		return wantRefusal(only(w.describe("bad")), "OTSObjectNotExist", "Requested table does not exist.")
	})
}

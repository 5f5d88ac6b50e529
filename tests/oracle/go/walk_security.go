package main

import (
	"strings"

	ots "github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore/search"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
)

// lists makes one call of each API for an account.
func (w *walk) lists(a account) (tables, tunnels error) {
	tables = only(w.tableClient(a).ListTable())
	tunnels = only(w.tunnelClient(a).ListTunnel(&tunnel.ListTunnelRequest{TableName: "tunnels"}))
	return tables, tunnels
}

func walkSecurity(w *walk) {
	for _, one := range []struct {
		what, text string
		change     func(*account)
	}{
		{"a wrong secret", "Signature mismatch.", func(a *account) { a.keySecret = "wrong" }},
		{"an unknown key", "The AccessKeyID does not exist.", func(a *account) { a.keyID = "unknown" }},
		{"an unknown instance", "The instance is not found.", func(a *account) { a.instance = "unknown" }},
		{"a wrong secret with a token", "Signature mismatch.", func(a *account) { a.keySecret, a.stsToken = "wrong", "token" }},
	} {
		other := w.account
		one.change(&other)
		w.step(one.what, func() error {
			tables, tunnels := w.lists(other)
			return first(wantRefusal(tables, "OTSAuthFailed", one.text), wantRefusal(tunnels, "OTSAuthFailed", one.text))
		})
	}
	allowed := func(what string, change func(*account)) {
		other := w.account
		change(&other)
		w.step(what, func() error {
			tables, tunnels := w.lists(other)
			return first(tables, tunnels)
		})
	}
	allowed("an STS token", func(a *account) { a.stsToken = "token" })
	allowed("an endpoint with a slash", func(a *account) { a.endpoint += "/" })
	allowed("an endpoint with a path", func(a *account) { a.endpoint += "/some/path" })
	allowed("another instance", func(a *account) { a.instance = "second" })
	w.step("another instance has other tables", func() error {
		other := w.account
		other.instance = "second"
		got, err := w.tableClient(other).ListTable()
		if err != nil {
			return err
		}
		for _, name := range got.TableNames {
			if !strings.HasPrefix(name, "t") {
				return equal("table of another instance", name, "")
			}
		}
		return equal("tables", len(got.TableNames), 64)
	})
	w.step("a trace id, a priority, a tag", func() error {
		request := &ots.DescribeTableRequest{TableName: "tunnels"}
		request.SetTraceID("trace")
		extension := ots.RequestExtension{}
		extension.SetPriority(ots.HIGH)
		extension.SetTag("tag")
		request.SetRequestExtension(extension)
		got, err := w.table.DescribeTable(request)
		return first(err, equal("request id", got.RequestId != "", true))
	})
	w.step("further headers", func() error {
		header := map[string]string{"x-ots-tunnel-type": "type", "x-ots-sourceip": "127.0.0.1", "x-ots-issecuretransport": "false"}
		client := tunnel.NewTunnelApiWithExternalHeader(w.endpoint, w.instance, w.keyID, w.keySecret, "", nil, header)
		return only(client.ListTunnel(&tunnel.ListTunnelRequest{TableName: "tunnels"}))
	})
}

// walkOutOfScope makes the calls that the emulator does not offer: each must be refused, at once and in words.
func walkOutOfScope(w *walk) {
	refused := func(what string, run func() error) {
		w.step(what, func() error {
			err := run()
			return wantRefusal(err, "OTSParameterInvalid", " is not available in this emulator: see ")
		})
	}
	const table = "plain"
	refused("SQLQuery", func() error { return only(w.table.SQLQuery(&ots.SQLQueryRequest{Query: "select 1"})) })
	refused("CreateIndex", func() error {
		index := &ots.IndexMeta{IndexName: "i"}
		index.AddPrimaryKeyColumn("k0")
		return only(w.table.CreateIndex(&ots.CreateIndexRequest{MainTableName: table, IndexMeta: index}))
	})
	refused("DropIndex", func() error {
		return only(w.table.DeleteIndex(&ots.DeleteIndexRequest{MainTableName: table, IndexName: "i"}))
	})
	refused("CreateTable with an index", func() error {
		return w.create("indexed", "s", func(request *ots.CreateTableRequest) {
			index := &ots.IndexMeta{IndexName: "i"}
			index.AddPrimaryKeyColumn("k0")
			request.AddIndexMeta(index)
		})
	})
	refused("ListSearchIndex", func() error {
		return only(w.table.ListSearchIndex(&ots.ListSearchIndexRequest{TableName: table}))
	})
	refused("CreateSearchIndex", func() error {
		return only(w.table.CreateSearchIndex(&ots.CreateSearchIndexRequest{
			TableName: table, IndexName: "i", IndexSchema: &ots.IndexSchema{}}))
	})
	refused("UpdateSearchIndex", func() error {
		return only(w.table.UpdateSearchIndex(&ots.UpdateSearchIndexRequest{TableName: table, IndexName: "i"}))
	})
	refused("DescribeSearchIndex", func() error {
		return only(w.table.DescribeSearchIndex(&ots.DescribeSearchIndexRequest{TableName: table, IndexName: "i"}))
	})
	refused("DeleteSearchIndex", func() error {
		return only(w.table.DeleteSearchIndex(&ots.DeleteSearchIndexRequest{TableName: table, IndexName: "i"}))
	})
	refused("Search", func() error {
		request := &ots.SearchRequest{}
		request.SetTableName(table).SetIndexName("i").SetSearchQuery(search.NewSearchQuery().SetQuery(&search.MatchAllQuery{}))
		return only(w.table.Search(request))
	})
	refused("ComputeSplits", func() error {
		request := &ots.ComputeSplitsRequest{}
		return only(w.table.ComputeSplits(request.SetTableName(table).
			SetSearchIndexSplitsOptions(ots.SearchIndexSplitsOptions{IndexName: "i"})))
	})
	refused("ParallelScan", func() error {
		request := &ots.ParallelScanRequest{}
		request.SetTableName(table).SetIndexName("i").SetScanQuery(search.NewScanQuery().SetQuery(&search.MatchAllQuery{})).
			SetColumnsToGet(&ots.ColumnsToGet{ReturnAllFromIndex: true})
		return only(w.table.ParallelScan(request))
	})
	refused("AddDefinedColumn", func() error {
		request := &ots.AddDefinedColumnRequest{TableName: table}
		request.AddDefinedColumn("d", ots.DefinedColumn_INTEGER)
		return only(w.table.AddDefinedColumn(request))
	})
	refused("DeleteDefinedColumn", func() error {
		return only(w.table.DeleteDefinedColumn(&ots.DeleteDefinedColumnRequest{TableName: table, DefinedColumns: []string{"d"}}))
	})
	refused("CreateDeliveryTask", func() error {
		return only(w.table.CreateDeliveryTask(&ots.CreateDeliveryTaskRequest{TableName: table, TaskName: "t", TaskConfig: &ots.OSSTaskConfig{}}))
	})
	refused("ListDeliveryTask", func() error {
		return only(w.table.ListDeliveryTask(&ots.ListDeliveryTaskRequest{TableName: table}))
	})
	refused("DescribeDeliveryTask", func() error {
		return only(w.table.DescribeDeliveryTask(&ots.DescribeDeliveryTaskRequest{TableName: table, TaskName: "t"}))
	})
	refused("DeleteDeliveryTask", func() error {
		return only(w.table.DeleteDeliveryTask(&ots.DeleteDeliveryTaskRequest{TableName: table, TaskName: "t"}))
	})
	series := ots.NewTimeseriesClientWithConfig(w.endpoint, w.instance, w.keyID, w.keySecret, "", nil, nil)
	refused("ListTimeseriesTable", func() error { return only(series.ListTimeseriesTable()) })
	refused("DescribeTimeseriesTable", func() error {
		return only(series.DescribeTimeseriesTable(ots.NewDescribeTimeseriesTableRequset(table)))
	})
}

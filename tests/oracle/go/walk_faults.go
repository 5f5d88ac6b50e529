package main

import (
	"fmt"

	ots "github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
)

// walkFaults lets calls fail on purpose: what the SDK tries again succeeds, what it does not comes back as it was said.
func walkFaults(w *walk) {
	const table = "faults"
	at := key("r")
	fault := func(operation string, rule map[string]interface{}) error {
		rule["operation"] = operation
		return only(w.control("/faults", rule))
	}
	fails := func(operation, code string, count int) error {
		return fault(operation, map[string]interface{}{"code": code, "count": count})
	}
	lost := func(operation string) error {
		return fault(operation, map[string]interface{}{"drop_response": true, "count": 1})
	}
	put := func() error { return w.put(table, at, v("n", 1, 1)) }
	w.step("create", func() error { return w.create(table, "s") })
	for _, code := range []string{
		"OTSServerBusy", "OTSTableNotReady", "OTSPartitionUnavailable", "OTSRowOperationConflict", "OTSNotEnoughCapacityUnit",
	} {
		w.step("put tries again on "+code, func() error { return first(fails("PutRow", code, 2), put()) })
	}
	for _, code := range []string{"OTSInternalServerError", "OTSServerUnavailable", "OTSTimeout"} {
		w.step("only a read tries again on "+code, func() error {
			return first(fails("PutRow", code, 1), wantRefusal(put(), code, "injected fault"), put(),
				fails("GetRow", code, 2), w.wants("[r] n@1=1", table, at))
		})
	}
	w.step("a lost answer: the write was applied, and is applied again", func() error {
		return first(
			lost("UpdateRow"),
			w.update(table, at, func(change *ots.UpdateRowChange) { change.IncrementColumn("counted", 1) }),
			w.wants("[r] counted@now=2 counted@now=1 n@1=1", table, at))
	})
	w.step("lost answers of reads", func() error {
		return first(lost("GetRow"), lost("DescribeTable"), w.wants("[r] counted@now=2 counted@now=1 n@1=1", table, at),
			only(w.describe(table)))
	})
	w.step("out of service for a while", func() error {
		return first(only(w.control("/faults", map[string]interface{}{"unavailable": 0.2})),
			w.wants("[r] counted@now=2 counted@now=1 n@1=1", table, at))
	})
	w.step("the tunnel service too", func() error {
		list := func() error { return only(w.tunnel.ListTunnel(&tunnel.ListTunnelRequest{TableName: table})) }
		return first(fails("ListTunnel", "OTSTunnelServerUnavailable", 2), list(), lost("ListTunnel"), list(),
			fails("ListTunnel", "OTSPermissionDenied", 1), wantRefusal(list(), "OTSPermissionDenied", "injected fault"))
	})
	w.step("no rule is left", func() error {
		left, err := w.control("/faults", map[string]interface{}{"clear": true})
		return first(err, equal("rules", fmt.Sprint(left["rules"]), "0"))
	})
}

// walkLifetimes shortens the life of what is stored: it is gone at once.
func walkLifetimes(w *walk) {
	const table, day = "lifetimes", 86_400
	options := func(seconds, versions int) error {
		return only(w.table.UpdateTable(&ots.UpdateTableRequest{TableName: table,
			TableOption: &ots.TableOption{TimeToAlive: seconds, MaxVersion: versions, DeviationCellVersionInSec: 10 * day}}))
	}
	at, old := key("r"), key("old")
	w.step("fewer versions", func() error {
		return first(
			w.create(table, "s", func(request *ots.CreateTableRequest) { request.TableOption.DeviationCellVersionInSec = 10 * day }),
			w.put(table, at, v("n", 1, 1), v("n", 2, 2), v("n", 3, 3)),
			options(-1, 1), w.wants("[r] n@3=3", table, at),
			options(-1, 3), w.wants("[r] n@3=3", table, at))
	})
	w.step("a shorter life", func() error {
		return first(
			w.put(table, at, v("young", 1, 1), v("old", 1, -2*day*1000)), w.put(table, old, v("old", 1, -2*day*1000)),
			options(day, 3), w.wants("[r] young@1=1", table, at), w.wants("", table, old))
	})
	w.refused("a version older than the life", "OTSParameterInvalid", "Invalid timestamp", func() error {
		return first(options(day, 3), w.put(table, at, v("n", 1, -2*day*1000)))
	})
}

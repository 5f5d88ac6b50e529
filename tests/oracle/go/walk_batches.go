package main

import (
	"fmt"
	"strings"

	ots "github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// batch writes rows and shows per table what became of each: ok, what it returned, or the code of its error.
func (w *walk) batch(atomic bool, changes ...ots.RowChange) (map[string]string, error) {
	request := &ots.BatchWriteRowRequest{IsAtomic: atomic}
	for _, change := range changes {
		request.AddRowChange(change)
	}
	response, err := w.table.BatchWriteRow(request)
	if err != nil {
		return nil, err
	}
	return w.results(response.TableToRowsResult), nil
}

func (w *walk) results(tables map[string][]ots.RowResult) map[string]string {
	shown := map[string]string{}
	for table, rows := range tables {
		parts := make([]string, len(rows))
		for index, row := range rows {
			switch {
			case !row.IsSucceed:
				parts[index] = row.Error.Code
			case len(row.PrimaryKey.PrimaryKeys) == 0 && len(row.Columns) > 0:
				parts[index] = "ok" + w.show(key("-"), row.Columns)
			default:
				parts[index] = "ok" + w.show(&row.PrimaryKey, row.Columns)
			}
		}
		shown[table] = strings.Join(parts, "; ")
	}
	return shown
}

func walkBatches(w *walk) {
	w.step("create", func() error { return first(w.create("batch1", "si"), w.create("batch2", "s")) })
	w.step("write two tables", func() error {
		increment := updateChange("batch1", key("a", 2))
		increment.IncrementColumn("n", 7)
		increment.SetReturnIncrementValue()
		increment.AppendIncrementColumnToReturn("n")
		put := w.putChange("batch1", key("a", 1), v("n", 1, 1))
		put.SetReturnPk()
		got, err := w.batch(false, put, increment, deleteChange("batch1", key("a", 3)),
			w.putChange("batch2", key("x"), v("n", 1, 1)))
		return first(err,
			equal("results", got, map[string]string{"batch1": "ok[a,1]; ok[-] n@now=7; ok", "batch2": "ok"}),
			w.wants("[a,1] n@1=1", "batch1", key("a", 1)), w.wants("[x] n@1=1", "batch2", key("x")))
	})
	w.step("failed rows stand in their places", func() error {
		change := w.putChange("batch1", key("a", 1), v("n", 9, 1))
		change.SetCondition(mustNotExist)
		got, err := w.batch(false, w.putChange("batch1", key("b", 1), v("n", 1, 1)), change,
			w.putChange("batch1", key("b")), w.putChange("batch1", key("b", 2)),
			w.putChange("missing", key("b")))
		return first(err, equal("results", got, map[string]string{
			"batch1": "ok; OTSConditionCheckFail; OTSInvalidPK; ok", "missing": "OTSObjectNotExist"}),
			w.wants("[a,1] n@1=1", "batch1", key("a", 1)), w.wants("[b,2]", "batch1", key("b", 2)))
	})
	w.step("the same key again and again", func() error {
		changes := []ots.RowChange{}
		for number := 0; number < 10; number++ {
			changes = append(changes, w.putChange("batch2", key("twice"), v(fmt.Sprintf("c%d", number), number, 1)))
		}
		merge := updateChange("batch2", key("twice"))
		merge.PutColumnWithTimestamp("d", "x", w.epoch+1)
		_, err := w.batch(false, append(changes, merge)...)
		return first(err, w.wants("[twice] c9@1=9 d@1=x", "batch2", key("twice")))
	})
	walkBatchRefusals(w)
	walkAtomicBatches(w)
	walkBatchReads(w)
}

func walkBatchRefusals(w *walk) {
	refused := func(what, text string, changes ...ots.RowChange) {
		w.refused("write "+what, "OTSParameterInvalid", text, func() error { return only(w.batch(false, changes...)) })
	}
	many := make([]ots.RowChange, 201)
	for index := range many {
		many[index] = w.putChange("batch1", key("many", index))
	}
	refused("nothing", "No row is specified in BatchWriteRow.")
	refused("201 rows", "Rows count exceeds the upper limit: 200.", many...)
	w.step("write 200 rows", func() error { return only(w.batch(false, many[:200]...)) })
	half := strings.Repeat("x", 2*mebibyte)
	refused("too many bytes", "The total data size of BatchWriteRow request exceeds the limit, limit size: 4194304, data size: 4194",
		w.putChange("batch1", key("a", 1), c("a", half)), w.putChange("batch1", key("a", 2), c("a", half)))
	refused("a row that is wrong in any table", "VT_INF_MIN is an invalid type for the primary key.",
		w.putChange("batch1", key("good", 1)), deleteChange("batch1", key("bad", minimum)))
	w.step("nothing came of it", func() error { return w.wants("", "batch1", key("good", 1)) })
	expecting := w.putChange("batch2", key("twice"))
	expecting.SetCondition(mustExist)
	bothRefused := func(what string, change ots.RowChange) {
		w.step("write a key twice with "+what, func() error {
			got, err := w.batch(false, change, change)
			return first(err, equal("results", got, map[string]string{"batch2": "OTSParameterInvalid; OTSParameterInvalid"}))
		})
	}
	bothRefused("an expectation", expecting)
	conditional := w.putChange("batch2", key("twice"))
	conditional.SetColumnCondition(column("n", ots.CT_EQUAL, 1, false))
	bothRefused("a condition", conditional)
}

func walkAtomicBatches(w *walk) {
	w.step("atomic", func() error {
		got, err := w.batch(true, w.putChange("batch1", key("atom", 1), v("n", 1, 1)),
			w.putChange("batch1", key("atom", 2), v("n", 2, 1)), deleteChange("batch1", key("atom", 3)))
		return first(err, equal("results", got, map[string]string{"batch1": "ok; ok; ok"}),
			w.wants("[atom,2] n@1=2", "batch1", key("atom", 2)))
	})
	w.step("atomic with a failed condition does nothing", func() error {
		impossible := w.putChange("batch1", key("atom", 1))
		impossible.SetCondition(mustNotExist)
		got, err := w.batch(true, w.putChange("batch1", key("atom", 9), v("n", 1, 1)), impossible)
		if err == nil && strings.Contains(got["batch1"], "ok") {
			return fmt.Errorf("a row succeeded: %v", got)
		}
		if err != nil && wantRefusal(err, "OTSConditionCheckFail", "") != nil {
			return err
		}
		return w.wants("", "batch1", key("atom", 9))
	})
	w.step("atomic over two partition keys", func() error {
		got, err := w.batch(true, w.putChange("batch1", key("atom", 8)), w.putChange("batch1", key("other", 8)))
		return first(err, equal("results", got, map[string]string{"batch1": "OTSDataOutOfRange; OTSDataOutOfRange"}),
			w.wants("", "batch1", key("atom", 8)))
	})
}

func (w *walk) batchGet(criteria ...*ots.MultiRowQueryCriteria) (map[string]string, error) {
	response, err := w.table.BatchGetRow(&ots.BatchGetRowRequest{MultiRowQueryCriteria: criteria})
	if err != nil {
		return nil, err
	}
	return w.results(response.TableToRowsResult), nil
}

func several(table string, keys ...*ots.PrimaryKey) *ots.MultiRowQueryCriteria {
	return &ots.MultiRowQueryCriteria{TableName: table, PrimaryKey: keys, MaxVersion: 10}
}

func walkBatchReads(w *walk) {
	w.step("rows to read", func() error {
		return first(w.put("batch1", key("r", 1), v("a", 1, 1), v("a", 2, 2), v("b", "x", 1)),
			w.put("batch1", key("r", 2), v("a", 5, 1)))
	})
	w.step("read two tables", func() error {
		got, err := w.batchGet(several("batch1", key("r", 2), key("r", 7), key("r", 1)), several("missing", key("r")),
			several("batch2", key("x")))
		return first(err, equal("rows", got, map[string]string{
			"batch1": "ok[r,2] a@1=5; ok; ok[r,1] a@2=2 a@1=1 b@1=x", "missing": "OTSObjectNotExist", "batch2": "ok[x] n@1=1"}))
	})
	part := func(what, want string, fill func(*ots.MultiRowQueryCriteria)) {
		w.step("read "+what, func() error {
			criteria := several("batch1", key("r", 1), key("r", 2))
			fill(criteria)
			got, err := w.batchGet(criteria)
			return first(err, equal("rows", got["batch1"], want))
		})
	}
	part("columns", "ok[r,1] b@1=x; ok", func(criteria *ots.MultiRowQueryCriteria) { criteria.AddColumnToGet("b") })
	part("one version", "ok[r,1] a@2=2 b@1=x; ok[r,2] a@1=5", func(criteria *ots.MultiRowQueryCriteria) { criteria.MaxVersion = 1 })
	part("a time", "ok[r,1] a@2=2; ok[r,2]", func(criteria *ots.MultiRowQueryCriteria) {
		criteria.MaxVersion, criteria.TimeRange = 0, &ots.TimeRange{Specific: w.epoch + 2}
	})
	part("a filter", "ok; ok[r,2] a@1=5", func(criteria *ots.MultiRowQueryCriteria) {
		criteria.SetFilter(column("a", ots.CT_GREATER_THAN, 4, true))
	})
	part("a range of columns", "ok[r,1] b@1=x; ok[r,2]", func(criteria *ots.MultiRowQueryCriteria) {
		from, to := "b", "c"
		criteria.StartColumn, criteria.EndColumn = &from, &to
	})
	w.step("read with a bad key", func() error {
		got, err := w.batchGet(several("batch1", key("r", "x"), key("r", 2)))
		return first(err, equal("rows", got["batch1"], "OTSInvalidPK; ok[r,2] a@1=5"))
	})
	refused := func(what, text string, criteria ...*ots.MultiRowQueryCriteria) {
		w.refused("read "+what, "OTSParameterInvalid", text, func() error { return only(w.batchGet(criteria...)) })
	}
	many := several("batch1")
	for number := 0; number < 101; number++ {
		many.AddRow(key("r", number))
	}
	refused("101 rows", "Rows count exceeds the upper limit: 100.", many)
	refused("nothing", "")
	w.step("read a key twice", func() error {
		got, err := w.batchGet(several("batch1", key("r", 1), key("r", 1)))
		return first(err, equal("rows", strings.Count(got["batch1"], "ok[r,1]"), 2))
	})
	refused("keys of different length", "PK column size not the same for all rows in table: batch1.",
		several("batch1", key("r", 1), key("r")))
}

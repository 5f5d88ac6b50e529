package main

import (
	"fmt"

	ots "github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/golang/protobuf/proto"
)

func walkAutoIncrement(w *walk) {
	const table = "numbered"
	w.step("create", func() error { return w.create(table, "sa") })
	w.step("describe", func() error {
		got, err := w.describe(table)
		if err != nil {
			return err
		}
		return equal("option", *got.TableMeta.SchemaEntry[1].Option, ots.AUTO_INCREMENT)
	})
	numbers := []int64{}
	put := func(change *ots.PutRowChange) (int64, error) {
		change.SetReturnPk()
		got, err := w.table.PutRow(&ots.PutRowRequest{PutRowChange: change})
		if err != nil {
			return 0, err
		}
		return got.PrimaryKey.PrimaryKeys[1].Value.(int64), nil
	}
	w.step("numbers increase", func() error {
		for index := 0; index < 3; index++ {
			number, err := put(w.putChange(table, key("p", chosen), v("n", index, 1)))
			if err != nil {
				return err
			}
			if index > 0 && number <= numbers[index-1] {
				return fmt.Errorf("%d after %v", number, numbers)
			}
			numbers = append(numbers, number)
		}
		return w.wants(fmt.Sprintf("[p,%d] n@1=1", numbers[1]), table, key("p", int(numbers[1])))
	})
	w.step("in a batch", func() error {
		one, two := w.putChange(table, key("p", chosen)), w.putChange(table, key("q", chosen))
		one.SetReturnPk()
		two.SetReturnPk()
		request := &ots.BatchWriteRowRequest{}
		request.AddRowChange(one)
		request.AddRowChange(two)
		got, err := w.table.BatchWriteRow(request)
		if err != nil {
			return err
		}
		for index, row := range got.TableToRowsResult[table] {
			number, ok := row.PrimaryKey.PrimaryKeys[1].Value.(int64)
			if !row.IsSucceed || !ok || index == 0 && number <= numbers[2] {
				return fmt.Errorf("row %d: %v", index, row)
			}
		}
		return nil
	})
	w.step("update and delete by number", func() error {
		at := key("p", int(numbers[0]))
		return first(
			w.update(table, at, func(change *ots.UpdateRowChange) { change.PutColumnWithTimestamp("m", "x", w.epoch+1) }),
			w.wants(fmt.Sprintf("[p,%d] m@1=x n@1=0", numbers[0]), table, at), w.delete(table, at), w.wants("", table, at))
	})
	w.refused("put where it must exist", "OTSParameterInvalid", "Invalid expect:EXPECT_EXIST when modify row with pk auto increment.",
		func() error {
			change := w.putChange(table, key("p", chosen))
			change.SetCondition(mustExist)
			return only(put(change))
		})
	w.step("no reading or deleting without a number", func() error {
		return first(wantRefusal(only(w.get(table, key("p", chosen))), "OTSParameterInvalid", ""),
			wantRefusal(w.delete(table, key("p", chosen)), "OTSParameterInvalid", ""))
	})
}

func walkTransactions(w *walk) {
	const table = "transactions"
	patient := w.table
	config := ots.NewDefaultTableStoreConfig()
	config.RetryTimes, config.Transport = 0, w.transport
	hasty := ots.NewClientWithConfig(w.endpoint, w.instance, w.keyID, w.keySecret, w.stsToken, config)

	start := func(name, partition string) (*string, error) {
		got, err := w.table.StartLocalTransaction(&ots.StartLocalTransactionRequest{TableName: name, PrimaryKey: key(partition)})
		if err != nil {
			return nil, err
		}
		return got.TransactionId, nil
	}
	commit := func(id *string) error {
		return only(w.table.CommitTransaction(&ots.CommitTransactionRequest{TransactionId: id}))
	}
	abort := func(id *string) error {
		return only(w.table.AbortTransaction(&ots.AbortTransactionRequest{TransactionId: id}))
	}
	put := func(id *string, at *ots.PrimaryKey, number int) error {
		change := w.putChange(table, at, v("n", number, 1))
		change.TransactionId = id
		return only(w.table.PutRow(&ots.PutRowRequest{PutRowChange: change}))
	}
	within := func(id *string) func(*ots.SingleRowQueryCriteria) {
		return func(asked *ots.SingleRowQueryCriteria) { asked.TransactionId = id }
	}
	w.step("create", func() error {
		return w.create(table, "si", func(request *ots.CreateTableRequest) { request.EnableLocalTxn = proto.Bool(true) })
	})
	w.step("commit", func() error {
		id, err := start(table, "p")
		if err != nil {
			return err
		}
		update := updateChange(table, key("p", 2))
		update.PutColumnWithTimestamp("n", int64(2), w.epoch+1)
		update.TransactionId = id
		remove := deleteChange(table, key("p", 3))
		remove.TransactionId = id
		if err := first(put(id, key("p", 1), 1), only(w.table.UpdateRow(&ots.UpdateRowRequest{UpdateRowChange: update})),
			only(w.table.DeleteRow(&ots.DeleteRowRequest{DeleteRowChange: remove})),
			w.wants("", table, key("p", 1)), w.wants("[p,1] n@1=1", table, key("p", 1), within(id))); err != nil {
			return err
		}
		rows, _, err := w.scan(table, key("p", minimum), key("p", maximum), func(asked rangeAsk) { asked.TransactionId = id })
		return first(err, equal("range within", rows, "[p,1] n@1=1; [p,2] n@1=2"), commit(id),
			w.wants("[p,1] n@1=1", table, key("p", 1)), w.wants("[p,2] n@1=2", table, key("p", 2)))
	})
	w.step("abort", func() error {
		id, err := start(table, "p")
		return first(err, put(id, key("p", 1), 9), put(id, key("p", 9), 9), abort(id),
			w.wants("[p,1] n@1=1", table, key("p", 1)), w.wants("", table, key("p", 9)))
	})
	w.step("others wait", func() error {
		id, err := start(table, "p")
		if err != nil {
			return err
		}
		w.table = hasty
		refused := first(wantRefusal(put(nil, key("p", 1), 5), "OTSRowOperationConflict", ""), put(nil, key("other", 1), 5))
		_, err = start(table, "p")
		refused = first(refused, wantRefusal(err, "OTSRowOperationConflict", ""))
		w.table = patient
		return first(refused, abort(id), put(nil, key("p", 1), 1))
	})
	w.step("another partition key", func() error {
		id, err := start(table, "p")
		return first(err, wantRefusal(put(id, key("q", 1), 1), "OTSDataOutOfRange", ""), abort(id))
	})
	w.step("used up", func() error {
		id, err := start(table, "p")
		return first(err, commit(id), wantRefusal(commit(id), "OTSSessionNotExist", ""),
			wantRefusal(put(id, key("p", 1), 1), "OTSSessionNotExist", ""))
	})
	invalid := "TransactionID is invalid."
	w.refused("commit of what never was", "OTSParameterInvalid", invalid, func() error { return commit(proto.String("none")) })
	w.refused("abort of what never was", "OTSParameterInvalid", invalid, func() error { return abort(proto.String("none")) })
	w.refused("no table", "OTSObjectNotExist", "Requested table does not exist.", func() error {
		return only(start("missing", "p"))
	})
	w.refused("a table with auto-increment", "OTSParameterInvalid", "", func() error { return only(start("numbered", "p")) })
}

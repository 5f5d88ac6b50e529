package main

import (
	"fmt"
	"math"
	"strings"

	ots "github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

const mebibyte = 1 << 20

func walkWrites(w *walk) {
	const table = "writes"
	at := key("a", -5, []byte{0, 255})
	w.step("create", func() error { return w.create(table, "sib") })
	w.step("put every type", func() error {
		err := w.put(table, at, c("string", "x"), c("empty", ""), c("int", -1), c("double", 1.5), c("bool", true),
			c("bytes", []byte{1, 2}), c("große.Spalte: 1", "ü"))
		if err != nil {
			return err
		}
		return w.wants("[a,-5,00ff] bool@now=true bytes@now=0102 double@now=1.5 empty@now= große.Spalte: 1@now=ü int@now=-1 string@now=x",
			table, at)
	})
	w.step("put replaces", func() error {
		return first(w.put(table, at, c("n", 1)), w.wants("[a,-5,00ff] n@now=1", table, at))
	})
	w.step("put versions", func() error {
		return first(w.put(table, at, v("n", 1, 1), v("n", 2, 2), v("m", 3, 1)),
			w.wants("[a,-5,00ff] m@1=3 n@2=2 n@1=1", table, at))
	})
	w.step("put key only", func() error {
		return first(w.put(table, at), w.wants("[a,-5,00ff]", table, at))
	})
	w.step("put returns the key", func() error {
		change := w.putChange(table, at)
		change.SetReturnPk()
		got, err := w.table.PutRow(&ots.PutRowRequest{PutRowChange: change})
		return first(err, equal("key", showKey(&got.PrimaryKey), "[a,-5,00ff]"))
	})
	w.step("capacity units", func() error {
		got, err := w.table.PutRow(&ots.PutRowRequest{
			PutRowChange: w.putChange(table, at, c("a", strings.Repeat("x", 5000)))})
		if err != nil {
			return err
		}
		read, err := w.table.GetRow(&ots.GetRowRequest{SingleRowQueryCriteria: &ots.SingleRowQueryCriteria{
			TableName: table, PrimaryKey: at, MaxVersion: 1}})
		return first(err, equal("written", *got.ConsumedCapacityUnit, ots.ConsumedCapacityUnit{Write: 2}),
			equal("read", *read.ConsumedCapacityUnit, ots.ConsumedCapacityUnit{Read: 2}))
	})
	walkUpdates(w, table)
	w.step("delete", func() error { return first(w.delete(table, at), w.wants("", table, at)) })
	w.step("delete missing", func() error { return w.delete(table, at) })
	w.step("no more than max versions", func() error {
		return first(w.put(table, at, v("n", 1, 1), v("n", 2, 2), v("n", 3, 3), v("n", 4, 4)),
			w.wants("[a,-5,00ff] n@4=4 n@3=3 n@2=2", table, at))
	})
	walkWriteRefusals(w, table, at)
}

func walkUpdates(w *walk, table string) {
	at := key("u", 0, []byte("b"))
	update := func(what, want string, fill func(*ots.UpdateRowChange)) {
		w.step("update "+what, func() error {
			return first(w.update(table, at, fill), w.wants(want, table, at))
		})
	}
	update("creates", "[u,0,62] a@1=1 b@1=x", func(change *ots.UpdateRowChange) {
		change.PutColumnWithTimestamp("a", int64(1), w.epoch+1)
		change.PutColumnWithTimestamp("b", "x", w.epoch+1)
	})
	update("merges", "[u,0,62] a@2=2 a@1=1 b@1=x c@now=true", func(change *ots.UpdateRowChange) {
		change.PutColumnWithTimestamp("a", int64(2), w.epoch+2)
		change.PutColumn("c", true)
	})
	update("overwrites a version", "[u,0,62] a@2=3 a@1=1 b@1=x c@now=true", func(change *ots.UpdateRowChange) {
		change.PutColumnWithTimestamp("a", int64(3), w.epoch+2)
	})
	update("deletes one version", "[u,0,62] a@1=1 b@1=x c@now=true", func(change *ots.UpdateRowChange) {
		change.DeleteColumnWithTimestamp("a", w.epoch+2)
	})
	update("deletes all versions", "[u,0,62] a@1=1 b@1=x", func(change *ots.UpdateRowChange) { change.DeleteColumn("c") })
	update("increments", "[u,0,62] a@now=11 a@1=1 b@1=x", func(change *ots.UpdateRowChange) { change.IncrementColumn("a", 10) })
	update("deletes, puts, increments", "[u,0,62] b@2=y d@now=-3", func(change *ots.UpdateRowChange) {
		change.DeleteColumn("a")
		change.DeleteColumnWithTimestamp("b", w.epoch+1)
		change.PutColumnWithTimestamp("b", "y", w.epoch+2)
		change.IncrementColumn("d", -3) // a column that is not there counts as 0
	})
	w.step("update returns what it incremented", func() error {
		change := updateChange(table, at)
		change.IncrementColumn("d", 5)
		change.SetReturnIncrementValue()
		change.AppendIncrementColumnToReturn("d")
		got, err := w.table.UpdateRow(&ots.UpdateRowRequest{UpdateRowChange: change})
		if err != nil {
			return err
		}
		return equal("columns", w.show(at, got.Columns), "[u,0,62] d@now=2")
	})
	w.step("update deletes what is not there", func() error {
		return w.update(table, at, func(change *ots.UpdateRowChange) {
			change.DeleteColumn("none")
			change.DeleteColumnWithTimestamp("none", w.epoch)
		})
	})
	w.refused("increment of a string", "OTSParameterInvalid", "", func() error {
		return w.update(table, at, func(change *ots.UpdateRowChange) { change.IncrementColumn("b", 1) })
	})
	w.refused("two increments of a column", "OTSParameterInvalid", "", func() error {
		return w.update(table, at, func(change *ots.UpdateRowChange) {
			change.IncrementColumn("d", 1)
			change.IncrementColumn("d", 1)
		})
	})
	w.refused("update of nothing", "OTSParameterInvalid", "Attribute column is missing.", func() error {
		return w.update(table, at, func(*ots.UpdateRowChange) {})
	})
	w.refused("update of an append-only table", "OTSParameterInvalid", "", func() error {
		deny := false
		return first(
			w.create("append_only", "s", func(request *ots.CreateTableRequest) { request.TableOption.AllowUpdate = &deny }),
			w.put("append_only", key("a"), c("n", 1)),
			w.update("append_only", key("a"), func(change *ots.UpdateRowChange) { change.PutColumn("n", int64(2)) }))
	})
}

func walkWriteRefusals(w *walk, table string, at *ots.PrimaryKey) {
	w.refused("put into no table", "OTSObjectNotExist", "Requested table does not exist.", func() error {
		return w.put("missing", at)
	})
	w.refused("update in no table", "OTSObjectNotExist", "Requested table does not exist.", func() error {
		return w.update("missing", at, func(change *ots.UpdateRowChange) { change.PutColumn("a", "x") })
	})
	w.refused("delete from no table", "OTSObjectNotExist", "Requested table does not exist.", func() error {
		return w.delete("missing", at)
	})
	for _, bad := range []struct {
		what, text string
		at         *ots.PrimaryKey
	}{
		{"too few keys", "Validate PK size fail. Input: 2, Meta: 3.", key("a", 1)},
		{"a wrong key type", "Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER.", key("a", "1", []byte{1})},
		{"a binary for a string", "Validate PK type fail. Input: VT_BLOB, Meta: VT_STRING.", key([]byte{1}, 1, []byte{1})},
		{"a wrong key name", "Validate PK name fail. Input: x, Meta: k0.", renamed(key("a", 1, []byte{1}), "x")},
	} {
		w.refused("put with "+bad.what, "OTSInvalidPK", bad.text, func() error { return w.put(table, bad.at) })
		w.refused("delete with "+bad.what, "OTSInvalidPK", bad.text, func() error { return w.delete(table, bad.at) })
		w.refused("get with "+bad.what, "OTSInvalidPK", bad.text, func() error { return only(w.get(table, bad.at)) })
	}
	refused := func(what, text string, at *ots.PrimaryKey, cells ...cell) {
		w.refused("put with "+what, "OTSParameterInvalid", text, func() error { return w.put(table, at, cells...) })
	}
	long := strings.Repeat("x", 1025)
	refused("a number to be chosen", "VT_AUTO_INCREMENT is an invalid type for the primary key.", key("a", chosen, []byte{1}))
	// In a put the SDK writes every marker as the one for auto-increment.
	w.refused("delete with INF_MIN", "OTSParameterInvalid", "VT_INF_MIN is an invalid type for the primary key.", func() error {
		return w.delete(table, key("a", minimum, []byte{1}))
	})
	w.refused("delete with INF_MAX", "OTSParameterInvalid", "VT_INF_MAX is an invalid type for the primary key.", func() error {
		return w.delete(table, key("a", maximum, []byte{1}))
	})
	refused("a long key", "The length of primary key column: 'k0' exceeds the MaxLength:1024 with CurrentLength:1025.",
		key(long, 1, []byte{1}))
	refused("a long binary key", "The length of primary key column: 'k2' exceeds the MaxLength:1024 with CurrentLength:1025.",
		key("a", 1, []byte(long)))
	refused("a long value", "The length of attribute column: 'a' exceeds the MaxLength:2097152 with CurrentLength:2097153.",
		at, c("a", strings.Repeat("x", 2*mebibyte+1)))
	refused("a long column name", "Invalid column name: '", at, c(strings.Repeat("n", 256), 1))
	refused("an empty column name", "Invalid column name: ''.", at, c("", 1))
	refused("a key as a column", "Duplicated attribute column name with primary key column: k1.", at, c("k1", 1))
	refused("NaN", "NaN can't be set to double value.", at, c("a", math.NaN()))
	refused("infinity", "Infinity can't be set to double value.", at, c("a", math.Inf(1)))
	refused("a version before all time", "Timestamp must be in range [0, INT64_MAX/1000).", at, v("a", 1, -w.epoch-1))
	refused("a version too old", "Invalid timestamp", at, v("a", 1, -2*86_400_000))
	refused("a version too new", "Invalid timestamp", at, v("a", 1, 2*86_400_000))
	cells := make([]cell, 1025)
	for index := range cells {
		cells[index] = c(fmt.Sprintf("c%d", index), 1)
	}
	refused("too many columns", "The number of attribute columns exceeds the limit, limit count: 1024, column count: 1025.", at, cells...)
	w.step("put with 1024 columns", func() error { return w.put(table, at, cells[:1024]...) })
	half := strings.Repeat("x", 2*mebibyte)
	refused("too many bytes", "The total data size of PutRow request exceeds the limit, limit size: 4194304, data size: 4194",
		at, c("a", half), c("b", half))
	w.refused("a body too large", "OTSRequestBodyTooLarge", "The size of POST data is too large.", func() error {
		return w.put(table, at, c("a", half), c("b", half), c("c", half))
	})
}

func renamed(at *ots.PrimaryKey, name string) *ots.PrimaryKey {
	at.PrimaryKeys[0].ColumnName = name
	return at
}

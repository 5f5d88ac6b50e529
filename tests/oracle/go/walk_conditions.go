package main

import (
	"fmt"

	ots "github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

const (
	mustExist    = ots.RowExistenceExpectation_EXPECT_EXIST
	mustNotExist = ots.RowExistenceExpectation_EXPECT_NOT_EXIST
	mayExist     = ots.RowExistenceExpectation_IGNORE
)

func walkConditions(w *walk) {
	const table = "conditions"
	there, gone := key("there"), key("gone")
	w.step("create", func() error { return first(w.create(table, "s"), w.put(table, there, v("n", 5, 1), v("s", "m", 1))) })

	put := func(at *ots.PrimaryKey, existence ots.RowExistenceExpectation, filter ots.ColumnFilter) error {
		change := w.putChange(table, at, v("n", 5, 1), v("s", "m", 1))
		change.SetCondition(existence)
		change.SetColumnCondition(filter)
		return only(w.table.PutRow(&ots.PutRowRequest{PutRowChange: change}))
	}
	update := func(at *ots.PrimaryKey, existence ots.RowExistenceExpectation, filter ots.ColumnFilter) error {
		change := updateChange(table, at)
		change.PutColumnWithTimestamp("n", int64(5), w.epoch+1)
		change.SetCondition(existence)
		change.SetColumnCondition(filter)
		return only(w.table.UpdateRow(&ots.UpdateRowRequest{UpdateRowChange: change}))
	}
	remove := func(at *ots.PrimaryKey, existence ots.RowExistenceExpectation, filter ots.ColumnFilter) error {
		change := deleteChange(table, at)
		change.SetCondition(existence)
		change.SetColumnCondition(filter)
		return only(w.table.DeleteRow(&ots.DeleteRowRequest{DeleteRowChange: change}))
	}
	failed := func(what string, run func() error) {
		w.refused(what, "OTSConditionCheckFail", "Condition check failed.", run)
	}
	failed("put on a missing row that must exist", func() error { return put(gone, mustExist, nil) })
	failed("put on a row that must not exist", func() error { return put(there, mustNotExist, nil) })
	failed("update of a missing row that must exist", func() error { return update(gone, mustExist, nil) })
	failed("update of a row that must not exist", func() error { return update(there, mustNotExist, nil) })
	failed("delete of a missing row that must exist", func() error { return remove(gone, mustExist, nil) })
	w.step("nothing came of it", func() error {
		return first(w.wants("", table, gone), w.wants("[there] n@1=5 s@1=m", table, there))
	})
	w.step("put where it must exist", func() error { return put(there, mustExist, nil) })
	w.step("update where it must exist", func() error { return update(there, mustExist, nil) })
	w.step("put where it must not exist, then delete where it must", func() error {
		return first(put(gone, mustNotExist, nil), remove(gone, mustExist, nil), w.wants("", table, gone))
	})
	walkComparisons(w, func(filter ots.ColumnFilter) error { return update(there, mayExist, filter) })
	failed("update of a missing row, strict", func() error {
		return update(gone, mayExist, column("n", ots.CT_EQUAL, 5, true))
	})
	w.step("update of a missing row, lenient", func() error {
		return first(update(gone, mayExist, column("n", ots.CT_EQUAL, 5, false)), w.wants("[gone] n@1=5", table, gone))
	})
	failed("delete on a wrong value", func() error { return remove(there, mustExist, column("n", ots.CT_EQUAL, 6, true)) })
	w.step("delete on the right value", func() error {
		return first(remove(there, mustExist, column("n", ots.CT_EQUAL, 5, true)), w.wants("", table, there))
	})
}

// walkComparisons tests every comparator and combination on a row with n=5 and s="m".
func walkComparisons(w *walk, with func(ots.ColumnFilter) error) {
	expect := func(what string, passes bool, filter ots.ColumnFilter) {
		if passes {
			w.step(what+" passes", func() error { return with(filter) })
		} else {
			w.refused(what+" fails", "OTSConditionCheckFail", "Condition check failed.", func() error { return with(filter) })
		}
	}
	for _, one := range []struct {
		sign               string
		comparator         ots.ComparatorType
		less, same, larger bool // whether 5 SIGN 4, 5, 6 holds
	}{
		{"=", ots.CT_EQUAL, false, true, false},
		{"!=", ots.CT_NOT_EQUAL, true, false, true},
		{">", ots.CT_GREATER_THAN, true, false, false},
		{">=", ots.CT_GREATER_EQUAL, true, true, false},
		{"<", ots.CT_LESS_THAN, false, false, true},
		{"<=", ots.CT_LESS_EQUAL, false, true, true},
	} {
		for offset, passes := range []bool{one.less, one.same, one.larger} {
			expect(fmt.Sprintf("n %s %d", one.sign, 4+offset), passes, column("n", one.comparator, 4+offset, true))
		}
	}
	yes, no := column("n", ots.CT_EQUAL, 5, true), column("s", ots.CT_EQUAL, "x", true)
	expect("s > l", true, column("s", ots.CT_GREATER_THAN, "l", true))
	expect("missing, strict,", false, column("none", ots.CT_EQUAL, 1, true))
	expect("missing, lenient,", true, column("none", ots.CT_EQUAL, 1, false))
	expect("yes and yes", true, combined(ots.LO_AND, yes, yes))
	expect("yes and no", false, combined(ots.LO_AND, yes, no))
	expect("no or yes", true, combined(ots.LO_OR, no, yes))
	expect("no or no", false, combined(ots.LO_OR, no, no))
	expect("not no", true, combined(ots.LO_NOT, no))
	expect("not yes", false, combined(ots.LO_NOT, yes))
	expect("not (no or (yes and no))", true, combined(ots.LO_NOT, combined(ots.LO_OR, no, combined(ots.LO_AND, yes, no))))
}

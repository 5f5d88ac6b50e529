package main

import (
	"fmt"

	ots "github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

func walkReads(w *walk) {
	const table = "reads"
	at := key("r")
	w.step("create", func() error {
		return first(w.create(table, "s"),
			w.put(table, at, v("a", 1, 1), v("a", 2, 2), v("a", 3, 3), v("b", "x7y", 2), v("c", true, 3), v("d", 1.5, 1)))
	})
	read := func(what, want string, fill func(*ots.SingleRowQueryCriteria)) {
		w.step(what, func() error { return w.wants(want, table, at, fill) })
	}
	type ask = *ots.SingleRowQueryCriteria
	read("everything", "[r] a@3=3 a@2=2 a@1=1 b@2=x7y c@3=true d@1=1.5", func(ask) {})
	read("one version", "[r] a@3=3 b@2=x7y c@3=true d@1=1.5", func(asked ask) { asked.MaxVersion = 1 })
	read("two columns", "[r] a@3=3 c@3=true", func(asked ask) {
		asked.MaxVersion, asked.ColumnsToGet = 1, []string{"c", "a", "none"}
	})
	read("a column that is not there", "", func(asked ask) { asked.AddColumnToGet("none") })
	read("a key column", "[r]", func(asked ask) { asked.AddColumnToGet("k0") })
	read("a time range", "[r] a@2=2 a@1=1 b@2=x7y d@1=1.5", func(asked ask) {
		asked.TimeRange = &ots.TimeRange{Start: w.epoch + 1, End: w.epoch + 3}
	})
	read("a time range without versions", "[r] a@2=2 a@1=1 b@2=x7y d@1=1.5", func(asked ask) {
		asked.MaxVersion, asked.TimeRange = 0, &ots.TimeRange{Start: w.epoch + 1, End: w.epoch + 3}
	})
	read("one time", "[r] a@1=1 d@1=1.5", func(asked ask) {
		asked.MaxVersion, asked.TimeRange = 0, &ots.TimeRange{Specific: w.epoch + 1}
	})
	read("a range of columns", "[r] b@2=x7y c@3=true", func(asked ask) {
		asked.SetStartColumn("aa")
		asked.SetEndtColumn("d")
	})
	read("from a column", "[r] c@3=true d@1=1.5", func(asked ask) { asked.SetStartColumn("c") })
	filtered := func(what string, passes bool, filter ots.ColumnFilter) {
		want := map[bool]string{true: "[r] a@3=3 b@2=x7y c@3=true d@1=1.5"}[passes]
		read(what, want, func(asked ask) {
			asked.MaxVersion = 1
			asked.SetFilter(filter)
		})
	}
	yes, no := column("a", ots.CT_EQUAL, 3, true), column("c", ots.CT_EQUAL, false, true)
	filtered("a filter that passes", true, yes)
	filtered("a filter that fails", false, no)
	filtered("a filter on a missing column, strict", false, column("none", ots.CT_EQUAL, 1, true))
	filtered("a filter on a missing column, lenient", true, column("none", ots.CT_EQUAL, 1, false))
	filtered("and", false, combined(ots.LO_AND, yes, no))
	filtered("or", true, combined(ots.LO_OR, no, yes))
	filtered("not", true, combined(ots.LO_NOT, no))
	part := column("b", ots.CT_EQUAL, 7, true)
	part.TransferRule = &ots.ValueTransferRule{Regex: "x([0-9]+)y", Cast_type: ots.Variant_INTEGER}
	filtered("a part of a value as an integer", true, part)
	filtered("a filter on a double", true, column("d", ots.CT_LESS_THAN, 2.0, true))
	old := column("a", ots.CT_EQUAL, 2, true)
	filtered("the latest version only", false, old)
	any := *old
	any.LatestVersionOnly = false
	read("any version", "[r] a@3=3 a@2=2 a@1=1 b@2=x7y c@3=true d@1=1.5", func(asked ask) { asked.SetFilter(&any) })
	read("a page of columns", "[r] b@2=x7y c@3=true", func(asked ask) {
		asked.MaxVersion = 1
		asked.SetFilter(&ots.PaginationFilter{Offset: 1, Limit: 2})
	})
	w.step("a missing row", func() error { return w.wants("", table, key("none")) })

	w.refused("no table", "OTSObjectNotExist", "Requested table does not exist.", func() error {
		return only(w.get("missing", at))
	})
	refused := func(what, text string, fill func(*ots.SingleRowQueryCriteria)) {
		w.refused(what, "OTSParameterInvalid", text, func() error { return only(w.get(table, at, fill)) })
	}
	refused("a time and versions", "Specific tiemstamp and max versions cannot be given at the same time.",
		func(asked ask) { asked.TimeRange = &ots.TimeRange{Specific: w.epoch} })
	refused("a time range that ends before it begins", "", func(asked ask) {
		asked.TimeRange = &ots.TimeRange{Start: w.epoch + 1, End: w.epoch}
	})
	refused("negative versions", "Invalid max versions: -2. Reason: Max versions must be positive.",
		func(asked ask) { asked.MaxVersion = -2 })
	refused("INF_MIN as a key", "VT_INF_MIN is an invalid type for the primary key.",
		func(asked ask) { asked.PrimaryKey = key(minimum) })
	refused("too many columns", "The number of columns from the request exceeds the limit, limit count: 1024, column count: 1025.",
		func(asked ask) {
			for number := 0; number < 1025; number++ {
				asked.AddColumnToGet(fmt.Sprintf("c%d", number))
			}
		})
	refused("too many filters", "The count of filter exceeds the max: 32.", func(asked ask) {
		all := combined(ots.LO_AND)
		for number := 0; number < 33; number++ {
			all.AddFilter(yes)
		}
		asked.SetFilter(all)
	})
	refused("not of two", "", func(asked ask) { asked.SetFilter(combined(ots.LO_NOT, yes, no)) })
}

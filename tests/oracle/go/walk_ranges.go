package main

import (
	"fmt"
	"strings"

	ots "github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

type rangeAsk = *ots.RangeRowQueryCriteria

// all follows a range to its end; pages counts its answers.
func (w *walk) all(table string, from, to *ots.PrimaryKey, fill func(rangeAsk)) (rows string, pages int, err error) {
	found := []string{}
	for next := from; next != nil && err == nil; pages++ {
		var page string
		page, next, err = w.scan(table, next, to, fill)
		if page != "" {
			found = append(found, page)
		}
		if pages > 100 {
			return "", pages, fmt.Errorf("no end after %d pages", pages)
		}
	}
	return strings.Join(found, "; "), pages, err
}

func walkRanges(w *walk) {
	const table = "ranges"
	low, high := key(minimum, minimum), key(maximum, maximum)
	w.step("create", func() error {
		changes := []ots.RowChange{}
		for number := -2; number < 3; number++ {
			changes = append(changes, w.putChange(table, key("a", number), v("n", number, 1), v("n", 9, 2), v("x", "y", 2)),
				w.putChange(table, key("b", number), v("m", number, 1)))
		}
		return first(w.create(table, "si"), only(w.batch(false, changes...)))
	})
	as := "[a,-2]; [a,-1]; [a,0]; [a,1]; [a,2]"
	bs := "[b,-2]; [b,-1]; [b,0]; [b,1]; [b,2]"
	scan := func(what, want string, from, to *ots.PrimaryKey, fill func(rangeAsk)) {
		w.step(what, func() error {
			got, _, err := w.all(table, from, to, fill)
			return first(err, equal("rows", got, want))
		})
	}
	keys := func(asked rangeAsk) { asked.AddColumnToGet("k0") }
	backward := func(asked rangeAsk) {
		keys(asked)
		asked.Direction = ots.BACKWARD
	}
	scan("forward", as+"; "+bs, low, high, keys)
	scan("backward", reversed(as+"; "+bs), high, low, backward)
	scan("one partition key", bs, key("b", minimum), key("b", maximum), keys)
	scan("start is in, end is out", "[a,1]; [a,2]; [b,-2]", key("a", 1), key("b", -1), keys)
	scan("backward too", "[b,-1]; [b,-2]; [a,2]", key("b", -1), key("a", 1), backward)
	scan("nothing", "", key("c", minimum), key("d", minimum), keys)
	w.step("limit and next key", func() error {
		got, next, err := w.scan(table, low, high, func(asked rangeAsk) {
			keys(asked)
			asked.Limit = 3
		})
		if err != nil || next == nil {
			return fmt.Errorf("next key %v, error %v", next, err)
		}
		return first(equal("rows", got, "[a,-2]; [a,-1]; [a,0]"), equal("next", showKey(next), "[a,1]"))
	})
	for _, limit := range []int32{1, 3, 10} {
		limited := func(also func(rangeAsk)) func(rangeAsk) {
			return func(asked rangeAsk) {
				also(asked)
				asked.Limit = limit
			}
		}
		scan(fmt.Sprintf("pages of %d", limit), as+"; "+bs, low, high, limited(keys))
		scan(fmt.Sprintf("pages of %d backward", limit), reversed(as+"; "+bs), high, low, limited(backward))
	}
	part := func(what, want string, fill func(rangeAsk)) { scan(what, want, key("a", 1), key("b", -1), fill) }
	part("versions", "[a,1] n@2=9 n@1=1 x@2=y; [a,2] n@2=9 n@1=2 x@2=y; [b,-2] m@1=-2", func(rangeAsk) {})
	part("one version", "[a,1] n@2=9 x@2=y; [a,2] n@2=9 x@2=y; [b,-2] m@1=-2", func(asked rangeAsk) { asked.MaxVersion = 1 })
	part("columns", "[b,-2] m@1=-2", func(asked rangeAsk) { asked.ColumnsToGet = []string{"m"} })
	part("a range of columns", "[a,1] n@2=9 n@1=1; [a,2] n@2=9 n@1=2; [b,-2]", func(asked rangeAsk) {
		from, to := "n", "x"
		asked.StartColumn, asked.EndColumn = &from, &to
	})
	part("a time range", "[a,1] n@1=1; [a,2] n@1=2; [b,-2] m@1=-2", func(asked rangeAsk) {
		asked.TimeRange = &ots.TimeRange{Start: w.epoch + 1, End: w.epoch + 2}
	})
	part("one time", "[a,1] n@2=9 x@2=y; [a,2] n@2=9 x@2=y; [b,-2]", func(asked rangeAsk) {
		asked.MaxVersion, asked.TimeRange = 0, &ots.TimeRange{Specific: w.epoch + 2}
	})
	part("a filter", "[b,-2] m@1=-2", func(asked rangeAsk) { asked.Filter = column("m", ots.CT_LESS_THAN, 0, true) })
	part("a combined filter", "[a,1] n@2=9 n@1=1 x@2=y; [a,2] n@2=9 n@1=2 x@2=y", func(asked rangeAsk) {
		asked.Filter = combined(ots.LO_AND, column("x", ots.CT_EQUAL, "y", true), column("n", ots.CT_GREATER_THAN, 8, true))
	})
	part("a page of columns", "[a,1] x@2=y; [a,2] x@2=y; [b,-2]", func(asked rangeAsk) {
		asked.MaxVersion, asked.Filter = 1, &ots.PaginationFilter{Offset: 1, Limit: 5}
	})
	w.step("as a matrix", func() error {
		got, err := w.table.GetRange(&ots.GetRangeRequest{RangeRowQueryCriteria: &ots.RangeRowQueryCriteria{
			TableName: table, StartPrimaryKey: key("a", 1), EndPrimaryKey: key("b", -1), Direction: ots.FORWARD,
			MaxVersion: 1, ColumnsToGet: []string{"n", "x", "m"}, DataBlockType: ots.SimpleRowMatrix}})
		if err != nil {
			return err
		}
		rows := []string{}
		for _, row := range got.Rows { // values have no versions
			shown := showKey(row.PrimaryKey)
			for _, column := range row.Columns {
				shown += " " + column.ColumnName + "=" + value(column.Value)
			}
			rows = append(rows, shown)
		}
		return first(equal("rows", strings.Join(rows, "; "), "[a,1] n=9 x=y; [a,2] n=9 x=y; [b,-2] m=-2"),
			equal("type", got.DataBlockType, ots.SimpleRowMatrix))
	})
	walkLargeRanges(w)
	walkRangeRefusals(w, table)
}

func reversed(rows string) string {
	parts := strings.Split(rows, "; ")
	for left, right := 0, len(parts)-1; left < right; left, right = left+1, right-1 {
		parts[left], parts[right] = parts[right], parts[left]
	}
	return strings.Join(parts, "; ")
}

func walkLargeRanges(w *walk) {
	count := func(table string) (first, total, pages int, err error) {
		for next := key(minimum); next != nil && err == nil; pages++ {
			var page string
			page, next, err = w.scan(table, next, key(maximum), func(asked rangeAsk) { asked.AddColumnToGet("k0") })
			rows := strings.Count(page, "[")
			if total += rows; pages == 0 {
				first = rows
			}
		}
		return first, total, pages, err
	}
	w.step("no more than 5000 rows at once", func() error {
		if err := w.create("many_rows", "i"); err != nil {
			return err
		}
		for from := 0; from < 5010; from += 200 {
			changes := []ots.RowChange{}
			for number := from; number < min(from+200, 5010); number++ {
				changes = append(changes, w.putChange("many_rows", key(number)))
			}
			if _, err := w.batch(false, changes...); err != nil {
				return err
			}
		}
		page, total, pages, err := count("many_rows")
		return first(err, equal("rows", total, 5010), equal("first page", page, 5000), equal("pages", pages, 2))
	})
	w.step("no more than 4 MB at once", func() error {
		err := w.create("large_rows", "i")
		for number := 0; number < 6 && err == nil; number++ {
			err = w.put("large_rows", key(number), c("a", strings.Repeat("x", mebibyte)))
		}
		if err != nil {
			return err
		}
		page, next, err := w.scan("large_rows", key(minimum), key(maximum))
		return first(err, equal("rows", strings.Count(page, "["), 4), equal("next", showKey(next), "[4]"))
	})
}

func walkRangeRefusals(w *walk, table string) {
	refused := func(what, code, text string, from, to *ots.PrimaryKey, fill func(rangeAsk)) {
		w.refused(what, code, text, func() error {
			_, _, err := w.scan(table, from, to, fill)
			return err
		})
	}
	plain := func(rangeAsk) {}
	low, high := key(minimum, minimum), key(maximum, maximum)
	refused("no table", "OTSObjectNotExist", "Requested table does not exist.", low, high,
		func(asked rangeAsk) { asked.TableName = "missing" })
	refused("begin after end", "OTSParameterInvalid", "Begin key must less than end key in FORWARD", high, low, plain)
	refused("begin before end, backward", "OTSParameterInvalid", "Begin key must more than end key in BACKWARD", low, high,
		func(asked rangeAsk) { asked.Direction = ots.BACKWARD })
	refused("a negative limit", "OTSParameterInvalid", "The limit must be greater than 0.", low, high,
		func(asked rangeAsk) { asked.Limit = -1 })
	refused("too few keys", "OTSInvalidPK", "Validate PK size fail. Input: 1, Meta: 2.", key(minimum), high, plain)
	refused("a wrong key type", "OTSInvalidPK", "Validate PK type fail. Input: VT_INTEGER, Meta: VT_STRING.", key(1, minimum), high, plain)
	refused("a time and versions", "OTSParameterInvalid", "Specific tiemstamp and max versions cannot be given at the same time.",
		low, high, func(asked rangeAsk) { asked.TimeRange = &ots.TimeRange{Specific: 1} })
}

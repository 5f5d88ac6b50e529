package main

import (
	"fmt"
	"strings"

	ots "github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// keyKinds are the letters a table's key is written with; the columns are called k0, k1, ...
var keyKinds = map[rune]ots.PrimaryKeyType{
	's': ots.PrimaryKeyType_STRING, 'i': ots.PrimaryKeyType_INTEGER, 'b': ots.PrimaryKeyType_BINARY,
	'a': ots.PrimaryKeyType_INTEGER, // chosen by the service
}

// marker is a key value that is no value.
type marker ots.PrimaryKeyOption

const (
	minimum = marker(ots.MIN)
	maximum = marker(ots.MAX)
	chosen  = marker(ots.AUTO_INCREMENT)
)

// cell is an attribute: without a version the service's time.
type cell struct {
	name    string
	value   interface{}
	version int64 // after the walk's epoch, 0 for none
}

func c(name string, value interface{}) cell { return cell{name: name, value: value} }

func v(name string, value interface{}, version int64) cell { return cell{name, value, version} }

// tableRequest is a table of the given key, with three versions per column.
func tableRequest(name, kinds string) *ots.CreateTableRequest {
	meta := &ots.TableMeta{TableName: name}
	for index, letter := range kinds {
		column := fmt.Sprintf("k%d", index)
		if letter == 'a' {
			meta.AddPrimaryKeyColumnOption(column, keyKinds[letter], ots.AUTO_INCREMENT)
		} else {
			meta.AddPrimaryKeyColumn(column, keyKinds[letter])
		}
	}
	return &ots.CreateTableRequest{
		TableMeta: meta, TableOption: ots.NewTableOption(-1, 3), ReservedThroughput: &ots.ReservedThroughput{},
	}
}

func (w *walk) create(name, kinds string, changes ...func(*ots.CreateTableRequest)) error {
	request := tableRequest(name, kinds)
	for _, change := range changes {
		change(request)
	}
	return only(w.table.CreateTable(request))
}

func withStream(request *ots.CreateTableRequest) {
	request.StreamSpec = &ots.StreamSpecification{EnableStream: true, ExpirationTime: 24}
}

func key(values ...interface{}) *ots.PrimaryKey {
	built := &ots.PrimaryKey{}
	for index, value := range values {
		name := fmt.Sprintf("k%d", index)
		switch known := value.(type) {
		case int:
			built.AddPrimaryKeyColumn(name, int64(known))
		case marker:
			built.PrimaryKeys = append(built.PrimaryKeys,
				&ots.PrimaryKeyColumn{ColumnName: name, PrimaryKeyOption: ots.PrimaryKeyOption(known)})
		default:
			built.AddPrimaryKeyColumn(name, value)
		}
	}
	return built
}

func wide(value interface{}) interface{} {
	if number, ok := value.(int); ok {
		return int64(number)
	}
	return value
}

func (w *walk) putChange(table string, at *ots.PrimaryKey, cells ...cell) *ots.PutRowChange {
	change := &ots.PutRowChange{TableName: table, PrimaryKey: at}
	change.SetCondition(ots.RowExistenceExpectation_IGNORE)
	for _, one := range cells {
		if one.version != 0 {
			change.AddColumnWithTimestamp(one.name, wide(one.value), w.epoch+one.version)
		} else {
			change.AddColumn(one.name, wide(one.value))
		}
	}
	return change
}

func (w *walk) put(table string, at *ots.PrimaryKey, cells ...cell) error {
	return only(w.table.PutRow(&ots.PutRowRequest{PutRowChange: w.putChange(table, at, cells...)}))
}

func updateChange(table string, at *ots.PrimaryKey) *ots.UpdateRowChange {
	change := &ots.UpdateRowChange{TableName: table, PrimaryKey: at}
	change.SetCondition(ots.RowExistenceExpectation_IGNORE)
	return change
}

func (w *walk) update(table string, at *ots.PrimaryKey, fill func(*ots.UpdateRowChange)) error {
	change := updateChange(table, at)
	fill(change)
	return only(w.table.UpdateRow(&ots.UpdateRowRequest{UpdateRowChange: change}))
}

func deleteChange(table string, at *ots.PrimaryKey) *ots.DeleteRowChange {
	change := &ots.DeleteRowChange{TableName: table, PrimaryKey: at}
	change.SetCondition(ots.RowExistenceExpectation_IGNORE)
	return change
}

func (w *walk) delete(table string, at *ots.PrimaryKey) error {
	return only(w.table.DeleteRow(&ots.DeleteRowRequest{DeleteRowChange: deleteChange(table, at)}))
}

// get reads one row with all its versions and shows it; fill may ask for less.
func (w *walk) get(table string, at *ots.PrimaryKey, fill ...func(*ots.SingleRowQueryCriteria)) (string, error) {
	criteria := &ots.SingleRowQueryCriteria{TableName: table, PrimaryKey: at, MaxVersion: 10}
	for _, one := range fill {
		one(criteria)
	}
	response, err := w.table.GetRow(&ots.GetRowRequest{SingleRowQueryCriteria: criteria})
	if err != nil {
		return "", err
	}
	return w.show(&response.PrimaryKey, response.Columns), nil
}

// wants reads a row and compares how it shows.
func (w *walk) wants(want, table string, at *ots.PrimaryKey, fill ...func(*ots.SingleRowQueryCriteria)) error {
	got, err := w.get(table, at, fill...)
	if err != nil {
		return err
	}
	return equal("row", got, want)
}

// scan reads one page of a range and shows its rows, and the key at which the next one begins.
func (w *walk) scan(table string, from, to *ots.PrimaryKey, fill ...func(*ots.RangeRowQueryCriteria)) (string, *ots.PrimaryKey, error) {
	criteria := &ots.RangeRowQueryCriteria{
		TableName: table, StartPrimaryKey: from, EndPrimaryKey: to, MaxVersion: 10, Direction: ots.FORWARD,
	}
	for _, one := range fill {
		one(criteria)
	}
	response, err := w.table.GetRange(&ots.GetRangeRequest{RangeRowQueryCriteria: criteria})
	if err != nil {
		return "", nil, err
	}
	rows := make([]string, len(response.Rows))
	for index, row := range response.Rows {
		rows[index] = w.show(row.PrimaryKey, row.Columns)
	}
	return strings.Join(rows, "; "), response.NextStartPrimaryKey, nil
}

// show writes a row as "[key] name@version=value ...", "" when there is none. A version that the service chose is "now".
func (w *walk) show(at *ots.PrimaryKey, columns []*ots.AttributeColumn) string {
	if at == nil || len(at.PrimaryKeys) == 0 {
		return ""
	}
	parts := []string{showKey(at)}
	for _, column := range columns {
		parts = append(parts, fmt.Sprintf("%s@%s=%s", column.ColumnName, w.version(column.Timestamp), value(column.Value)))
	}
	return strings.Join(parts, " ")
}

func showKey(at *ots.PrimaryKey) string {
	values := make([]string, len(at.PrimaryKeys))
	for index, column := range at.PrimaryKeys {
		values[index] = value(column.Value)
	}
	return "[" + strings.Join(values, ",") + "]"
}

func (w *walk) version(timestamp int64) string {
	if age := timestamp - w.epoch; age >= 3_000_000 {
		return "now"
	} else {
		return fmt.Sprint(age)
	}
}

func value(of interface{}) string {
	if bytes, ok := of.([]byte); ok {
		return fmt.Sprintf("%x", bytes)
	}
	return fmt.Sprint(of)
}

// column builds a filter or condition on one column; a row without it fails when strict.
func column(name string, comparator ots.ComparatorType, with interface{}, strict bool) *ots.SingleColumnCondition {
	condition := ots.NewSingleColumnCondition(name, comparator, wide(with))
	condition.FilterIfMissing, condition.LatestVersionOnly = strict, true
	return condition
}

func combined(operator ots.LogicalOperator, filters ...ots.ColumnFilter) *ots.CompositeColumnValueFilter {
	return &ots.CompositeColumnValueFilter{Operator: operator, Filters: filters}
}

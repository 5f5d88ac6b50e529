package main

import (
	"bytes"
	"encoding/json"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
)

// document is a record in the JSON form of docs/sinks.md, with what the SDK reports of it.
type document struct {
	Action   string                 `json:"action"`
	Channel  string                 `json:"channel"`
	Sequence *[3]int64              `json:"sequence"`
	Key      map[string]interface{} `json:"key"`
	Columns  []writtenCell          `json:"columns"`
}

type writtenCell struct {
	Name    string      `json:"name"`
	Op      string      `json:"op"`
	Value   interface{} `json:"value,omitempty"`
	Version *int64      `json:"version,omitempty"`
}

// binaryValue is what JSON does not have; of doubles it has all that the service takes.
type binaryValue struct {
	Base64 []byte `json:"base64"`
}

var actions = map[tunnel.ActionType]string{tunnel.AT_Put: "PUT", tunnel.AT_Update: "UPDATE", tunnel.AT_Delete: "DELETE"}

var operations = map[tunnel.RecordColumnType]string{
	tunnel.RCT_Put:               "PUT",
	tunnel.RCT_DeleteOneVersion:  "DELETE_ONE_VERSION",
	tunnel.RCT_DeleteAllVersions: "DELETE_ALL_VERSIONS",
}

func documentOf(channel string, record *tunnel.Record) *document {
	found := &document{
		Action:  actions[record.Type],
		Channel: channel,
		Key:     make(map[string]interface{}, len(record.PrimaryKey.PrimaryKeys)),
		Columns: make([]writtenCell, 0, len(record.Columns)),
	}
	if sequence := record.SequenceInfo; sequence != nil {
		found.Sequence = &[3]int64{int64(sequence.Epoch), sequence.Timestamp, int64(sequence.RowIndex)}
	}
	for _, column := range record.PrimaryKey.PrimaryKeys {
		found.Key[column.ColumnName] = plain(column.Value)
	}
	for _, column := range record.Columns {
		value := plain(column.Value)
		found.Columns = append(found.Columns, writtenCell{*column.Name, operations[column.Type], value, column.Timestamp})
	}
	return found
}

func plain(value interface{}) interface{} {
	if binary, ok := value.([]byte); ok {
		return binaryValue{binary}
	}
	return value
}

// encoder writes documents on one line each.
func encoder(to *bytes.Buffer) *json.Encoder {
	found := json.NewEncoder(to)
	found.SetEscapeHTML(false)
	return found
}

// compact is a document as text, without the end of the line that an encoder writes.
func compact(value interface{}) ([]byte, error) {
	var text bytes.Buffer
	if err := encoder(&text).Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

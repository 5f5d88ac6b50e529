package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafkaOutlet produces a message per record with franz-go, whose producer is idempotent and has acks=all.
type kafkaOutlet struct {
	client *kgo.Client
	from   origin
}

// openKafka takes a place such as 127.0.0.1:9092/topic.
func openKafka(place string, from origin) (*kafkaOutlet, error) {
	broker, topic, _ := strings.Cut(place, "/")
	client, err := kgo.NewClient(
		kgo.SeedBrokers(broker),
		kgo.DefaultProduceTopic(topic),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), // our worker's default
		kgo.ProducerLinger(0),                              // the callback waits for every message, and gives them all at once
	)
	return &kafkaOutlet{client, from}, err
}

func (k *kafkaOutlet) write(channel string, records []*tunnel.Record) error {
	messages := make([]*kgo.Record, 0, len(records))
	for _, record := range records {
		message, err := k.message(channel, record)
		if err != nil {
			return err
		}
		messages = append(messages, message)
	}
	return k.client.ProduceSync(context.Background(), messages...).FirstErr()
}

func (k *kafkaOutlet) message(channel string, record *tunnel.Record) (*kgo.Record, error) {
	value, err := compact(documentOf(channel, record))
	if err != nil {
		return nil, err
	}
	values := make([]interface{}, 0, len(record.PrimaryKey.PrimaryKeys))
	for _, column := range record.PrimaryKey.PrimaryKeys {
		values = append(values, plain(column.Value))
	}
	key, err := compact(values)
	if err != nil {
		return nil, err
	}
	return &kgo.Record{Key: key, Value: value, Headers: k.headers(record)}, nil
}

func (k *kafkaOutlet) headers(record *tunnel.Record) []kgo.RecordHeader {
	kind := "BaseData"
	if record.SequenceInfo != nil {
		kind = "Stream"
	}
	found := []kgo.RecordHeader{
		{Key: "content-type", Value: []byte("application/json")},
		{Key: "ots-instance", Value: []byte(k.from.instance)},
		{Key: "ots-table", Value: []byte(k.from.table)},
		{Key: "ots-tunnel", Value: []byte(k.from.tunnel)},
		{Key: "ots-channel-type", Value: []byte(kind)},
		{Key: "ots-action", Value: []byte(actions[record.Type])},
	}
	if sequence := record.SequenceInfo; sequence != nil {
		found = append(found, kgo.RecordHeader{Key: "ots-sequence", Value: []byte(dotted(sequence))})
	}
	return found
}

func dotted(sequence *tunnel.SequenceInfo) string {
	return fmt.Sprintf("%d.%d.%d", sequence.Epoch, sequence.Timestamp, sequence.RowIndex)
}

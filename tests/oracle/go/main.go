// Command goworker is the vendor's unmodified Go tunnel worker with three callbacks:
// print (a JSON line per batch), count (count and forget) and copy (write the rows to another table).
// It ends after -rows records or on SIGTERM and prints one JSON line with rows and CPU seconds.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
	"go.uber.org/zap"
)

var (
	endpoint  = flag.String("endpoint", "", "instance endpoint")
	instance  = flag.String("instance", "", "instance name")
	keyID     = flag.String("key-id", "", "AccessKey id of the emulator")
	keySecret = flag.String("key-secret", "", "AccessKey secret of the emulator")
	tunnelID  = flag.String("tunnel", "", "tunnel id")
	mode      = flag.String("mode", "print", "print, count or copy")
	table     = flag.String("table", "", "destination table of copy")
	rows      = flag.Int64("rows", 0, "end after so many records, 0 means on SIGTERM")
	interval  = flag.Duration("heartbeat", 5*time.Second, "heartbeat interval")
	timeout   = flag.Duration("timeout", 15*time.Second, "heartbeat timeout")
)

type entry struct {
	Action    string                 `json:"action"`
	Key       []interface{}          `json:"key"`
	Timestamp int64                  `json:"timestamp"`
	RowIndex  int32                  `json:"rowIndex"`
	Columns   map[string]interface{} `json:"columns"`
}

type batch struct {
	Client  string  `json:"client"`
	Channel string  `json:"channel"`
	Records []entry `json:"records"`
}

type consumer struct {
	seen atomic.Int64
	once sync.Once
	done chan struct{}
	out  *bufio.Writer
	lock sync.Mutex
	dst  *tablestore.TableStoreClient
}

func main() {
	flag.Parse()
	log.SetOutput(os.Stderr)
	c := &consumer{done: make(chan struct{}), out: bufio.NewWriter(os.Stdout)}
	c.dst = tablestore.NewClient(*endpoint, *instance, *keyID, *keySecret)
	quiet := zap.NewProductionConfig()
	quiet.Level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	quiet.OutputPaths = []string{"stderr"}
	config := &tunnel.TunnelWorkerConfig{
		HeartbeatInterval: *interval,
		HeartbeatTimeout:  *timeout,
		LogConfig:         &quiet,
		LogWriteSyncer:    os.Stderr,
		ProcessorFactory:  &tunnel.SimpleProcessFactory{ProcessFunc: c.process, CpInterval: time.Second},
	}
	client := tunnel.NewTunnelClient(*endpoint, *instance, *keyID, *keySecret)
	daemon := tunnel.NewTunnelDaemon(client, *tunnelID, config)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	failed := make(chan error, 1)
	go func() { failed <- daemon.Run() }()
	begin := time.Now()
	select {
	case <-c.done:
	case <-signals:
	case err := <-failed:
		log.Fatalf("the worker ended: %v", err)
	}
	elapsed, cpu := time.Since(begin).Seconds(), cpuSeconds()
	daemon.Close()
	select { // Run returns once the shutdown call is made
	case <-failed:
	case <-time.After(5 * time.Second):
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	fmt.Fprintf(c.out, "{\"rows\": %d, \"seconds\": %.3f, \"cpuSeconds\": %.3f}\n", c.seen.Load(), elapsed, cpu)
	c.out.Flush()
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func (c *consumer) process(ctx *tunnel.ChannelContext, records []*tunnel.Record) error {
	var err error
	switch *mode {
	case "print":
		err = c.print(ctx, records)
	case "copy":
		err = c.copy(records)
	}
	if err != nil {
		return err
	}
	if seen := c.seen.Add(int64(len(records))); *rows > 0 && seen >= *rows {
		c.once.Do(func() { close(c.done) })
	}
	return nil
}

func (c *consumer) print(ctx *tunnel.ChannelContext, records []*tunnel.Record) error {
	line := batch{Client: ctx.ClientId, Channel: ctx.ChannelId}
	for _, record := range records {
		e := entry{Action: record.Type.String(), Columns: map[string]interface{}{}}
		for _, column := range record.PrimaryKey.PrimaryKeys {
			e.Key = append(e.Key, column.Value)
		}
		if record.SequenceInfo != nil {
			e.Timestamp, e.RowIndex = record.SequenceInfo.Timestamp, record.SequenceInfo.RowIndex
		}
		for _, column := range record.Columns {
			e.Columns[*column.Name] = column.Value
		}
		line.Records = append(line.Records, e)
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.out.Write(text)
	c.out.WriteByte('\n')
	return c.out.Flush()
}

// copy writes puts only, 200 rows a request: what the vendor's sample does.
func (c *consumer) copy(records []*tunnel.Record) error {
	for begin := 0; begin < len(records); begin += 200 {
		end := min(begin+200, len(records))
		request := &tablestore.BatchWriteRowRequest{}
		for _, record := range records[begin:end] {
			request.AddRowChange(put(record))
		}
		response, err := c.dst.BatchWriteRow(request)
		if err != nil {
			return err
		}
		for _, results := range response.TableToRowsResult {
			for _, result := range results {
				if !result.IsSucceed {
					return fmt.Errorf("%s: %s", result.Error.Code, result.Error.Message)
				}
			}
		}
	}
	return nil
}

func put(record *tunnel.Record) *tablestore.PutRowChange {
	key := &tablestore.PrimaryKey{}
	for _, column := range record.PrimaryKey.PrimaryKeys {
		key.AddPrimaryKeyColumn(column.ColumnName, column.Value)
	}
	change := &tablestore.PutRowChange{TableName: *table, PrimaryKey: key}
	for _, column := range record.Columns {
		change.AddColumnWithTimestamp(*column.Name, column.Value, *column.Timestamp)
	}
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	return change
}

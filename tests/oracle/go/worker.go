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

// work is what one worker is asked to do.
type work struct {
	account
	tunnel, table, mode, copyTo, output, to string
	rows, mark                              int64
	duration, delay, interval, timeout      time.Duration
	reconnect, checkpoint, idle             time.Duration
	delayRows                               int
}

func workFrom(arguments []string) *work {
	flags, w := flag.NewFlagSet("worker", flag.ExitOnError), &work{}
	w.register(flags)
	flags.StringVar(&w.tunnel, "tunnel", "", "tunnel id; with -table a tunnel name")
	flags.StringVar(&w.table, "table", "", "table whose tunnel -tunnel names")
	flags.StringVar(&w.mode, "mode", "print", "print, count, undecoded, column, all, latency, copy, lines, kafka or http")
	flags.StringVar(&w.copyTo, "copy-to", "", "destination table of copy")
	flags.StringVar(&w.to, "to", "", "place of lines (a file, default: standard output), kafka (HOST:PORT/TOPIC), http (URL)")
	flags.StringVar(&w.output, "output", "", "file of JSON lines (default: standard output)")
	flags.Int64Var(&w.rows, "rows", 0, "end after this many records, 0 means on SIGTERM")
	flags.Int64Var(&w.mark, "mark", 0, "remember time and CPU after this many records, 0 means never")
	flags.DurationVar(&w.duration, "duration", 0, "end after this time, 0 means on SIGTERM")
	flags.DurationVar(&w.delay, "delay", 0, "how long every batch takes")
	flags.IntVar(&w.delayRows, "delay-rows", 0, "rows of a batch that take a delay each, 0 means all of them one")
	flags.DurationVar(&w.idle, "idle", 0, "longest wait between pages, from 20ms on (default 5s)")
	flags.DurationVar(&w.checkpoint, "checkpoint", time.Second, "checkpoint interval")
	flags.DurationVar(&w.interval, "heartbeat", 5*time.Second, "heartbeat interval")
	flags.DurationVar(&w.timeout, "timeout", 15*time.Second, "heartbeat timeout")
	flags.DurationVar(&w.reconnect, "reconnect", 10*time.Second, "longest wait before a lost client is replaced")
	_ = flags.Parse(arguments) // ExitOnError
	return w
}

// tunnelID looks a tunnel's name up when a table is given.
func (w *work) tunnelID(client tunnel.TunnelClient) string {
	if w.table == "" {
		return w.tunnel
	}
	described, err := client.DescribeTunnel(&tunnel.DescribeTunnelRequest{TableName: w.table, TunnelName: w.tunnel})
	if err != nil {
		log.Fatalf("no tunnel %s of table %s: %v", w.tunnel, w.table, err)
	}
	return described.Tunnel.TunnelId
}

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
	*work
	gathered
	seen   atomic.Int64
	once   sync.Once
	done   chan struct{}
	out    *bufio.Writer
	lock   sync.Mutex
	dst    *tablestore.TableStoreClient
	outlet outlet
}

func runWorker(arguments []string) {
	w := workFrom(arguments)
	out, err := w.summaryFile()
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close()
	outlet, err := outletOf(w)
	if err != nil {
		log.Fatal(err)
	}
	c := &consumer{work: w, done: make(chan struct{}), out: bufio.NewWriter(out), outlet: outlet}
	c.dst = tablestore.NewClientWithConfig(w.endpoint, w.instance, w.keyID, w.keySecret, w.stsToken, nil)
	quiet := zap.NewProductionConfig()
	quiet.Level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	quiet.OutputPaths = []string{"stderr"}
	logger, err := quiet.Build(tunnel.ReplaceLogCore(os.Stderr, quiet))
	if err != nil {
		log.Fatal(err)
	}
	config := &tunnel.TunnelWorkerConfig{
		HeartbeatInterval: w.interval,
		HeartbeatTimeout:  w.timeout,
		BackoffConfig:     &tunnel.ChannelBackoffConfig{MaxDelay: w.idle}, // 0 is the default
		LogConfig:         &quiet,
		LogWriteSyncer:    os.Stderr,
		ProcessorFactory: &tunnel.SimpleProcessFactory{
			ProcessFunc: c.process, CpInterval: w.checkpoint, NeedBinaryRecord: w.mode == "undecoded",
			Logger: logger, // without it: a file in the working directory
		},
	}
	client := tunnel.NewTunnelClientWithToken(w.endpoint, w.instance, w.keyID, w.keySecret, w.stsToken, nil)
	tunnel.DaemonRandomRetryMs = int(w.reconnect.Milliseconds())
	daemon := tunnel.NewTunnelDaemon(client, w.tunnelID(client), config)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	failed := make(chan error, 1)
	go func() { failed <- daemon.Run() }()
	begin := time.Now()
	var late <-chan time.Time // never
	if w.duration > 0 {
		late = time.After(w.duration)
	}
	select {
	case <-c.done:
	case <-late:
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
	fmt.Fprintf(c.out, "{\"rows\": %d, \"seconds\": %.3f, \"cpuSeconds\": %.3f%s}\n", c.seen.Load(), elapsed, cpu, c.text())
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
	c.begin()
	time.Sleep(c.pause(len(records)))
	var err error
	switch c.mode {
	case "print":
		err = c.print(ctx, records)
	case "column":
		c.touchColumn(records)
	case "all":
		c.touchAll(records)
	case "latency":
		err = c.takeLatencies(records)
	case "copy":
		err = c.copy(records)
	case "lines", "kafka", "http":
		if err := c.outlet.write(ctx.ChannelId, records); err != nil {
			log.Fatalf("the worker ended: %v", err) // the SDK would hand the batch over again, without end
		}
	}
	if err != nil {
		return err
	}
	seen := c.seen.Add(int64(ctx.RecordCount))
	c.end(seen, c.mark)
	if c.rows > 0 && seen >= c.rows {
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
			e.Columns[*column.Name] = column.Value // nil when it was deleted
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
			request.AddRowChange(put(c.copyTo, record))
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

func put(table string, record *tunnel.Record) *tablestore.PutRowChange {
	key := &tablestore.PrimaryKey{}
	for _, column := range record.PrimaryKey.PrimaryKeys {
		key.AddPrimaryKeyColumn(column.ColumnName, column.Value)
	}
	change := &tablestore.PutRowChange{TableName: table, PrimaryKey: key}
	for _, column := range record.Columns {
		change.AddColumnWithTimestamp(*column.Name, column.Value, *column.Timestamp)
	}
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	return change
}

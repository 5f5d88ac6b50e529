package main

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
)

// The column that -mode column looks for, and the one in which -mode latency finds when a row was sent (Unix
// microseconds).
const touchedColumn, sentColumn = "amount", "sent"

// gathered is what the callbacks of the modes for measuring leave for the last line.
type gathered struct {
	touched       atomic.Int64
	lock          sync.Mutex
	first         time.Time
	marked, last  point
	sent, delayed []int64
}

// point is how far the callbacks were at a moment: records, seconds since the first one, CPU of the process.
type point struct {
	rows         int64
	seconds, cpu float64
}

func (p point) String() string {
	return fmt.Sprintf("[%d, %.4f, %.4f]", p.rows, p.seconds, p.cpu)
}

func (g *gathered) begin() {
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.first.IsZero() {
		g.first = time.Now()
	}
}

// end remembers how far it is, and how far it was after mark records where that is above 0.
func (g *gathered) end(seen, mark int64) {
	g.lock.Lock()
	defer g.lock.Unlock()
	if seen < g.last.rows {
		return // another channel's callback was quicker to come here
	}
	g.last = point{seen, time.Since(g.first).Seconds(), cpuSeconds()}
	if g.marked.rows == 0 && mark > 0 && seen >= mark {
		g.marked = g.last
	}
}

// pause is the delay of a batch of this many rows.
func (w *work) pause(rows int) time.Duration {
	if w.delayRows == 0 {
		return w.delay
	}
	return w.delay * time.Duration((rows+w.delayRows-1)/w.delayRows)
}

// touchColumn reads one column of every record.
func (g *gathered) touchColumn(records []*tunnel.Record) {
	touched := int64(0)
	for _, record := range records {
		for _, column := range record.Columns {
			if *column.Name == touchedColumn {
				if column.Value != nil {
					touched++
				}
				break
			}
		}
	}
	g.touched.Add(touched)
}

// touchAll reads every column of every record.
func (g *gathered) touchAll(records []*tunnel.Record) {
	touched := int64(0)
	for _, record := range records {
		for _, column := range record.Columns {
			if column.Value != nil {
				touched++
			}
		}
	}
	g.touched.Add(touched)
}

// takeLatencies remembers when each record was sent and how many microseconds later it is here.
func (g *gathered) takeLatencies(records []*tunnel.Record) error {
	now := time.Now().UnixMicro()
	g.lock.Lock()
	defer g.lock.Unlock()
	for _, record := range records {
		for _, column := range record.Columns {
			if *column.Name == sentColumn {
				sent, ok := column.Value.(int64)
				if !ok {
					return fmt.Errorf("column %s is a %T", sentColumn, column.Value)
				}
				g.sent = append(g.sent, sent)
				g.delayed = append(g.delayed, now-sent)
			}
		}
	}
	return nil
}

// text is the part of the last line that is about all this.
func (g *gathered) text() string {
	g.lock.Lock()
	defer g.lock.Unlock()
	text := fmt.Sprintf(", \"touched\": %d, \"busySeconds\": %.4f", g.touched.Load(), g.last.seconds)
	if g.marked.rows > 0 {
		text += fmt.Sprintf(", \"marked\": %v, \"last\": %v", g.marked, g.last)
	}
	if g.sent != nil {
		sent, _ := json.Marshal(g.sent)
		delayed, _ := json.Marshal(g.delayed)
		text += fmt.Sprintf(", \"sent\": %s, \"delayed\": %s", sent, delayed)
	}
	return text
}

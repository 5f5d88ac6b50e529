package main

import (
	"fmt"
	"os"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
)

// outlet takes the records of a batch to another place; they are stored there when it returns.
type outlet interface {
	write(channel string, records []*tunnel.Record) error
}

// origin is what documents and messages say about the place where they come from.
type origin struct {
	instance, table, tunnel string
}

// outletOf opens the outlet of a mode, nil where the mode has none.
func outletOf(w *work) (outlet, error) {
	if (w.mode == "kafka" || w.mode == "http") && (w.to == "" || w.table == "") {
		return nil, fmt.Errorf("-mode %s needs -to and -table", w.mode)
	}
	from := origin{w.instance, w.table, w.tunnel}
	switch w.mode {
	case "lines":
		return openLines(w.to)
	case "kafka":
		return openKafka(w.to, from)
	case "http":
		return &httpOutlet{url: w.to, source: fmt.Sprintf("ots://%s/%s", from.instance, from.table)}, nil
	}
	return nil, nil
}

// summaryFile is where print and the last line of every mode go: lines may have standard output for itself.
func (w *work) summaryFile() (*os.File, error) {
	switch {
	case w.output != "":
		return os.Create(w.output)
	case w.mode == "lines":
		return os.Stderr, nil
	}
	return os.Stdout, nil
}

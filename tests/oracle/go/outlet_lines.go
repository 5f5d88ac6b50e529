package main

import (
	"bytes"
	"io"
	"os"
	"sync"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
)

// linesOutlet writes a document per line; the lines of a batch in one call.
type linesOutlet struct {
	to      io.Writer
	lock    sync.Mutex
	buffers sync.Pool
}

func openLines(path string) (*linesOutlet, error) {
	found := &linesOutlet{to: os.Stdout, buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
	if path == "" {
		return found, nil
	}
	file, err := os.Create(path)
	found.to = file
	return found, err
}

func (l *linesOutlet) write(channel string, records []*tunnel.Record) error {
	text := l.buffers.Get().(*bytes.Buffer)
	defer l.buffers.Put(text)
	text.Reset()
	lines := encoder(text)
	for _, record := range records {
		if err := lines.Encode(documentOf(channel, record)); err != nil {
			return err
		}
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	_, err := l.to.Write(text.Bytes())
	return err
}

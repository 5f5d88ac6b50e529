package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
)

// Events of one request, as our worker's delivery.batchMaxRows has them.
const eventsPerRequest = 200

// httpOutlet posts batches of CloudEvents in JSON, one after the other.
type httpOutlet struct {
	url, source string
}

type event struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	DataContentType string    `json:"datacontenttype"`
	Data            *document `json:"data"`
	Time            string    `json:"time,omitempty"`
}

func (h *httpOutlet) write(channel string, records []*tunnel.Record) error {
	for begin := 0; begin < len(records); begin += eventsPerRequest {
		events := make([]event, 0, eventsPerRequest)
		for _, record := range records[begin:min(begin+eventsPerRequest, len(records))] {
			found, err := h.event(channel, record)
			if err != nil {
				return err
			}
			events = append(events, found)
		}
		if err := h.post(events); err != nil {
			return err
		}
	}
	return nil
}

func (h *httpOutlet) event(channel string, record *tunnel.Record) (event, error) {
	data := documentOf(channel, record)
	subject, err := compact(data.Key)
	found := event{
		SpecVersion:     "1.0",
		Source:          h.source,
		Type:            "dev.ots-tunnel.row." + strings.ToLower(data.Action),
		Subject:         string(subject),
		DataContentType: "application/json",
		Data:            data,
	}
	if sequence := record.SequenceInfo; sequence != nil {
		found.ID = channel + ":" + dotted(sequence)
		found.Time = time.UnixMicro(sequence.Timestamp).UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	return found, err
}

func (h *httpOutlet) post(events []event) error {
	body, err := compact(events)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	digest := sha256.Sum256(body)
	request.Header.Set("content-type", "application/cloudevents-batch+json; charset=UTF-8")
	request.Header.Set("webhook-id", "msg_"+hex.EncodeToString(digest[:16]))
	request.Header.Set("webhook-timestamp", strconv.FormatInt(time.Now().Unix(), 10))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s: status %d", h.url, answer.StatusCode)
	}
	return nil
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"reflect"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
)

// stepLimit is far more than any step needs: beyond it, it hangs.
const stepLimit = 10 * time.Second

// walk is one way through the calls. The emulator must be fresh, must know a second instance "second" with the same
// key, and the STS pair "sts-id"/"sts-secret".
type walk struct {
	account
	admin     string
	table     *tablestore.TableStoreClient
	tunnel    *tunnel.TunnelApi
	transport *countingTransport
	section   string
	epoch     int64 // ms; explicit versions are given and shown relative to it
	out       *json.Encoder
}

// countingTransport notes which operations got an answer.
type countingTransport struct {
	lock     sync.Mutex
	answered map[string]int
}

func (t *countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusOK {
		t.lock.Lock()
		t.answered[request.URL.Path]++
		t.lock.Unlock()
	}
	return response, err
}

func runWalk(arguments []string) {
	flags, w := flag.NewFlagSet("walk", flag.ExitOnError), &walk{}
	w.register(flags)
	flags.StringVar(&w.admin, "admin", "", "admin URL of the emulator, for its controls")
	_ = flags.Parse(arguments) // ExitOnError
	w.transport = &countingTransport{answered: map[string]int{}}
	w.table = w.tableClient(w.account)
	w.tunnel = w.tunnelClient(w.account)
	w.epoch = time.Now().UnixMilli() - 3_600_000
	w.out = json.NewEncoder(os.Stdout)
	for _, section := range []struct {
		name string
		run  func(*walk)
	}{
		{"tables", walkTables},
		{"writes", walkWrites},
		{"conditions", walkConditions},
		{"batches", walkBatches},
		{"reads", walkReads},
		{"ranges", walkRanges},
		{"auto-increment", walkAutoIncrement},
		{"transactions", walkTransactions},
		{"streams", walkStreams},
		{"splits", walkSplits},
		{"lifetimes", walkLifetimes},
		{"faults", walkFaults},
		{"tunnels", walkTunnels},
		{"channels", walkChannels},
		{"security", walkSecurity},
		{"out-of-scope", walkOutOfScope},
	} {
		w.section = section.name
		section.run(w)
	}
	calls := []string{}
	for call := range w.transport.answered {
		calls = append(calls, call)
	}
	sort.Strings(calls)
	_ = w.out.Encode(map[string]interface{}{"calls": calls})
}

func (w *walk) tableClient(a account) *tablestore.TableStoreClient {
	config := tablestore.NewDefaultTableStoreConfig()
	config.Transport = w.transport
	return tablestore.NewClientWithConfig(a.endpoint, a.instance, a.keyID, a.keySecret, a.stsToken, config)
}

func (w *walk) tunnelClient(a account) *tunnel.TunnelApi {
	config := &tunnel.TunnelConfig{
		MaxRetryElapsedTime: time.Second, RequestTimeout: stepLimit, Transport: w.transport,
	}
	return tunnel.NewTunnelApiWithToken(a.endpoint, a.instance, a.keyID, a.keySecret, a.stsToken, config)
}

// step runs one step, reports it, and survives its panic (the SDK asserts) and its hanging.
func (w *walk) step(what string, run func() error) {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if trouble := recover(); trouble != nil {
				done <- fmt.Errorf("panic: %v", trouble)
			}
		}()
		done <- run()
	}()
	var err error
	select {
	case err = <-done:
	case <-time.After(stepLimit):
		err = fmt.Errorf("no end within %v", stepLimit)
	}
	line := struct {
		Step   string `json:"step"`
		OK     bool   `json:"ok"`
		Detail string `json:"detail,omitempty"`
	}{Step: w.section + "/" + what, OK: err == nil}
	if err != nil {
		line.Detail = err.Error()
	}
	_ = w.out.Encode(line)
}

// refused is a step that must fail with a code and, where the service's text is known, a part of it.
func (w *walk) refused(what, code, text string, run func() error) {
	w.step(what, func() error { return wantRefusal(run(), code, text) })
}

func wantRefusal(err error, code, text string) error {
	gotCode, gotText, ok := refusalOf(err)
	switch {
	case err == nil:
		return fmt.Errorf("succeeded, wanted %s %q", code, text)
	case !ok:
		return fmt.Errorf("not the service's error but %T: %v", err, err)
	case gotCode != code || !strings.Contains(gotText, text):
		return fmt.Errorf("got %s %q, wanted %s %q", gotCode, gotText, code, text)
	}
	return nil
}

// refusalOf takes the service's error apart; errors the SDK makes up itself are none.
func refusalOf(err error) (code, text string, ok bool) {
	var table *tablestore.OtsError
	var tun *tunnel.TunnelError
	switch {
	case errors.As(err, &table):
		code, text = table.Code, table.Message
		ok = table.RequestId != "" && code != tablestore.OTS_CLIENT_UNKNOWN
	case errors.As(err, &tun):
		code, text = tun.Code, tun.Message
		ok = tun.RequestId != "" && code != tunnel.ErrCodeClientError
	}
	return code, text, ok
}

// only keeps the error of a call whose answer does not matter.
func only[T any](_ T, err error) error { return err }

func equal(what string, got, want interface{}) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s: got %v, wanted %v", what, got, want)
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// until asks again until there is no error; nothing announces what it waits for.
func until(run func() error) error {
	give := time.Now().Add(stepLimit / 2)
	for {
		err := run()
		if err == nil || time.Now().After(give) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// control calls one of the emulator's controls.
func (w *walk) control(name string, document map[string]interface{}) (map[string]interface{}, error) {
	if name != "/faults" { // faults apply to every instance
		document["instance"] = w.instance
	}
	body, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	response, err := http.Post(w.admin+name, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("control %s: %d %s", path.Clean(name), response.StatusCode, text)
	}
	answer := map[string]interface{}{}
	return answer, json.Unmarshal(text, &answer)
}

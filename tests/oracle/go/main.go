// Command goworker holds the vendor's unmodified Go SDK to the emulator.
//
//	goworker worker -endpoint URL -instance NAME -key-id ID -tunnel ID [...]
//	goworker walk   -endpoint URL -admin URL -instance NAME -key-id ID [...]
//
// Both take the AccessKey secret from -key-secret, or from the environment variable OTS_KEY_SECRET when the flag is
// absent, and an STS token from -sts-token.
//
// worker runs the vendor's tunnel worker (TunnelWorkerDaemon) until SIGTERM, -rows records, -duration, or until the
// tunnel is of no use any more (status 1). -tunnel is a tunnel id, or a tunnel name together with -table. With -mode
// print (the default) every delivered batch is one JSON line in -output (default: standard output), flushed before the
// callback returns:
//
//	{"client": "...", "channel": "...", "records": [{"action": "PutRow", "key": ["k1", 7], "timestamp": MICROSECONDS,
//	  "rowIndex": 0, "columns": {"n": 1}}, ...]}
//
// timestamp is 0 for base data; a column that was deleted has the value null. The last line is
// {"rows": N, "seconds": S, "cpuSeconds": C, "touched": T, "busySeconds": B}; B is the time from the first callback to
// the end of the last one. -mode count only counts, undecoded does so with the SDK's NeedBinaryRecord, column and all
// read one column or every column and count them as T, -mode copy writes the rows into the table -copy-to, -mode latency
// adds "sent" and "delayed" to the last line: per record its column "sent", and how many microseconds ago that was.
// -mode lines, kafka and http take the records to -to as the documents of docs/sinks.md: lines to a file or to standard
// output (its last line goes to standard error), kafka to HOST:PORT/TOPIC, http to a URL; the last two need -table.
// -mark=N adds "marked" and "last": [records, seconds since the first callback, CPU seconds] after N records and in the
// end.
// -heartbeat, -timeout (whole seconds on the wire), -checkpoint, -delay (holds every batch back, or with -delay-rows
// each N rows of it), -idle, -reconnect and -duration are Go durations, such as 500ms.
//
// walk makes every call of the SDK against a fresh emulator, on its happy path and in each class of error, and prints
// one JSON line per step: {"step": "section/what", "ok": true, "detail": "..."}, at last {"calls": [...]}, the
// operations that were answered. See walk.go.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
)

// account is whom a command acts for, and where.
type account struct {
	endpoint, instance, keyID, keySecret, stsToken string
}

func (a *account) register(flags *flag.FlagSet) {
	flags.StringVar(&a.endpoint, "endpoint", "", "instance endpoint")
	flags.StringVar(&a.instance, "instance", "", "instance name")
	flags.StringVar(&a.keyID, "key-id", "", "AccessKey id")
	flags.StringVar(&a.keySecret, "key-secret", os.Getenv("OTS_KEY_SECRET"), "AccessKey secret (default $OTS_KEY_SECRET)")
	flags.StringVar(&a.stsToken, "sts-token", "", "STS token that belongs to the AccessKey")
}

func main() {
	log.SetOutput(os.Stderr)
	commands := map[string]func([]string){"worker": runWorker, "walk": runWalk}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: goworker worker|walk FLAGS")
		os.Exit(2)
	}
	commands[os.Args[1]](os.Args[2:])
}

module ots-tunnel.dev/oracle/goworker

go 1.24.0

require (
	github.com/aliyun/aliyun-tablestore-go-sdk v1.7.17
	github.com/golang/protobuf v1.3.2
	github.com/twmb/franz-go v1.20.6
	go.uber.org/zap v1.19.0
)

require (
	github.com/cenkalti/backoff v2.2.1+incompatible // indirect
	github.com/golang/mock v1.3.1 // indirect
	github.com/google/flatbuffers v23.5.26+incompatible // indirect
	github.com/hashicorp/golang-lru v0.5.4 // indirect
	github.com/klauspost/compress v1.18.2 // indirect
	github.com/pierrec/lz4/v4 v4.1.22 // indirect
	github.com/satori/go.uuid v1.2.0 // indirect
	github.com/twmb/franz-go/pkg/kmsg v1.12.0 // indirect
	go.uber.org/atomic v1.9.0 // indirect
	go.uber.org/multierr v1.6.0 // indirect
	gopkg.in/natefinch/lumberjack.v2 v2.0.0 // indirect
)

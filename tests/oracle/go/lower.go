package main

import (
	_ "unsafe" // for linkname

	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tunnel/protocol"
)

// The three calls that the SDK keeps for its worker; lower.s lets them be declared without a body.

//go:linkname connect github.com/aliyun/aliyun-tablestore-go-sdk/tunnel.(*TunnelApi).connect
func connect(api *tunnel.TunnelApi, tunnelID string, timeout int64) (string, error)

//go:linkname heartbeat github.com/aliyun/aliyun-tablestore-go-sdk/tunnel.(*TunnelApi).heartbeat
func heartbeat(
	api *tunnel.TunnelApi, tunnelID, clientID string, channels []*protocol.Channel,
) ([]*protocol.Channel, error)

//go:linkname shutdown github.com/aliyun/aliyun-tablestore-go-sdk/tunnel.(*TunnelApi).shutdown
func shutdown(api *tunnel.TunnelApi, tunnelID, clientID string) error

package system

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// handedOut are the ports of this process: a replica that was killed may come back on its own, which looks unused
// meanwhile.
var handedOut sync.Map

// UnusedAddress returns an address on loopback whose port is below those that the kernel gives to clients: one of these
// is soon taken by a connection of somebody.
func UnusedAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	for range 100 {
		port := 20000 + rand.IntN(12000)
		if _, taken := handedOut.LoadOrStore(port, true); taken {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		listener, err := config.Listen(ctx, "tcp", address)
		if err == nil {
			return address, listener.Close()
		}
	}
	return "", errors.New("find an unused port: every one that was tried is taken")
}

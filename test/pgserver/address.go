package pgserver

import (
	"fmt"
	"net"
)

// OwnAddress returns an IPv4 address of this machine that is not loopback; empty if there is none.
func OwnAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("list own addresses: %w", err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String(), nil
		}
	}
	return "", nil
}

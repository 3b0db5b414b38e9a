// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net"
	"os"
)

// beat tells systemd that the daemon goes round: a look that hangs longer than WatchdogSec has it started anew.
func beat() {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return
	}
	if socket, err := net.Dial("unixgram", address); err == nil {
		_, _ = socket.Write([]byte("READY=1\nWATCHDOG=1"))
		socket.Close()
	}
}

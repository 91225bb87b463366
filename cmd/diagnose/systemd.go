package main

import (
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// systemd speaks to the service manager that started the daemon; without one
// every call does nothing.
type systemd struct{ watchdog time.Duration }

func newSystemd() *systemd {
	// An unreadable setting counts as none.
	d, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		d = 0
	}
	return &systemd{watchdog: d}
}

// interval is how often the main loop comes round: three times in a watchdog
// period.
func (s *systemd) interval() time.Duration {
	if s.watchdog > 0 {
		return max(s.watchdog/3, time.Second)
	}
	return 10 * time.Second
}

// notify ignores errors: without a manager there is nobody to tell, and with
// one that is gone the watchdog decides.
func (s *systemd) notify(state string) { _, _ = daemon.SdNotify(false, state) }

func (s *systemd) ready(status string) { s.notify("READY=1\nSTATUS=" + status) }

func (s *systemd) alive(status string) { s.notify("WATCHDOG=1\nSTATUS=" + status) }

func (s *systemd) status(status string) { s.notify("STATUS=" + status) }

func (s *systemd) stopping() { s.notify("STOPPING=1\nSTATUS=writing checkpoints") }

// reloading carries the monotonic clock that Type=notify-reload asks for.
func (s *systemd) reloading() {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		s.notify("RELOADING=1")
		return
	}
	s.notify(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", ts.Nano()/1000))
}

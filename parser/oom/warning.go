package oom

import (
	"regexp"
	"strconv"
	"strings"
)

var warning = regexp.MustCompile(`(expandable_segments:memorymapping|memoryallocation)failedwithOOMondevice(\d{1,4})` +
	`whiletryingto(?:allocate|map)(\d{1,18})bytes\(free:(\d{1,18}),total:(\d{1,18})\)`)

// ParseWarningW reads the line that PyTorch writes to stderr from 2.13 on each
// time the driver refuses memory (pytorch#180946): the device, the bytes tried,
// and the device's free and total bytes, all exact. mapped marks the form for a
// failed mapping of an expandable segment. The line is no out-of-memory by
// itself: most such attempts succeed after the cache was released. It is worth
// reading where the exception carries no figures.
func ParseWarningW(text string) (device int, tried, free, total int64, mapped, ok bool) {
	// A cheap test first: the line comes by the thousand.
	if !strings.Contains(text, "OOM") {
		return 0, 0, 0, 0, false, false
	}
	m := warning.FindStringSubmatch(squeeze(text))
	if m == nil {
		return 0, 0, 0, 0, false, false
	}
	device, _ = strconv.Atoi(m[2]) // the pattern bounds the digits
	var n [3]int64
	for i := range n {
		n[i], _ = strconv.ParseInt(m[3+i], 10, 64)
	}
	return device, n[0], n[1], n[2], m[1] != "memoryallocation", true
}

#!/usr/bin/env bash
# Time and peak memory of the whole command on large logs, beside ripgrep with
# literals on the same file in the same run. Only the ratio means anything.
#
#   bench/bench.sh [MIB [RUNS]]     default: 1024 and 3
#
# The logs are made in a temporary folder (TMPDIR) and removed. The first run
# of each command warms the page cache and is not counted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mib=${1:-1024}
runs=${2:-3}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$dir/diagnose" ./cmd/diagnose
go build -o "$dir/biglog" ./fixtures/biglog

# best COMMAND...: the shortest of the runs, in seconds.
best() {
	local best= t
	"$@" >/dev/null 2>&1 || true
	for _ in $(seq "$runs"); do
		t=$({ TIMEFORMAT=%R; time "$@" >/dev/null 2>&1 || true; } 2>&1)
		if [ -z "$best" ] || awk "BEGIN {exit !($t < $best)}"; then best=$t; fi
	done
	echo "$best"
}

# peak COMMAND...: the largest resident set, in MiB, as the kernel accounts it.
peak() {
	if [ -x /usr/bin/time ]; then
		/usr/bin/time -o "$dir/peak" -f %M "$@" >/dev/null 2>&1 || true
		tail -n 1 "$dir/peak" | awk '{printf "%.0f", $1 / 1024}'
		return
	fi
	# Without it, look at the process while it runs.
	local most=0 now
	"$@" >/dev/null 2>&1 &
	while kill -0 $! 2>/dev/null; do
		now=$(sed -n 's/^VmHWM: *\([0-9]*\).*/\1/p' "/proc/$!/status" 2>/dev/null || true)
		[ "${now:-0}" -le "$most" ] || most=$now
		sleep 0.01
	done
	wait $! || true
	awk "BEGIN {printf \"%.0f\", $most / 1024}"
}

measure() { # NAME BIGLOG-ARGUMENT...
	local name=$1 ours theirs=- ratio=- size
	shift
	"$dir/biglog" "$dir/log" "$mib" fixtures/vllm-h200/v0240-dsa-32768-0.92.log "$@"
	size=$(stat -c %s "$dir/log")
	ours=$(best "$dir/diagnose" --no-siblings "$dir/log")
	if command -v rg >/dev/null; then
		theirs=$(best rg -c -F -f bench/literals.txt "$dir/log")
		ratio=$(awk "BEGIN {printf \"%.2f\", $ours / ($theirs > 0 ? $theirs : 0.001)}")
	fi
	awk -v n="$name" -v s="$size" -v o="$ours" -v t="$theirs" -v r="$ratio" -v p="$(peak "$dir/diagnose" --no-siblings "$dir/log")" \
		'BEGIN {printf "%-10s %7.0f MiB  diagnose %7.3f s (%5.0f MB/s)  rg %7s s  diagnose/rg %5s  peak %s MiB\n", n, s / 1048576, o, s / 1e6 / (o > 0 ? o : 0.001), t, r, p}'
	rm "$dir/log"
}

command -v rg >/dev/null || echo "no rg: no ratio"
measure info
measure errors --errors

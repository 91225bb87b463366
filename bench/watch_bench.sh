#!/usr/bin/env bash
# What "diagnose watch" costs the host that it runs on.
#
#   bench/watch_bench.sh [IDLE_SECONDS [BACKLOG_MIB]]     default: 60 and 1024
#
# It prints: the processor time of a daemon with 8 quiet files, as a share of
# one core; its peak memory with 8 files, a backlog and lines of 1 MiB; how fast
# the backlog and a growing file are read; and the time from the last line of a
# crash to the recorded incident. The logs are made in a temporary folder
# (TMPDIR) and removed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
idle=${1:-60}
mib=${2:-1024}

dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$dir/diagnose" ./cmd/diagnose
go build -o "$dir/biglog" ./fixtures/biglog
crash=fixtures/vllm-h200/v0240-dsa-32768-0.92.log
mkdir "$dir/logs"

start() {
	"$dir/diagnose" watch --state-dir "$dir/state" --jsonl "$dir/incidents.jsonl" --listen 127.0.0.1:0 "$dir/logs/*.log" >"$dir/out" 2>&1 &
	pid=$!
}
stop() {
	kill "$pid"
	wait "$pid" || true
	pid=
}
# ran: processor time of all threads so far, in nanoseconds.
ran() { cat /proc/"$pid"/task/*/schedstat | awk '{s += $1} END {printf "%.0f", s}'; }
peak() { awk '/^VmHWM/ {printf "%.1f", $2 / 1024}' /proc/"$pid"/status; }
now() { date +%s.%N; }
# until COMMAND...: wait until it succeeds, a hundredth of a second each time.
until_() { while ! "$@"; do sleep 0.01; done; }
said() { grep -qs "$1" "$dir/incidents.jsonl"; }
# shifted N: the crash of another server, with pids of its own and times of now.
shifted() {
	sed -E "s/pid=2476/pid=$((10000 + $1))/g; s/pid=2643/pid=$((20000 + $1))/g; s/^(.* )[0-9]{2}-[0-9]{2} [0-9:]{8} /\1$(date -u '+%m-%d %H:%M:%S') /" "$crash"
}

echo "== idle: 8 quiet files, $idle s"
for i in 1 2 3 4 5 6 7 8; do head -n 81 "$crash" | sed "s/pid=2476/pid=$((100 * i))/; s/pid=2643/pid=$((100 * i + 1))/" >"$dir/logs/$i.log"; done
start
sleep 20 # the first looks, and the quiet that ends what is open
before=$(ran)
sleep "$idle"
awk "BEGIN {printf \"%.3f %% of a core\n\", ($(ran) - $before) / 1e9 / $idle * 100}"
echo "peak memory $(peak) MiB"

echo "== crash line to recorded incident, 5 times"
for i in 1 2 3 4 5; do
	shifted "$i" >>"$dir/logs/$i.log"
	t=$(now)
	until_ said "\"pid\":$((20000 + i))"
	awk "BEGIN {printf \"%.2f s\n\", $(now) - $t}"
done
stop

echo "== backlog: 8 files of together $mib MiB, with lines of 1 MiB"
rm -rf "$dir/state" "$dir/incidents.jsonl" "$dir"/logs/*
for i in 1 2 3 4 5 6 7 8; do head -n 1 "$crash" >"$dir/logs/$i.log"; done
start
sleep 10
stop # with a checkpoint of each file: what comes now is a backlog, no first start
long() { head -c 1048000 /dev/zero | tr '\0' 'x'; echo; }
for i in 1 2 3 4 5 6 7 8; do
	shifted $((100 + i)) >"$dir/crash"
	"$dir/biglog" "$dir/more" $((mib / 8)) "$dir/crash"
	{
		cat "$dir/more"
		for _ in 1 2 3 4; do long; done
		shifted $((200 + i))
	} >>"$dir/logs/$i.log"
done
size=$(du -cb "$dir"/logs/* | tail -n 1 | cut -f 1)
start
t=$(now)
for i in 1 2 3 4 5 6 7 8; do until_ said "\"pid\":$((20200 + i))"; done
awk "BEGIN {printf \"%.0f MB/s, until all 8 crashes are recorded\n\", $size / 1e6 / ($(now) - $t)}"
sleep 5
echo "peak memory $(peak) MiB"

echo "== following: one file that grows by 256 MiB"
shifted 300 >"$dir/crash"
"$dir/biglog" "$dir/more" 256 "$dir/crash"
t=$(now)
cat "$dir/more" >>"$dir/logs/1.log"
until_ said '"pid":20300'
awk "BEGIN {printf \"%.0f MB/s, until the crash at the end is recorded\n\", $(stat -c %s "$dir/more") / 1e6 / ($(now) - $t)}"
echo "peak memory $(peak) MiB"
stop

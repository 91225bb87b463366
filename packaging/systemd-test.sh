#!/usr/bin/env bash
# Runs the packaged service under a real systemd, in a minimal Debian.
#
#   packaging/systemd-test.sh ROOT     ROOT: an empty folder; a system is made in
#                                      it, or one that stands there is used
#
# Needs root, debootstrap, systemd-nspawn and a package mirror, which is taken
# from apt's own settings. Where the kernel refuses to boot the system, that is
# said, and what needs no boot is proven: the unit's words and exposure, the
# installation, and what the program says to a service manager. NO_BOOT=1 takes
# that way at once; NFPM names an nfpm as for build.sh.
#
# The last line is "N passed, M failed, K skipped". The exit status is 0, or 1 if
# anything failed, or 75 if nothing can be done on this machine.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)) && echo "ok      $1"; }
skip() { skipped=$((skipped + 1)) && echo "skipped $1: $2"; }
check() { # NAME COMMAND...: shows what the command printed if it fails
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then
		ok "$name"
		return 0
	fi
	failed=$((failed + 1))
	echo "FAILED  $name"
	tail -n 40 <<<"$out" | cut -c 1-400 | sed 's/^/        /'
	return 1
}
cannot() { echo "0 passed, 0 failed, 1 skipped: $*" && exit 75; }

[ $# = 1 ] || { echo "usage: packaging/systemd-test.sh ROOT" >&2; exit 2; }
root=$1
[ "$(id -u)" = 0 ] || cannot "needs root"
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || cannot "needs Debian's tools on amd64"

work=$(mktemp -d)
nspawn= # pid of systemd-nspawn while the system runs
cleanup() {
	halt
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# ---- the system ----

make_root() {
	[ ! -x "$root/usr/lib/systemd/systemd" ] || return 0
	[ ! -x "$root/usr/bin/dpkg" ] || { echo "systemd-test: $root is a system without systemd; give an empty folder" >&2; exit 2; }
	command -v debootstrap >/dev/null || cannot "no debootstrap"
	local mirror
	. /etc/os-release
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: ${VERSION_CODENAME:-}" 2>/dev/null | head -n 1)
	[ -n "$mirror" ] || cannot "apt names no package mirror"
	debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus "$VERSION_CODENAME" "$root" "$mirror" >"$work/debootstrap" 2>&1 ||
		cannot "debootstrap: $(tail -n 1 "$work/debootstrap")"
}

# clean gives PATH and nothing else of this environment.
clean() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

# inside runs a command in the system, booted or not.
inside() {
	local leader=
	[ -z "$nspawn" ] || leader=$(pgrep -P "$nspawn" | head -n 1)
	if [ -n "$leader" ]; then
		clean nsenter -t "$leader" -m -u -i -n -p -C -- "$@" </dev/null
	else
		clean chroot "$root" "$@" </dev/null
	fi
}

# within SECONDS COMMAND...: it comes true in that time. The last attempt's
# output is shown if not.
within() {
	local end=$((SECONDS + $1)) out=
	shift
	until out=$("$@" 2>&1); do
		[ $SECONDS -lt $end ] || { echo "not in time: $*" && echo "$out" && return 1; }
		sleep 0.3
	done
}

up() { inside systemctl is-system-running 2>/dev/null | grep -qxE 'running|degraded'; }

boot() {
	command -v systemd-nspawn >/dev/null || { why="no systemd-nspawn"; return 1; }
	# A network of its own: nothing of the host's is touched.
	systemd-nspawn -D "$root" --boot --register=no --keep-unit --private-network </dev/null >"$work/boot" 2>&1 &
	nspawn=$!
	within 60 eval 'up || ! kill -0 "$nspawn"' >/dev/null
	if ! up; then
		why="systemd-nspawn: $(tr -d '\r' <"$work/boot" | grep -v '^ *$' | tail -n 1)"
		halt
		return 1
	fi
	# nspawn lays a boot id of its own over the kernel's, in one /proc. A service
	# with a /proc of its own sees the kernel's, and journalctl --follow would
	# look there for another boot's entries. No real host has two.
	if inside umount /proc/sys/kernel/random/boot_id 2>/dev/null; then
		inside systemctl restart systemd-journald
	fi
}

# halt [KILL]: in order, or as a power cut does.
halt() {
	[ -n "$nspawn" ] || return 0
	local i
	if [ -n "${1:-}" ]; then
		kill -KILL "$(pgrep -P "$nspawn" | head -n 1)"
	else
		kill -TERM "$nspawn" 2>/dev/null # nspawn tells its init to halt
	fi
	for i in $(seq 100); do
		kill -0 "$nspawn" 2>/dev/null || break
		sleep 0.2
	done
	kill -KILL "$nspawn" 2>/dev/null
	wait "$nspawn" 2>/dev/null
	nspawn=
}

deb() { # VERSION: builds it and puts it into the system
	ARCHES=amd64 FORMATS=deb packaging/build.sh "$1" || return 1
	mv "dist/diagnose_$1_amd64.deb" "$root/root/"
}

# ---- a server's log ----

fixture=fixtures/vllm-h200/v0240-dsa-32768-0.92.log
ready='Application startup complete.'

# server PID [EXPRESSION]: the log of a server that starts and crashes now, with
# processes of its own; the sed expression changes its flags.
server() {
	sed -E "s/\b[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\b/$(date -u '+%m-%d %H:%M:%S')/g
		s/(pid=|\[)2476\b/\1$1/g; s/(pid=|\[)2643\b/\1$(($1 + 1))/g; ${2:-}" "$fixture"
}
start_of() { sed "/$ready/q"; }
crash_of() { sed "1,/$ready/d"; }

logs=$root/var/log/vllm
configure() { printf '%s\n' "$@" >"$root/etc/diagnose/config.yaml"; }
config=(
	'paths: ["/var/log/vllm/*.log", "/var/lib/docker/containers/*/*-json.log"]'
	'journals: [gpu-server.service]'
	'state_dir: /var/lib/diagnose'
	'jsonl: /var/lib/diagnose/incidents.jsonl'
	'timing: {settle: 2s}'
)
with_receiver=("${config[@]}"
	'notify:'
	'  sinks:'
	'    - name: receiver'
	'      webhook: {url_file: $CREDENTIALS_DIRECTORY/webhook, allow_hosts: [127.0.0.1], allow_http: true}'
)

# ---- what the service shows ----

property() { inside systemctl show diagnose -p "$1" --value; }
active() { [ "$(inside systemctl is-active diagnose)" = active ]; }
journal() { inside journalctl -u diagnose --no-pager -o cat; }
says() { journal | grep -F -- "$1"; } # and no -q: journalctl would die of SIGPIPE
incidents() { inside diagnose incidents; }
# history is what a stop and a start must not change; an open record may close.
history() { incidents | sed 's/, open//' | tr -s ' ' | sort; }
listed() { incidents | grep -E -- "$1"; }
opened() { grep -c '"event":"opened"' "$root/var/lib/private/diagnose/incidents.jsonl"; }
main_pid() { # seen from here
	local p
	for p in $(pgrep -x diagnose); do
		[ "$(awk '/^NSpid/ {print $NF}' "/proc/$p/status")" = "$(property MainPID)" ] &&
			[ "/proc/$p/root" -ef "$root" ] && echo "$p"
	done
}

installs() {
	inside dpkg -i "/root/diagnose_0.0.1_amd64.deb" || return 1
	inside diagnose version | grep '^diagnose 0\.0\.1, ' || return 1
	! inside systemctl is-enabled diagnose # nothing runs that nobody enabled
}

example_config() { inside diagnose check-config /etc/diagnose/config.yaml; }

starts() {
	inside systemctl enable --now diagnose || return 1 # Type=notify: it waits for READY=1
	active && [ "$(property Type)" = notify ] && says 'msg=following'
}

status_text() { property StatusText | grep -E 'following [0-9]+ sources'; }

exposure() { # exits with 1 where it is more than 2.0, and prints what adds to it
	local out
	out=$(inside systemd-analyze security diagnose --no-pager --threshold=20) && return
	grep -E '^✗|Overall' <<<"$out"
	return 1
}

hardened() { # the kernel's word for it, of the running process
	local p
	p=$(main_pid)
	cat "/proc/$p/status"
	grep -qx 'NoNewPrivs:	1' "/proc/$p/status" && grep -qx 'Seccomp:	2' "/proc/$p/status" &&
		grep -qE '^CapEff:	0+$' "/proc/$p/status" && ! grep -qE '^Uid:	0' "/proc/$p/status" &&
		[ "$(ps -o ni= -p "$p" | tr -d ' ')" = 10 ]
}

crash_recorded() {
	mkdir -p "$logs"
	server 4200 >"$work/first"
	start_of <"$work/first" >"$logs/vllm.log"
	# As a service writes it: for the group adm, not for everybody.
	chown root:adm "$logs/vllm.log" && chmod 0640 "$logs/vllm.log"
	within 20 eval 'property StatusText | grep "following 2 sources"' || return 1
	crash_of <"$work/first" >>"$logs/vllm.log"
	within 20 listed ' workspace .*flashmla-sparse-mixed-batch.*/var/log/vllm/vllm\.log'
}

told_in_journal() {
	within 10 says 'msg="incident opened"' && says 'level=ERROR msg="incident opened"' | grep 'class=workspace.*host=node17'
}

shown_in_full() {
	local id
	id=$(incidents | awk '/vllm\.log/ {print $1; exit}')
	inside diagnose incidents "$id" | grep -F -- '--max-num-batched-tokens 16384 --kv-cache-memory-bytes 131425999257'
}

as() { # USER COMMAND...
	local user=$1
	shift
	inside runuser -u "$user" -- "$@" 2>&1
}

# for_the_group: who is in the unit's group sees the history, another user does
# not, and neither does the group while no daemon runs.
for_the_group() {
	local out
	inside useradd -G adm oncall && inside useradd stranger || return 1
	as oncall diagnose incidents | grep -E ' workspace .*/var/log/vllm/vllm\.log' || return 1
	out=$(as stranger diagnose incidents) && return 1
	echo "$out"
	grep -F 'permission denied' <<<"$out" && grep -F 'it is for root and the group adm' <<<"$out" && ! grep -F workspace <<<"$out" || return 1
	! as oncall ls /var/lib/diagnose/ || return 1
	inside systemctl stop diagnose
	out=$(as oncall diagnose incidents) && return 1
	inside systemctl start diagnose || return 1
	echo "$out"
	grep -F 'none answers at /run/diagnose/incidents.sock' <<<"$out" && as oncall diagnose incidents | grep ' workspace '
}

followed_up() { # the server comes back with what was advised
	server 4300 "s/'max_num_batched_tokens': 32768/'max_num_batched_tokens': 16384, 'kv_cache_memory_bytes': 131425999257/" |
		start_of >>"$logs/vllm.log"
	within 20 listed 'restarted with the change' && within 10 says 'event=followup'
}

journal_source() {
	server 4400 >"$root/root/server.log"
	cat >"$root/etc/systemd/system/gpu-server.service" <<-'END'
		[Service]
		Type=oneshot
		ExecStart=/bin/cat /root/server.log
	END
	inside systemctl daemon-reload && inside systemctl start gpu-server || return 1
	within 30 listed 'workspace .*journal:gpu-server\.service' || return 1
	local id
	id=$(incidents | awk '/journal:gpu-server/ {print $1; exit}')
	inside diagnose incidents "$id" --format json | grep '"unit": "gpu-server.service"'
}

reload_takes() { # a new path
	mkdir -p "$root/srv/logs"
	configure "${config[@]/\"\/var\/log/\"/srv/logs/*.log\", \"/var/log}"
	inside systemctl reload diagnose || return 1
	within 10 says 'msg=reloaded paths=3' && active || return 1
	server 4500 >"$root/srv/logs/new.log"
	within 20 listed '/srv/logs/new\.log'
}

reload_refuses() { # a broken one: the old one stays
	local before
	before=$(property MainPID)
	configure 'paths: 7' 'colour: blue'
	inside systemctl reload diagnose
	within 10 says 'the configuration is bad, the old one stays' || return 1
	active && [ "$(property MainPID)" = "$before" ] || return 1
	property StatusText | grep 'configuration refused at .*, the old one is used: /etc/diagnose/config\.yaml:1: .* (and 1 more' || return 1
	server 4600 >"$logs/after-bad-reload.log"
	within 20 listed 'after-bad-reload\.log'
}

bad_start_heals() { # a service that cannot start comes up when its configuration is repaired
	inside systemctl restart diagnose
	within 10 eval '[ "$(property NRestarts)" -gt 0 ]' && says '/etc/diagnose/config.yaml:' || return 1
	configure "${config[@]}"
	within 20 active
}

restart_keeps() { # also an incident that is open yet
	local list count
	server 4650 >"$root/root/server.log" && inside systemctl start gpu-server || return 1
	within 30 eval '[ "$(incidents | grep -c journal:gpu-server)" = 2 ]' || return 1
	list=$(history) count=$(opened)
	inside systemctl restart diagnose && active || return 1
	[ "$(property Result)" = success ] && says 'msg=stopped' || return 1
	sleep 5 # long enough to read the logs again and tell what it knows
	diff <(echo "$list") <(history) && [ "$(opened)" = "$count" ] && told_once || return 1
	# The next crash of that unit is another one.
	server 4660 >"$root/root/server.log" && inside systemctl start gpu-server || return 1
	within 30 eval '[ "$(incidents | grep -c journal:gpu-server)" = 3 ]' && told_once
}

fed() {
	[ "$(property WatchdogUSec)" = 30s ] || return 1
	local before
	before=$(property WatchdogTimestampMonotonic)
	within 25 eval '[ "$(property WatchdogTimestampMonotonic)" -gt '"$before"' ]'
}

watchdog_strikes() { # a process that stands still is replaced, and then tells what happened meanwhile
	local before
	before=$(property MainPID)
	kill -STOP "$(main_pid)" || return 1
	server 4700 >"$logs/while-stopped.log"
	within 50 eval '[ "$(property MainPID)" != '"$before"' ] && active' || return 1
	inside journalctl -u diagnose --no-pager -o cat | grep 'Watchdog timeout' && within 20 listed 'while-stopped\.log'
}

# peak_of_long_line: a line of 100 MB written in one go, and what it takes.
peak_of_long_line() {
	local p max hwm
	inside systemctl restart diagnose && p=$(main_pid)
	echo 'INFO 01-01 00:00:00 [a.py:1] x' >"$logs/long.log"
	sleep 3
	head -c 100000000 /dev/zero | tr '\0' x >"$work/line" && echo >>"$work/line"
	cat "$work/line" >>"$logs/long.log"
	server 4800 >"$work/long" && cat "$work/long" >>"$logs/long.log"
	within 30 listed '/long\.log' || return 1
	max=$(property MemoryMax) hwm=$(($(awk '/^VmHWM/ {print $2}' "/proc/$p/status") * 1024))
	echo $((hwm / 1000000)) MB of $((max / 1000000)) MB >"$work/peak"
	rm -f "$work/line"
	[ $hwm -lt "$max" ] || { cat "$work/peak" && return 1; }
}

# tells_unreadable: check-config as a user like the service's.
tells_unreadable() {
	install -m 600 /dev/null "$logs/secret.log"
	inside systemd-run --quiet --wait --pipe -p DynamicUser=yes -p SupplementaryGroups='systemd-journal adm' \
		diagnose check-config /etc/diagnose/config.yaml | grep 'cannot be read by this user.*secret\.log: permission denied' || return 1
	# The service shows it, and tells it once.
	within 25 eval 'property StatusText | grep -F " 1 not readable (/var/log/vllm/secret.log: permission denied)"' || return 1
	[ "$(says 'level=WARN msg="log cannot be read" path=/var/log/vllm/secret.log' | wc -l)" = 1 ] || return 1
	server 5200 >>"$logs/secret.log" && inside chgrp adm /var/log/vllm/secret.log && chmod 640 "$logs/secret.log"
	within 20 listed '/secret\.log' && within 15 says 'msg="log can be read now" path=/var/log/vllm/secret.log'
}

# A secret reaches its sink through LoadCredential, and the sink is reached.
credentials() {
	cat >"$root/root/receiver.pl" <<-'END'
		use IO::Socket::INET;
		my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1:9099', Listen => 5, ReuseAddr => 1) or die;
		open(my $out, '>>', '/root/received') or die;
		$out->autoflush(1);
		while (my $c = $s->accept) {
			my $n = 0;
			while (my $l = <$c>) { print $out $l; $n = $1 if $l =~ /^content-length: (\d+)/i; last if $l =~ /^\r?$/ }
			read($c, my $body, $n);
			print $out "$body\n";
			print $c "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
			close $c;
		}
	END
	inside systemd-run --quiet --unit=receiver perl /root/receiver.pl || return 1
	install -d -m 700 "$root/etc/diagnose/credentials"
	install -m 600 <(echo http://127.0.0.1:9099/secret-of-the-hook) "$root/etc/diagnose/credentials/webhook"
	dropin credentials && configure "${with_receiver[@]}" && inside systemctl restart diagnose || return 1
	server 4900 >"$logs/with-sink.log"
	within 30 grep -q 'diagnose/v1' "$root/root/received" || return 1
	grep 'POST /secret-of-the-hook' "$root/root/received" && ! says secret-of-the-hook
}

dropin() { # NAME: installs one as its comment says
	install -D -m 644 "packaging/dropins/$1.conf" "$root/etc/systemd/system/diagnose.service.d/$1.conf" && inside systemctl daemon-reload
}

docker() { # files that only root reads
	local dir=$root/var/lib/docker/containers/0123456789ab
	mkdir -p "$dir" && chmod 710 "${dir%/*}" && chmod 700 "$dir"
	server 5000 | json_file >"$dir/0123456789ab-json.log"
	chmod 640 "$dir/0123456789ab-json.log"
	dropin docker && inside systemctl restart diagnose || return 1
	within 30 listed '0123456789ab-json\.log' || return 1
	# The one capability, and what it does not reach.
	grep -qE '^CapEff:	0+4$' "/proc/$(main_pid)/status" && [ -s "$root/etc/shadow" ] &&
		[ -z "$(nsenter -t "$(main_pid)" -m cat /etc/shadow)" ]
}

# json_file frames lines as Docker's json-file driver does.
json_file() {
	sed -e 's/\\/\\\\/g; s/"/\\"/g; s/\t/\\t/g; s/\x1b/\\u001b/g' -e "s/.*/{\"log\":\"&\\\\n\",\"stream\":\"stderr\",\"time\":\"$(date -u +%Y-%m-%dT%H:%M:%S.000000000Z)\"}/"
}

home() { # below a home of mode 0700 whose owner lets a group pass
	inside groupadd -f vllm
	mkdir -p "$root/home/someone" && inside chgrp vllm /home/someone && chmod 710 "$root/home/someone"
	server 5100 >"$root/home/someone/vllm.log" && inside chgrp vllm /home/someone/vllm.log && chmod 640 "$root/home/someone/vllm.log"
	configure "${config[@]/\"\/var\/log/\"/home/someone/*.log\", \"/var/log}"
	dropin home && inside systemctl restart diagnose && within 30 listed '/home/someone/vllm\.log'
}

power_cut() {
	within 20 active && within 30 listed '/while-off\.log' && listed '/vllm/vllm\.log' && told_once
}

told_once() { # over all lives of the service
	local twice
	twice=$(grep '"event":"opened"' "$root/var/lib/private/diagnose/incidents.jsonl" | grep -oE '"id":"[0-9a-f]{12}"' | sort | uniq -d)
	[ -z "$twice" ] || { echo "opened twice: $twice" && return 1; }
}

upgrade_keeps() {
	local list count
	list=$(history) count=$(opened)
	inside dpkg -i /root/diagnose_0.0.2_amd64.deb || return 1
	within 20 says 'version=0.0.2' && active || return 1
	diff <(echo "$list") <(history) && [ "$(opened)" = "$count" ]
}

removal_keeps() {
	inside dpkg -r diagnose || return 1
	! inside systemctl is-enabled diagnose 2>/dev/null || return 1
	[ ! -e "$root/usr/bin/diagnose" ] && [ -z "$(pgrep -x diagnose | while read -r p; do [ "/proc/$p/root" -ef "$root" ] && echo "$p"; done)" ] || return 1
	[ "$(opened)" -gt 0 ] && told_once && ls "$root/var/lib/private/diagnose"/* && [ -e "$root/etc/diagnose/config.yaml" ]
}

installed_again() { # and it knows what it knew
	local count
	count=$(opened)
	inside dpkg -i /root/diagnose_0.0.2_amd64.deb && inside systemctl enable --now diagnose || return 1
	sleep 5
	listed 'vllm\.log' && [ "$(opened)" = "$count" ]
}

purge_takes_all() {
	inside dpkg -P diagnose
	[ ! -e "$root/var/lib/private/diagnose" ] && [ ! -e "$root/var/lib/diagnose" ] && [ ! -e "$root/usr/lib/systemd/system/diagnose.service" ]
}

under_systemd() {
	check "the package installs and starts nothing by itself" installs || return
	check "the example configuration is sound" example_config
	configure "${config[@]}"
	check "systemctl enable --now: READY" starts || { journal && return; }
	check "STATUS" within 15 status_text
	check "systemd-analyze security: at most 2.0" exposure
	check "the sandbox holds" hardened
	check "a crash in a file of the group adm is recorded" crash_recorded
	check "the journal tells it" told_in_journal
	check "diagnose incidents ID shows the advice" shown_in_full
	check "the next start is compared with the advice" followed_up
	check "a crash in a unit's journal is recorded, with the unit" journal_source
	check "diagnose incidents for the unit's group, and for no other" for_the_group
	check "reload takes a new path" reload_takes
	check "reload with a broken configuration keeps the old one" reload_refuses
	check "a start with a broken configuration heals with it" bad_start_heals
	check "restart keeps the incidents and tells none twice" restart_keeps
	check "the watchdog is fed" fed
	check "the watchdog replaces a process that stands still" watchdog_strikes
	check "a line of 100 MB stays below MemoryMax" peak_of_long_line && sed 's/^/        /' "$work/peak"
	check "an unreadable log is told, and read when it is readable" tells_unreadable
	check "LoadCredential brings a sink its secret" credentials
	check "drop-in for Docker's folder" docker
	check "drop-in for a home" home
	halt KILL
	server 5300 >"$logs/while-off.log" # the end of another server's log: no daemon saw it
	if ! boot; then
		check "the system boots again after a power cut: $why" false
		return
	fi
	check "a power cut loses no incident and tells none twice" power_cut
	check "upgrade keeps the incidents and runs the new version" upgrade_keeps
	check "removal keeps state and configuration" removal_keeps
	check "a new installation goes on where the old one ended" installed_again
	check "purge takes the state" purge_takes_all
}

# ---- without a boot ----

unit_words() {
	sed 's,^ExecStart=/usr/bin/diagnose,ExecStart=/bin/true,' packaging/diagnose.service >"$work/diagnose.service"
	systemd-analyze verify --man=no "$work/diagnose.service"
}

offline_exposure() { systemd-analyze security --offline=yes --threshold=20 --no-pager packaging/diagnose.service; }

installs_in_chroot() { inside dpkg -i /root/diagnose_0.0.1_amd64.deb && example_config; }

# manager plays the service manager to the installed program: a socket for its
# words, a watchdog of three seconds, SIGHUP and SIGTERM.
manager() {
	cat >"$root/root/manager.pl" <<-'END'
		use Socket;
		my ($path, %seen) = '/root/notify';
		unlink $path;
		my $s;
		socket($s, AF_UNIX, SOCK_DGRAM, 0) && bind($s, pack_sockaddr_un($path)) or die "socket: $!";
		my $pid = fork;
		if (!$pid) {
			@ENV{'NOTIFY_SOCKET', 'WATCHDOG_USEC', 'STATE_DIRECTORY'} = ($path, 3000000, '/root/state');
			exec '/usr/bin/diagnose', 'watch', '/root/followed.log' or die;
		}
		sub await {
			my ($word, $end) = (shift, time + 15);
			until ($seen{$word}) {
				local $SIG{ALRM} = sub { kill KILL => $pid; die "no $word within 15 s, only: @{[sort keys %seen]}\n" };
				alarm $end - time + 1;
				recv($s, my $text, 65536, 0);
				alarm 0;
				$seen{$_}++, print "$_\n" for split /\n/, $text;
			}
		}
		await('READY=1');
		await('WATCHDOG=1');
		%seen = ();
		kill HUP => $pid;
		await('RELOADING=1');
		await('READY=1');
		sleep 5; # the crash is recorded after the other ranks' time to write
		kill TERM => $pid;
		await('STOPPING=1');
		waitpid $pid, 0;
		die "ended with $?\n" if $?;
	END
	mkdir -p "$root/root/state" && server 6000 >"$root/root/followed.log"
	inside perl /root/manager.pl && inside diagnose incidents --state-dir /root/state | grep flashmla-sparse-mixed-batch
}

without_boot() {
	skip "the service under a running systemd" "$1"
	if command -v systemd-analyze >/dev/null; then
		check "systemd-analyze verify" unit_words
		check "systemd-analyze security --offline: at most 2.0" offline_exposure
	else
		skip "systemd-analyze" "not here"
	fi
	check "the package installs in a chroot" installs_in_chroot || return
	check "READY, WATCHDOG, RELOADING and STOPPING reach a notify socket" manager
	check "purge takes the state" purge_takes_all
}

make_root
echo node17 >"$root/etc/hostname"
inside dpkg -P diagnose >/dev/null 2>&1 # of a run that was interrupted
rm -rf "$root/var/lib/private/diagnose" "$root/etc/systemd/system/diagnose.service.d" "$root"/var/log/journal/* "$root/root/received" "$logs"
check "the packages are built" eval 'deb 0.0.1 && deb 0.0.2'
if [ -n "${NO_BOOT:-}" ]; then
	without_boot "NO_BOOT is set"
elif boot; then
	under_systemd
else
	without_boot "the system does not boot here: $why"
fi
halt

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]

#!/usr/bin/env bash
# Installs, upgrades, removes and purges the .deb in a minimal Debian.
#
#   packaging/install-test.sh ROOT     ROOT: an empty folder; a system is made in it
#
# Needs root, debootstrap and a package mirror, which is taken from apt's own
# settings. Exit status 75: it cannot be done on this machine, and why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$1

cannot() { echo "$*"; exit 75; }
[ "$(id -u)" = 0 ] || cannot "needs root"
command -v debootstrap >/dev/null || cannot "no debootstrap"
[ "$(dpkg --print-architecture)" = amd64 ] || cannot "needs amd64"
. /etc/os-release
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: ${VERSION_CODENAME:-}" 2>/dev/null | head -n 1)
[ -n "$mirror" ] || cannot "apt names no package mirror"

if [ ! -x "$root/usr/bin/dpkg" ]; then
	debootstrap --variant=minbase "$VERSION_CODENAME" "$root" "$mirror" >"$root.log" 2>&1 ||
		cannot "debootstrap: $(tail -n 1 "$root.log")"
fi

fail() { echo "install-test: $*" >&2; exit 1; }
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
deb() { # VERSION: build it and put it into the root
	ARCHES=amd64 FORMATS=deb packaging/build.sh "$1" >/dev/null
	cp "dist/diagnose_$1_amd64.deb" "$root/tmp/diagnose.deb"
}

# install
deb 0.0.1
inside dpkg -i /tmp/diagnose.deb >/dev/null
inside diagnose version | grep -q '^diagnose 0\.0\.1, ' || fail "the version is not stamped: $(inside diagnose version)"
for f in /usr/lib/systemd/system/diagnose.service /usr/share/man/man1/diagnose.1.gz /usr/share/doc/diagnose/copyright \
	/usr/share/doc/diagnose/NOTICE /usr/share/doc/diagnose/watch.md /usr/share/doc/diagnose/dropins/docker.conf /usr/share/bash-completion/completions/diagnose; do
	# dpkg may be told to leave documentation out; its list tells what it knows.
	inside dpkg -L diagnose | grep -qx "$f" || fail "not in the package: $f"
done
cp fixtures/seed/glm52-8xh200.log "$root/tmp/vllm.log"
status=0
inside diagnose /tmp/vllm.log >"$root/tmp/answer" || status=$?
[ $status = 1 ] && grep -q 'class workspace' "$root/tmp/answer" || fail "the installed program does not answer: status $status"

# upgrade: state and what the administrator put into /etc stay
mkdir -p "$root/var/lib/private/diagnose"
echo state >"$root/var/lib/private/diagnose/kept"
echo mine >"$root/etc/diagnose/own.yaml"
deb 0.0.2
inside dpkg -i /tmp/diagnose.deb >/dev/null
inside diagnose version | grep -q '^diagnose 0\.0\.2, ' || fail "the upgrade left the old program"
grep -q state "$root/var/lib/private/diagnose/kept" || fail "the upgrade took the state"
grep -q mine "$root/etc/diagnose/own.yaml" || fail "the upgrade took the configuration"

# removal keeps both, purge takes the state
inside dpkg -r diagnose >/dev/null
[ ! -e "$root/usr/bin/diagnose" ] || fail "removal left the program"
[ -e "$root/var/lib/private/diagnose/kept" ] || fail "removal took the state"
[ -e "$root/etc/diagnose/own.yaml" ] || fail "removal took the configuration"
inside dpkg -P diagnose >/dev/null 2>&1
[ ! -e "$root/var/lib/private/diagnose" ] || fail "purge left the state"
[ -e "$root/etc/diagnose/own.yaml" ] || fail "purge took a file that is not the package's"
rm -f dist/diagnose_0.0.1_amd64.deb dist/diagnose_0.0.2_amd64.deb
echo "install, upgrade, removal and purge of the .deb: as they should be"

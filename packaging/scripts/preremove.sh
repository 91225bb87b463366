#!/bin/sh
# Before removal. $1 is "remove" or "upgrade" (deb), or the number of versions
# that stay (rpm).
set -e
[ -d /run/systemd/system ] || exit 0
case "$1" in
	remove | 0) systemctl --no-reload disable --now diagnose.service ;;
esac

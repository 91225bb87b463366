#!/bin/sh
# Before removal. $1 is "remove" or "upgrade" (deb), or the number of versions
# that stay (rpm).
set -e
case "$1" in
	remove | 0) ;;
	*) exit 0 ;;
esac
command -v systemctl >/dev/null || exit 0
# In a chroot or an image there is nothing to stop, but a link to take away.
systemctl --no-reload disable diagnose.service
[ ! -d /run/systemd/system ] || systemctl stop diagnose.service

#!/bin/sh
# After unpacking. $1 is "configure" and $2 the old version (deb), or the number
# of installed versions (rpm).
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
# A new version runs at once where the old one ran; nothing is started that the
# administrator has not enabled.
case "$1:$2" in
	configure:?* | [2-9]*:*) systemctl try-restart diagnose.service ;;
esac

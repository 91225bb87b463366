#!/bin/sh
# After removal. The state (incidents, checkpoints, undelivered notices) stays
# for a later installation; only dpkg --purge takes it away.
set -e
if [ "$1" = purge ]; then
	rm -rf /var/lib/private/diagnose /var/lib/diagnose
	rmdir --ignore-fail-on-non-empty /etc/diagnose 2>/dev/null || true
fi
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload

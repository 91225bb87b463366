#!/usr/bin/env bash
# Draws the Slack message about the failure in a log, in headless Chromium.
#
#   docs/slack/render.sh [LOG [PICTURE [WIDTH]]]
#
# Without arguments it writes docs/slack.png from the seed's log. WIDTH is that
# of the window; 375 is a phone. PUSH=1 draws the notification instead.
# CHROMIUM names the browser, DIAGNOSE the program. The fonts are those of the
# Debian packages fonts-lato and fonts-noto-color-emoji.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
log=${1:-$root/fixtures/seed/glm52-8xh200.log}
picture=${2:-$root/docs/slack.png}
width=${3:-680}
browser=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -n "$browser" ] || { echo "render.sh: needs Chromium" >&2; exit 75; }

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
program=${DIAGNOSE:-$tmp/diagnose}
[ -n "${DIAGNOSE:-}" ] || (cd "$root" && go build -buildvcs=false -o "$program" ./cmd/diagnose)
"$program" notify preview "$log" >"$tmp/payload.json"

# In a script element only "</" and "<!" could end the text early.
payload=$(sed 's,<,\\u003c,g' "$tmp/payload.json")
page=$(<"$here/render.html")
printf '%s' "${page/'/*PAYLOAD*/'/"$payload"}" >"$tmp/page.html"

chromium() { # HEIGHT FLAG...
	"$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync \
		--user-data-dir="$tmp/profile" --hide-scrollbars --window-size="$width,$1" "${@:2}" \
		"file://$tmp/page.html${PUSH:+#push}" 2>/dev/null
}

# The page writes its height into its title; then it is drawn once more whole.
height=$(chromium 600 --dump-dom | sed -n 's,.*<title>\([0-9]*\)</title>.*,\1,p')
[ -n "$height" ] || { echo "render.sh: the page was not drawn" >&2; exit 1; }
chromium "$height" --force-device-scale-factor="${SCALE:-1}" --screenshot="$tmp/picture.png" >/dev/null
mv "$tmp/picture.png" "$picture"
echo "$picture: $(stat -c %s "$picture") bytes"

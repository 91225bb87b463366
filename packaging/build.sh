#!/usr/bin/env bash
# Builds the packages into dist/.
#
#   packaging/build.sh [VERSION]     default: the newest in CHANGELOG.md
#
# ARCHES and FORMATS narrow what is built; NFPM names an nfpm to use instead of
# that of the tools module.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:-$(sed -n 's/^## \([0-9][0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)}
[ -n "$version" ] || { echo "build.sh: no version given and none in CHANGELOG.md" >&2; exit 2; }

mkdir -p dist
if [ -z "${NFPM:-}" ]; then
	go build -C tools -o "$PWD/dist/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm
	NFPM=$PWD/dist/nfpm
fi

gzip -9nc packaging/diagnose.1 >dist/diagnose.1.gz
for shell in bash zsh fish; do
	go run ./cmd/diagnose completion "$shell" >"dist/completion.$shell"
done

# The licences of Go and of every linked module ask to go along with a binary.
{
	printf 'The Go programming language\n\n'
	cat "$(go env GOROOT)/LICENSE"
	go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/diagnose | sort -u |
		while read -r path version dir; do
			printf '\n\n==== %s %s\n\n' "$path" "$version"
			cat "$dir"/LICENSE* "$dir"/NOTICE* 2>/dev/null || true
		done
} >dist/third-party-licences.txt

for arch in ${ARCHES:-amd64 arm64}; do
	mkdir -p "dist/$arch"
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath \
		-ldflags "-s -w -X main.stamped=$version" -o "dist/$arch/diagnose" ./cmd/diagnose
	for format in ${FORMATS:-deb rpm}; do
		ARCH=$arch VERSION=$version "$NFPM" package --config packaging/nfpm.yaml --packager "$format" --target dist/
	done
done

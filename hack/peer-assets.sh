#!/usr/bin/env bash
# Builds otpgateway in a folder, with its pages beside it, and installs Debian's Redis where it is missing and that can be done: what
# make bench-peers measures beside PhoneProof.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module=github.com/knadh/otpgateway/v3 version=v3.6.3
folder=${1:?usage: hack/peer-assets.sh FOLDER}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
if ! command -v redis-server >/dev/null && ! install_packages redis-server; then
	echo 'redis-server is not installed: install it, or run make bench-peers as root on Debian.' >&2
	exit 1
fi
if [[ ! -x $folder/otpgateway || ! -d $folder/static ]]; then
	# From the root of no module, so that this one's go.mod stays as it is.
	source=$(cd / && go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	(cd / && GOBIN=$folder CGO_ENABLED=0 go install -trimpath "$module/cmd/otpgateway@$version")
	cp -r --no-preserve=mode "$source/static" "$folder/"
fi

#!/usr/bin/env bash
# Packs programs into an OCI archive: one image, or an index of one for each platform. It takes no root, no daemon and no network.
# The same commit and programs give the same digest, which lands in ARCHIVE.digest: every time in the image is that of the commit.
#
#	hack/image.sh NAME ARCHIVE VERSION OS/ARCH=PROGRAM...
#
# IN_IMAGE is the program's name in the image (phoneproof). MAX_MB is the size in MB that a program may not exceed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh
name=$1 archive=$2 version=$3
shift 3

commit=$(git rev-parse HEAD 2>/dev/null) || commit=unknown
created=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null) || created=1970-01-01T00:00:00Z
labels=(
	"title=PhoneProof"
	"description=Verifies phone numbers over WhatsApp and Telegram, as a Kubernetes operator"
	"source=https://github.com/phoneproof/phoneproof"
	"licenses=Apache-2.0"
	"version=$version"
	"revision=$commit"
	"created=$created"
)
flags=(-name "$name" -out "$archive" -created "$created" -max-mb "${MAX_MB:-47}" -program "${IN_IMAGE:-phoneproof}")
for label in "${labels[@]}"; do
	flags+=(-label "org.opencontainers.image.$label")
done

# Several scripts may run at once, so each replaces the program as a whole.
mkdir -p bin
packer=$(mktemp bin/image-packer.XXXXXX)
trap 'rm -f "$packer"' EXIT
with_progress "building what packs images" env CGO_ENABLED=0 go -C hack/release build -v -trimpath -buildvcs=false -o "$PWD/$packer" ./image
"$packer" "${flags[@]}" "$@"

#!/usr/bin/env bash
# Builds an image from a Dockerfile into an OCI archive, with buildah, podman or docker, whichever is there (or
# IMAGE_BUILDER). The same commit and tool give the same digest: every time in the image is that of the commit.
#
#	hack/image.sh DOCKERFILE CONTEXT PLATFORM NAME ARCHIVE [BUILD_ARG...]
#
# The digest of the image lands in ARCHIVE.digest. MAX_MB is the size in MB, unpacked, that it may not exceed.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
dockerfile=$1 context=$2 platform=$3 name=$4 archive=$5
shift 5

fail() {
	echo "image: $*" >&2
	exit 1
}

# A machine with Docker has the daemon, or has the client alone and then cannot build.
usable() {
	case $1 in
	docker) docker buildx version >/dev/null 2>&1 && docker info >/dev/null 2>&1 ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

choose() {
	local builder
	for builder in buildah podman docker; do
		if usable $builder; then
			echo $builder
			return
		fi
	done
	if install_packages buildah; then
		echo buildah
		return
	fi
	fail 'none of buildah, podman and docker works here; install one of them (Debian, Ubuntu, Fedora: the package buildah)'
}

# Docker's own builder makes OCI archives only where Docker keeps its images in containerd. Elsewhere one in a container
# does, which is removed afterwards.
docker_builder() {
	local builder images
	builder=$(docker buildx inspect) && images=$(docker info --format '{{json .DriverStatus}}') || return 1
	[[ $builder =~ Driver:\ +docker($|[[:space:]]) && $images != *io.containerd.snapshotter* ]] || return 0
	export BUILDX_BUILDER=phoneproof-$$
	trap 'docker buildx rm --force "$BUILDX_BUILDER" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
	docker buildx create --driver docker-container --name "$BUILDX_BUILDER" >/dev/null
}

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
args=(--file "$dockerfile" --platform "$platform" --tag "$name")
for arg in "$@"; do
	args+=(--build-arg "$arg")
done

mkdir -p "$(dirname "$archive")"
rm -f "$archive" "$archive.digest"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Storage of its own, so that nothing is left behind and nothing that lies around gets in.
storage=(--storage-driver vfs --root "$work/root" --runroot "$work/run")

builder=${IMAGE_BUILDER:-$(choose)}
case $builder in
buildah)
	buildah "${storage[@]}" build --isolation chroot --timestamp "$SOURCE_DATE_EPOCH" "${args[@]}" "$context" >"$work/log" 2>&1 &&
		buildah "${storage[@]}" push "$name" "oci-archive:$archive:$name" >>"$work/log" 2>&1
	;;
podman)
	podman "${storage[@]}" build --isolation chroot --timestamp "$SOURCE_DATE_EPOCH" "${args[@]}" "$context" >"$work/log" 2>&1 &&
		podman "${storage[@]}" push "$name" "oci-archive:$archive:$name" >>"$work/log" 2>&1
	;;
docker)
	docker_builder >"$work/log" 2>&1 && docker buildx build --provenance=false --sbom=false "${args[@]}" \
		--output "type=oci,dest=$archive,name=$name,rewrite-timestamp=true" "$context" >>"$work/log" 2>&1
	;;
*) fail "IMAGE_BUILDER=$builder is none of buildah, podman and docker" ;;
esac || { cat "$work/log" >&2; fail "$builder could not build $name for $platform"; }

# containerd knows an image by another annotation than the one that some builders write. The archive itself is packed
# again, to the same bytes each time.
mkdir "$work/oci"
tar -C "$work/oci" -xf "$archive"
sed -i -E 's|"annotations":\{[^}]*\}|"annotations":{"io.containerd.image.name":"'"$name"'","org.opencontainers.image.ref.name":"'"${name##*:}"'"}|' \
	"$work/oci/index.json"
tar -C "$work/oci" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf "$archive" blobs index.json oci-layout

blob() {
	cat "$work/oci/blobs/sha256/${1#sha256:}"
}

digest=$(grep -o 'sha256:[0-9a-f]\{64\}' "$work/oci/index.json" | head -n 1)
bytes=0
for layer in $(blob "$digest" | tr -d '\n' | grep -o '"layers":.*' | grep -o 'sha256:[0-9a-f]\{64\}'); do
	bytes=$((bytes + $(blob "$layer" | gzip -dc | tar -xOf - | wc -c)))
done
printf '%s\n' "$digest" >"$archive.digest"
mb=$(((bytes + 999999) / 1000000))
if ((mb > ${MAX_MB:-1000000})); then
	rm -f "$archive" "$archive.digest"
	fail "$name for $platform is $mb MB, more than the $MAX_MB MB it may be"
fi
echo "image: $archive, $platform, $mb MB, $digest ($builder)"

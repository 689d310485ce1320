#!/usr/bin/env bash
# Builds what the end-to-end tests upgrade from into bin/base: chart and program of the last release, at its commit. With `build`
# also the image is packed for a platform and its name written to bin/base/image; alone it prints the commit.
#
#	hack/upgrade-base.sh                        print the commit
#	hack/upgrade-base.sh build OS/ARCH          build bin/base/{charts,image,image.tar}
#
# RELEASE_BASE names another commit or tag. Without it the base is the newest tag v* before this commit, or before the first
# release the commit in hack/upgrade-base; HEAD there is this one, so that at least the way of an upgrade is tested.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh
out=bin/base

fail() {
	printf 'upgrade-base: %s\n' "$*" >&2
	exit 1
}

# find_base sets commit, and base to what it is called. A shallow clone gets the commits that it lacks; where it cannot, the base is
# this commit, so that at least the way of an upgrade is tested, and a line says so.
find_base() {
	base=${RELEASE_BASE:-$(git describe --tags --abbrev=0 --match='v*' HEAD^ 2>/dev/null || cat hack/upgrade-base)}
	commit=$(git rev-parse --quiet --verify "$base^{commit}") && return
	[[ -z ${RELEASE_BASE:-} && $(git rev-parse --is-shallow-repository 2>/dev/null) == true ]] ||
		fail "$base is no commit of this repository; RELEASE_BASE names another one"
	with_progress 'upgrade-base: fetching the commits that this clone lacks' git fetch --quiet --unshallow --tags || true
	commit=$(git rev-parse --quiet --verify "$base^{commit}") && return
	echo "upgrade-base: $base is not in this clone, which is shallow: the upgrade begins at this commit itself" >&2
	base=$(git rev-parse HEAD) commit=$base
}

# build_base builds in a folder of its own, which is no worktree: the repository keeps no trace of it.
build_base() {
	local platform=$1 os=${1%/*} arch=${1#*/} name date
	name=ghcr.io/phoneproof/phoneproof:base-${commit:0:12}
	[[ ! -e $out/image || $(<$out/image) != "$name" || ! -e $out/image.tar ]] || return 0
	rm -rf $out
	mkdir -p $out/_source # which ./... leaves out: linters run meanwhile
	git archive "$commit" | tar -xf - -C $out/_source
	date=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd "$commit")
	with_progress 'upgrade-base: compiling the last release' make --no-print-directory -C $out/_source build GOOS="$os" GOARCH="$arch" VERSION="$base" COMMIT="$commit" DATE="$date"
	with_progress 'upgrade-base: packing its image' hack/image.sh "$name" $out/image.tar "$base" "$platform=$out/_source/bin/phoneproof-$os-$arch"
	cp -r $out/_source/charts $out/
	rm -rf $out/_source
	echo "$name" >$out/image
}

main() {
	find_base
	case ${1:-} in
	'') echo "$commit" ;;
	build) build_base "$2" ;;
	*) fail 'usage: hack/upgrade-base.sh [build OS/ARCH]' ;;
	esac
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main "$@"

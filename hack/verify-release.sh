#!/usr/bin/env bash
# Builds the release VERSION of this commit twice, each time from a clean clone in a folder of its own, and compares all files byte
# for byte. What differs is named, in archives down to the file. `make verify-release VERSION=v0.1.0` runs it; UNTAGGED=1 as for
# make release. FRESH=1 gives the second build an empty cache of Go, so that nothing comes from the first one: that takes as long
# as compiling everything for six platforms.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[[ -n ${VERSION:-} ]] || { echo 'verify-release: VERSION is missing' >&2; exit 1; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
folders=("$work/one" "$work/another/folder/with a longer name")

# build_in builds the release in a clone of this commit, and leaves it in a folder beside the clone.
build_in() {
	local folder=$1
	git clone --quiet --no-local --no-checkout "$PWD" "$folder"
	git -C "$folder" checkout --quiet --detach "$commit"
	env -C "$folder" make --no-print-directory release SIGN_KEY=
}

# compare_folders fails if any file differs, and names it, and what differs in an archive.
compare_folders() {
	local files=("$1"/*) file other
	[[ -e ${files[0]} ]] || { echo "verify-release: $1 holds no files" >&2; return 1; }
	if diff --brief --recursive "$1" "$2"; then
		echo "${#files[@]} files, equal byte for byte"
		return
	fi
	for file in "${files[@]}"; do
		other=$2/${file##*/}
		if [[ -e $other ]] && ! cmp "$file" "$other"; then
			diff <(list_members "$file") <(list_members "$other") || true
		fi
	done
	return 1
}

# list_members prints an archive's members, each with its mode, owner, time and checksum.
list_members() {
	case $1 in
	*.tar | *.tgz | *.tar.gz)
		# shellcheck disable=SC2016 # tar's shell expands them
		tar --extract --file="$1" --to-command='echo "$TAR_FILENAME $TAR_MODE $TAR_UNAME $TAR_MTIME $(sha256sum)"'
		;;
	*.zip) unzip -Z -lT "$1" && unzip -qv "$1" ;;
	esac
}

commit=$(git rev-parse HEAD)
began=$SECONDS
build_in "${folders[0]}"
first=$((SECONDS - began))
# The second one is built in another time zone and locale and with another umask, none of which may show.
(
	export TZ=Pacific/Chatham LC_ALL=C.UTF-8
	umask 077
	[[ -z ${FRESH:-} ]] || export GOCACHE=$work/cache
	build_in "${folders[1]}"
)
second=$((SECONDS - began - first))
compare_folders "${folders[0]}/bin/release/$VERSION" "${folders[1]}/bin/release/$VERSION"
echo "verify-release: both builds of $VERSION are equal; they took $first and $second s${FRESH:+, the second without a cache}"

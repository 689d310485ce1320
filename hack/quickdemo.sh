#!/usr/bin/env bash
# Builds phoneproof and plays it on this machine alone, with simulated messengers: hack/quickdemo. `make demo` runs it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh

# choose_folder prints the folder for the programs: bin, or one in the user's cache if that cannot be written.
choose_folder() {
	local folder cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/phoneproof
	for folder in bin "$cache"; do
		if mkdir -p "$folder" 2>/dev/null && [[ -w $folder ]]; then
			echo "$folder"
			return
		fi
	done
	echo "demo: neither $PWD/bin nor $cache can be written; set XDG_CACHE_HOME to a folder that can" >&2
	return 1
}

# build builds the two programs, and prints each package that it compiles.
build() {
	export GOFLAGS="${GOFLAGS-} -v"
	make --no-print-directory build BIN="$1" && CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$1/quickdemo" ./hack/quickdemo
}

finish() {
	set +e
	end_groups 5
	rm -rf "$work"
}

main() {
	local bin stay=
	bin=$(choose_folder)
	work=$(mktemp -d)
	trap finish EXIT
	trap 'exit 130' INT TERM HUP
	# In a group of its own, what the build has started ends with this script.
	TMPDIR=$work start_group with_progress 'build phoneproof' build "$bin"
	wait "${groups[0]}" || { echo 'demo: build phoneproof: failed, see above' >&2; exit 1; }
	rm -rf "$work"
	[[ ! -t 1 ]] || stay=-stay
	exec "$bin/quickdemo" -program="$bin/phoneproof" -built="$SECONDS" $stay
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main

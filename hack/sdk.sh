#!/usr/bin/env bash
# Packs the client libraries below sdk, installs each from its packed artefact in an empty folder, and plays the scenarios of test/sdk with
# them. `make sdk` runs it; the last line is the number of tests. Without Node or Python the library of that language is skipped.
#
#	hack/sdk.sh                the above, in bin/sdk
#	hack/sdk.sh pack FOLDER    only packs: an archive of npm, a wheel, and a Go module as the files of a proxy
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh

root=$PWD
work=$root/bin/sdk
module=github.com/phoneproof/phoneproof/sdk/go
version=$(sed -nE 's/^  "version": "(.*)",$/\1/p' sdk/typescript/package.json)
date=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)

# check_versions refuses libraries of several versions.
check_versions() {
	grep -qxF "__version__ = \"$version\"" sdk/python/phoneproof/client.py && grep -qxF "const Version = \"$version\"" sdk/go/*.go &&
		grep -qxF "const version = '$version'" sdk/typescript/src/*.ts && grep -qxF "  \"version\": \"$version\"," sdk/typescript/package-lock.json ||
		{ echo "sdk: the libraries must have one version everywhere: sdk/typescript/package.json has $version" >&2; return 1; }
}

# skip_reason prints why a language is skipped; nothing if it is not.
skip_reason() {
	case $1 in
	typescript)
		command -v npm >/dev/null && node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' ||
			echo 'Node 20 or newer, with npm, is not installed'
		;;
	python)
		python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || echo 'Python 3.11 or newer, which packs it, is not installed'
		;;
	esac
}

# copy_source copies a library into a folder of its own. A Go module needs the text of the licence; the others name it, and stay small.
copy_source() {
	rm -rf "$work/source/$1" && mkdir -p "$work/source" &&
		git ls-files --cached --others --exclude-standard "sdk/$1" | xargs -d '\n' cp --parents -t "$work" &&
		mv "$work/sdk/$1" "$work/source/$1" && rmdir "$work/sdk" && { [[ $1 != go ]] || cp LICENSE "$work/source/$1"; }
}

# pack_LANGUAGE puts the artefact of a language into a folder.
pack_go() {
	copy_source go && rm -rf "$work/proxy" &&
		go run ./hack/sdk -version "v$version" -time "$date" -out "$work/proxy" "$work/source/go" &&
		tar --create --sort=name --mtime="$date" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --directory="$work/proxy" . |
		gzip --no-name >"$1/phoneproof-go-$version.tar.gz"
}

pack_typescript() {
	copy_source typescript && cd "$work/source/typescript" && npm ci --prefer-offline --no-audit --no-fund --ignore-scripts &&
		npm run build && npm test && chmod -R u=rwX,go=rX . && npm pack --ignore-scripts --pack-destination "$1" && cd "$root"
}

pack_python() {
	copy_source python && python3 hack/sdk/wheel.py "$work/source/python" "$1"
}

# install_LANGUAGE installs the artefact of a language in the working directory, with the driver of test/sdk.
install_go() {
	export GODEBUG=goindex=0 # keeps what it knows of a version, which another run has packed anew
	export GOPROXY=file://$work/proxied GONOSUMDB=$module GOFLAGS="${GOFLAGS-} -modcacherw" GOTOOLCHAIN=local GOMODCACHE=$work/modules
	mkdir "$work/proxied" source && tar -xzf "$artefacts"/phoneproof-go-*.tar.gz -C "$work/proxied" &&
		cp "$root"/test/sdk/drivers/go/*.go source && cd source &&
		go mod init driver && go get "$module@v$version" && go build -o ../driver . &&
		cp -R "$(go list -m -f '{{.Dir}}' "$module")" ../module
}

install_typescript() {
	npm install --offline --no-audit --no-fund "$artefacts"/*.tgz && cp "$root/test/sdk/drivers/driver.mjs" .
}

install_python() {
	python3 -m zipfile -e "$artefacts"/*.whl . && cp "$root/test/sdk/drivers/driver.py" .
}

# make_ready packs and installs the library of a language.
make_ready() {
	local language=$1 reason
	reason=$(skip_reason "$language")
	if [[ -n $reason ]]; then
		echo "$reason" >"$work/$language.skipped"
		return
	fi
	with_progress "packing $language" "pack_$language" "$artefacts"
	mkdir "$work/$language"
	(cd "$work/$language" && with_progress "installing $language" "install_$language")
}

if [[ ${1-} == pack ]]; then
	check_versions
	mkdir -p "$2" "$work"
	for language in go typescript python; do
		[[ -z $(skip_reason "$language") ]] || { echo "sdk: cannot pack $language: $(skip_reason "$language")" >&2; exit 1; }
		with_progress "packing $language" "pack_$language" "$(realpath "$2")"
	done
	exit
fi

artefacts=$work/artefacts
rm -rf "$work" && mkdir -p "$artefacts"
check_versions
make --no-print-directory build
for language in go typescript python; do
	make_ready "$language"
done
status=0
# Plays mostly wait: how many run at once, the test decides.
PHONEPROOF_SDK=$work go tool -modfile=hack/tools/test/go.mod gotestsum --format=pkgname --hide-summary=skipped --jsonfile="$work/go.json" -- \
	-count=1 -vet=off -ldflags=-w -parallel=500 -timeout=10m ./test/sdk </dev/null || status=1
print_time 'make sdk' '1 min, warm'
for report in skipped failed testcount; do
	awk -f hack/events.awk -f hack/$report.awk "$work/go.json" || status=1
done
exit $status

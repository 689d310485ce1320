#!/usr/bin/env bash
# Builds a release into bin/release/VERSION: archives of the programs for each platform with an SBOM beside each, one image for
# several architectures as an OCI archive, the chart, install.yaml, the API reference, the client libraries, release notes and SHA256SUMS. Every time in it
# is the commit's and nothing says where it was built, so the same commit and Go give the same bytes. `make release VERSION=v0.1.0`
# runs it.
#
#	VERSION=v0.1.0        the tag of this commit
#	UNTAGGED=1            any commit, with the notes of Unreleased where the version has no section: to try it out
#	SIGN_KEY=FILE         signs SHA256SUMS with an SSH key, whose public half may come from an agent or a security key
#	RELEASE_PLATFORMS=... fewer platforms, to try it out
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

platforms=${RELEASE_PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
image_platforms='linux/amd64 linux/arm64'
repository=ghcr.io/phoneproof/phoneproof
namespace=phoneproof-system
signed_as=phoneproof-release # the namespace of the signature, which keeps one for another purpose from being taken for it
helm=(go tool -modfile=hack/tools/helm/go.mod helm.sh/helm/v4/cmd/helm)

fail() {
	printf 'release: %s\n' "$*" >&2
	exit 1
}

# check_version sets number, the version as the chart and the image have it.
check_version() {
	[[ ${VERSION:-} =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "VERSION is '${VERSION:-}'; it must be like v0.1.0 or v0.2.0-rc.1"
	number=${VERSION#v}
}

# check_checkout refuses to build what is not the tagged commit, and no commit at all.
check_checkout() {
	local changes tagged head
	changes=$(git status --porcelain) || fail 'this is not a git checkout, so there is no commit to take the time from'
	[[ -z $changes ]] || fail "the checkout has changes that are in no commit:"$'\n'"$changes"
	head=$(git rev-parse HEAD)
	if tagged=$(git rev-parse --quiet --verify "refs/tags/$VERSION^{commit}"); then
		[[ $tagged == "$head" ]] || fail "the tag $VERSION is at ${tagged:0:12}, and this checkout at ${head:0:12}: git checkout $VERSION"
	else
		[[ -n ${UNTAGGED:-} ]] || fail "there is no tag $VERSION; make it with git tag, or build without one with UNTAGGED=1"
	fi
	[[ -n ${UNTAGGED:-} ]] || { check_chart && check_libraries; }
}

# check_chart refuses a chart or a config/ of another version: an install from the tag takes them as they are there.
check_chart() {
	grep -qxF "version: $number" charts/phoneproof/Chart.yaml && grep -qxF "appVersion: $number" charts/phoneproof/Chart.yaml ||
		fail "charts/phoneproof/Chart.yaml must have version and appVersion $number"
	grep -qxF "  newTag: $number" config/manager/kustomization.yaml || fail "config/manager/kustomization.yaml must have newTag $number"
}

# check_libraries refuses client libraries of another version; hack/sdk.sh compares them with each other.
check_libraries() {
	grep -qxF "  \"version\": \"$number\"," sdk/typescript/package.json || fail "sdk/typescript/package.json must have version $number"
}

# print_section prints a section of the changelog without its heading and the blank lines around it.
print_section() {
	awk -v name="$1" '
		/^## / { on = index($0, "## [" name "]") == 1; next }
		/^\[[^]]*\]: / { on = 0 }
		on && (started || /[^ ]/) { started = 1; if (/[^ ]/) { printf "%s%s\n", blank, $0; blank = "" } else blank = blank "\n" }
	' CHANGELOG.md
}

# print_notes prints the notes of the version.
print_notes() {
	local notes
	notes=$(print_section "$number")
	[[ -n $notes || -z ${UNTAGGED:-} ]] || notes=$(print_section Unreleased)
	[[ -n $notes ]] || fail "CHANGELOG.md has no section ## [$number] with text; move there what is under Unreleased"
	printf '%s\n' "$notes"
}

# list_programs prints the programs of this commit.
list_programs() {
	echo phoneproof
	[[ ! -d cmd/kubectl-phoneproof ]] || echo kubectl-phoneproof
}

# check_program looks into a program, and runs it where this machine can.
check_program() {
	local program=$1 platform=$2 file=$3 info setting runner=() output
	info=$(go version -m "$file")
	for setting in "GOOS=${platform%/*}" "GOARCH=${platform#*/}" CGO_ENABLED=0 -trimpath=true; do
		grep -qE "^\s+build\s+${setting}$" <<<"$info" || fail "$file was not built with $setting"
	done
	[[ $info != *vcs.* ]] || fail "$file records the checkout that it was built in"
	case $platform in
	"$(go env GOHOSTOS)/$(go env GOHOSTARCH)") ;;
	linux/arm64) runner=("$(command -v qemu-aarch64-static qemu-aarch64 | head -n 1)") ;;
	windows/amd64) runner=("$(command -v wine)") ;;
	*) runner=('') ;;
	esac || true
	if [[ ${#runner[@]} -gt 0 && -z ${runner[*]} ]]; then
		echo "$program $platform: $(stat -c %s "$file") bytes, compiled; this machine cannot run it"
		return
	fi
	if ! output=$("${runner[@]}" "$file" version 2>"$work/stderr"); then
		# Programs of Go need this library, which Wine 8 does not have yet.
		if [[ $platform == windows/* ]] && grep -q 'bcryptprimitives.dll not found' "$work/stderr"; then
			echo "$program $platform: $(stat -c %s "$file") bytes, compiled; this machine's Wine is too old to run it"
			return
		fi
		fail "$program version fails on $platform: $(tail -n 20 "$work/stderr")"
	fi
	[[ $output == *"$VERSION"* ]] || fail "$program version prints '$output' on $platform, without $VERSION"
	"${runner[@]}" "$file" --help >/dev/null || fail "$program --help fails on $platform"
	echo "$program $platform: $(stat -c %s "$file") bytes, runs"
}

# build_programs compiles, checks and packs the programs.
build_programs() {
	local program platform file archive suffix name
	for program in $(list_programs); do
		for platform in $platforms; do
			name=${program}_${number}_${platform/\//_} suffix='' archive=tar.gz
			file=bin/$program-${platform/\//-}
			[[ $platform != windows/* ]] || suffix=.exe archive=zip
			make --no-print-directory build PROGRAM="$program" GOOS="${platform%/*}" GOARCH="${platform#*/}" VERSION="$VERSION"
			check_program "$program" "$platform" "$file"
			"$tool" licenses -out "$work/licenses" "$file"
			"$tool" pack -time "$date" -out "$out/$name.$archive" "$program$suffix=$file" LICENSE README.md THIRD_PARTY_LICENSES="$work/licenses"
			"$tool" sbom -version "$VERSION" -out "$out/$name.cdx.json" "$file"
		done
	done
}

build_image() {
	local platform binaries=()
	for platform in $image_platforms; do
		[[ " $platforms " != *" $platform "* ]] || binaries+=("$platform=bin/phoneproof-${platform/\//-}")
	done
	hack/image.sh "$repository:$number" "$out/phoneproof_${number}_image.tar" "$VERSION" "${binaries[@]}"
}

# build_chart packs the chart, which names the image of this release by its digest, too: a tag may be moved to another image.
build_chart() {
	local digest
	digest=$(<"$out/phoneproof_${number}_image.tar.digest")
	image=$repository:$number@$digest
	cp -R charts/phoneproof "$work/chart"
	sed -i -e "s|^annotations:\$|&\n  phoneproof.dev/image-digest: $digest|" -e "s|image: $repository:.*|image: $image|" "$work/chart/Chart.yaml"
	SOURCE_DATE_EPOCH=$epoch "${helm[@]}" package "$work/chart" --version "$number" --app-version "$number" --destination "$out" >/dev/null
}

# write_manifest renders the chart for kubectl: the namespace first, then the CRDs. Helm does not manage it, so no label says so.
write_manifest() {
	"${helm[@]}" template phoneproof "$out/phoneproof-$number.tgz" --namespace "$namespace" --kube-version 1.32.0 >"$work/rendered.yaml"
	{
		cat <<-YAML
			# PhoneProof $number: kubectl apply --server-side -f install.yaml
			apiVersion: v1
			kind: Namespace
			metadata:
			  name: $namespace
			  labels:
			    pod-security.kubernetes.io/enforce: restricted
		YAML
		order_manifest <"$work/rendered.yaml"
	} >"$out/install.yaml"
	[[ $(grep -cE "(image: |=)$image\$" "$out/install.yaml") == 2 ]] || fail "install.yaml does not name $image twice: for the operator, and for its servers"
}

# order_manifest puts the CRDs of rendered YAML first, and removes the labels of Helm.
order_manifest() {
	awk -v RS='\n---\n' '
		{ sub(/^---\n/, ""); sub(/\n+$/, "") }
		!/[^[:space:]]/ { next }
		/(^|\n)kind: CustomResourceDefinition(\n|$)/ { first = first "---\n" $0 "\n"; next }
		{ rest = rest "---\n" $0 "\n" }
		END { printf "%s%s", first, rest }
	' | sed -e '/^ *app.kubernetes.io\/managed-by: Helm$/d' -e '/^ *helm.sh\/chart: /d'
}

# fill_krew fills the manifest of the plugin index krew: @VERSION@, @NUMBER@, and for each platform @SHA256_linux_amd64@.
fill_krew() {
	local template=hack/krew/phoneproof.yaml.tmpl file platform sum script=(-e "s/@VERSION@/$VERSION/g" -e "s/@NUMBER@/$number/g")
	[[ -f $template && -d cmd/kubectl-phoneproof ]] || return 0
	if [[ -n ${RELEASE_PLATFORMS:-} ]]; then
		echo 'release: no manifest for krew, because it names all platforms'
		return 0
	fi
	for file in "$out"/kubectl-phoneproof_"$number"_*.{tar.gz,zip}; do
		[[ -f $file ]] || continue
		platform=${file##*"_${number}_"} platform=${platform%%.*}
		sum=$(sha256sum "$file")
		script+=(-e "s/@SHA256_${platform}@/${sum%% *}/g")
	done
	sed "${script[@]}" "$template" >"$out/phoneproof.krew.yaml"
	! grep -nE '@[A-Za-z0-9_]+@|\{\{' "$out/phoneproof.krew.yaml" || fail "$template has the places above that nothing fills"
	while read -r file; do
		[[ -f $out/$file ]] || fail "$template leads to $file, which is not among what is released"
	done < <(sed -nE 's/^ *uri: .*\/([^/]+)$/\1/p' "$out/phoneproof.krew.yaml")
}

# sign signs the checksums with the caller's key. Ed25519 gives the same signature each time.
sign() {
	if [[ -z ${SIGN_KEY:-} ]]; then
		echo 'release: not signed, because SIGN_KEY names no key'
		return
	fi
	command -v ssh-keygen >/dev/null || fail 'signing takes ssh-keygen, of OpenSSH'
	rm -f "$out/SHA256SUMS.sig"
	ssh-keygen -q -Y sign -n "$signed_as" -f "$SIGN_KEY" "$out/SHA256SUMS" 2>"$work/sign" || fail "sign with $SIGN_KEY: $(<"$work/sign")"
	echo "release: SHA256SUMS is signed with $SIGN_KEY"
}

main() {
	local began=$SECONDS
	check_version
	check_checkout
	out=$PWD/bin/release/$VERSION
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	print_notes >"$work/notes"
	date=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)
	epoch=$(git log -1 --format=%ct)
	rm -rf "$out"
	mkdir -p "$out"
	cp "$work/notes" "$out/RELEASE_NOTES.md"
	tool=$PWD/bin/release/tool
	CGO_ENABLED=0 go -C hack/release build -trimpath -buildvcs=false -o "$tool" .
	build_programs
	build_image
	build_chart
	write_manifest
	make --no-print-directory api-reference
	cp bin/api-reference.md "$out"
	hack/sdk.sh pack "$out"
	fill_krew
	(cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
	sign
	echo "release: $VERSION of commit $(git rev-parse --short=12 HEAD) with $(go env GOVERSION) in bin/release/$VERSION, $(du -sm "$out" | cut -f 1) MB, $((SECONDS - began)) s"
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || main

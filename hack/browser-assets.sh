#!/usr/bin/env bash
# Installs what the tests in a browser need, where it is missing and that can be done: Debian's Chromium, and axe-core in
# the version of hack/browser/package-lock.json. The tests whose part is missing are skipped, and say so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh

command -v chromium >/dev/null || install_packages chromium ||
	echo "not installed: chromium. The tests that need it are skipped; install it, or run make browser-assets as root on Debian." >&2

axe=bin/browser
[[ -f $axe/node_modules/axe-core/axe.min.js ]] && cmp -s hack/browser/package-lock.json $axe/package-lock.json && exit
if ! command -v npm >/dev/null; then
	echo "not installed: axe-core. accessibility is not tested; install Node.js with npm, and run make browser-assets." >&2
	exit
fi
mkdir -p $axe
cp hack/browser/package.json hack/browser/package-lock.json $axe/
with_progress "installing axe-core" npm ci --prefix $axe --fetch-retries=0 --ignore-scripts --no-audit --no-fund --loglevel=error >&2 || {
	rm -r $axe
	echo "not installed: axe-core, npm failed. accessibility is not tested." >&2
}

#!/usr/bin/env bash
# Installs Debian's Node, Python and curl for the tests of the examples in docs/ and of the demo, where they are missing and that can be done. Without
# them the tests that need them are skipped, and say so.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

missing=()
command -v node >/dev/null || missing+=(nodejs)
command -v python3 >/dev/null || missing+=(python3)
command -v curl >/dev/null || missing+=(curl)
if ((${#missing[@]} == 0)) || install_packages "${missing[@]}"; then
	exit 0
fi
echo "not installed: ${missing[*]}. The tests that need them are skipped; install them, or run make example-assets as root on Debian." >&2

#!/usr/bin/env bash
# Sees to it that a PostgreSQL server is there for the tests: installs Debian's where there is none and that can be done.
# Without one the tests that need it are skipped, and say so.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

missing=()
if ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && ! command -v initdb >/dev/null; then
	missing+=(postgresql)
	if ((EUID == 0)) && [[ ! -e /etc/postgresql-common/createcluster.conf ]]; then
		# No cluster of Debian's own: the tests make theirs.
		mkdir -p /etc/postgresql-common
		echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
	fi
fi
command -v pgbouncer >/dev/null || missing+=(pgbouncer)
if ((${#missing[@]} == 0)) || install_packages "${missing[@]}"; then
	exit 0
fi
echo "not installed: ${missing[*]}. The tests that need them are skipped; install them, or run make postgres-assets as root on Debian." >&2

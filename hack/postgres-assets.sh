#!/usr/bin/env bash
# Sees to it that a PostgreSQL server is there for the tests: installs Debian's where there is none and that can be done.
# Without one the tests that need it are skipped, and say so.
set -euo pipefail

installed() {
	compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null
}

missing=()
installed || missing+=(postgresql)
command -v pgbouncer >/dev/null || missing+=(pgbouncer)
if ((${#missing[@]} == 0)); then
	exit 0
fi

if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
	if ! installed && [[ ! -e /etc/postgresql-common/createcluster.conf ]]; then
		# No cluster of Debian's own: the tests make theirs.
		mkdir -p /etc/postgresql-common
		echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
	fi
	if DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2 ||
		{ apt-get update -q >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2; }; then
		exit 0
	fi
fi
echo "not installed: ${missing[*]}. The tests that need them are skipped; install them, or run make postgres-assets as root on Debian." >&2

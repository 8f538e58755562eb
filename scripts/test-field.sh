#!/usr/bin/env bash
# Runs everything about PostgreSQL on each of its versions here: those of Debian and the one in the
# tests' wheel; among it every suite behind PgBouncer and as roles with the least rights.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$1
shift

unset LEASEQ_TEST_POSTGRES_URL
PATH=$PATH:/usr/sbin command -v pgbouncer >/dev/null || { echo "pgbouncer is not installed"; exit 1; }
status=0
for server in $(compgen -G '/usr/lib/postgresql/*/bin') wheel; do
    printf '\n=== PostgreSQL: %s\n' "$server"
    LEASEQ_TEST_POSTGRES_BIN=$server "$python" -m pytest -n 3 --dist worksteal \
        tests/field tests/integration/*postgres* tests/integration/test_grpc_conformance.py \
        tests/integration/test_end_to_end.py "$@" || status=1
done
exit $status

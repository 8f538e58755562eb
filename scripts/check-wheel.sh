#!/bin/sh
# Install a wheel in an empty environment and use it outside the repository: check-wheel.sh PYTHON WHEEL
set -eu

python=$1
wheel=$PWD/$2
repository=$PWD

empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
unset PYTHONPATH
"$python" -m venv "$empty/venv"
cd "$empty"
pip="venv/bin/python -m pip -qq --disable-pip-version-check"

echo "the plain install"
$pip install "$wheel"
venv/bin/leaseq --help >/dev/null
venv/bin/python -c 'import leaseq'

echo "the install with every extra"
$pip install "$wheel[server,testing]"
venv/bin/python "$repository/scripts/import_everything.py" "$repository"

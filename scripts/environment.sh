#!/bin/sh
# Make a virtual environment, or bring it up to date: environment.sh FOLDER PIP_ARGUMENT...
# PYTHON names the interpreter to use; by default the first on the path that will do.
set -eu

folder=$1
shift
stamp=$folder/.installed
half_made=$folder/.half-made

will_do() {
    "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if will_do "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "no Python 3.11 or newer with the venv module found among: ${PYTHON:-python3 python3.13 python3.12 python3.11}" >&2
    echo "install one (Debian: apt install python3 python3-venv), or name it: make PYTHON=/path/to/python" >&2
    return 1
}

usable() {
    [ ! -e "$half_made" ] &&
        [ "$(cat "$stamp" 2>/dev/null || echo "$PWD/$folder")" = "$PWD/$folder" ] &&
        "$folder/bin/python" -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

if ! usable; then
    python=$(find_python)
    echo "making $folder with $("$python" --version)"
    rm -rf "$folder"
    mkdir "$folder"
    # Only a run that was killed leaves this file: what it left behind cannot be trusted.
    touch "$half_made"
    "$python" -m venv "$folder"
fi

touch "$half_made"
trap 'exit 130' INT TERM
pip="$folder/bin/python -m pip -qq --disable-pip-version-check"
echo "installing into $folder"
if $pip install 'pip>=25.1' && $pip install "$@"; then # --group came with pip 25.1
    rm "$half_made"
    echo "$PWD/$folder" >"$stamp"
else
    rm "$half_made" # pip said no, and had changed nothing: an environment that worked still works
    exit 1
fi

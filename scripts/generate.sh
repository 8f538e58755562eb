#!/bin/sh
# Generate the gRPC code: generate.sh BIN FOLDER PROTO..., where BIN holds python and the plugin.
set -eu

bin=$1
folder=$2
shift 2
package=leaseq/v1

raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT

# Named by their full path, the files cannot collide with another program's queue.proto in the
# process-wide descriptor pool.
"$bin/python" -m grpc_tools.protoc --proto_path=proto \
    --plugin="protoc-gen-mypy_grpc=$bin/protoc-gen-mypy_grpc" \
    --python_out="$raw" --pyi_out="$raw" --grpc_python_out="$raw" --mypy_grpc_out="quiet:$raw" "$@"

mkdir -p "$folder"
rm -f "$folder"/*_pb2.py "$folder"/*_pb2.pyi "$folder"/*_pb2_grpc.py "$folder"/*_pb2_grpc.pyi
for file in "$raw/$package"/*.py "$raw/$package"/*.pyi; do
    # protoc imports from the .proto package; inside src every import is relative.
    sed -E 's/^from leaseq\.v1 import /from . import /' "$file" >"$folder/$(basename "$file")"
done
if grep -nE '^ *(from|import) leaseq' "$folder"/*_pb2*; then
    echo "these imports were not made relative" >&2
    exit 1
fi

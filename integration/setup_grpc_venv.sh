#!/bin/sh
# Makes a virtual environment with gRPC's own Python client, once: an admin client that shares no code with ours.
#   setup_grpc_venv.sh FOLDER
set -eu
folder=$1
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9  # several tests may want it at once
if [ -x "$folder/bin/python" ] && "$folder/bin/python" -c "import grpc_reflection" 2>/dev/null; then exit 0; fi
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check grpcio grpcio-reflection
"$folder/bin/python" -c "import grpc_reflection"

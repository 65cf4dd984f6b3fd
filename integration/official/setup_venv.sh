#!/bin/sh
# Makes a virtual environment with one version of the official Python client, once.
#   setup_venv.sh FOLDER VERSION
set -eu
folder=$1
version=$2
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9  # several tests may want it at once
if [ -x "$folder/bin/python" ] && "$folder/bin/python" -c "import apache_iggy" 2>/dev/null; then exit 0; fi
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check "apache-iggy==$version"
"$folder/bin/python" -c "import apache_iggy"

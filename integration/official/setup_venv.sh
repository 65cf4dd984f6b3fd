#!/bin/sh
# Makes a virtual environment with one version of the official Python client, once.
#   setup_venv.sh FOLDER VERSION
set -eu
folder=$1
version=$2
if [ -x "$folder/bin/python" ] && "$folder/bin/python" -c "import apache_iggy" 2>/dev/null; then exit 0; fi
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check "apache-iggy==$version"
"$folder/bin/python" -c "import apache_iggy"

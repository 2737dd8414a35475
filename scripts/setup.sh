#!/usr/bin/env bash
# Makes the environment .venv and fills it with exactly the versions of requirements.lock, and with this package, editable.
set -euo pipefail
cd "$(dirname "$0")/.."

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PYTHONUNBUFFERED=1

interpreter=$(scripts/prerequisites.sh python)
if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    echo "Creating .venv with $("$interpreter" --version)"
    "$interpreter" -m venv --clear .venv
fi

echo "Installing $(grep -c == requirements.lock) packages from requirements.lock; PySpark is large, so the first time takes a while"
.venv/bin/python -m pip install --progress-bar off -r requirements.lock | sed -n 's/^Collecting \([^ ]*\).*/  \1/p'
.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
echo "Ready: .venv"

#!/usr/bin/env bash
# What Headwater needs of the machine: Python 3.11 or newer that can make environments, and Java 17 or newer for Spark.
#
#   prerequisites.sh python   prints the interpreter to use
#   prerequisites.sh java     prints nothing if all is well
#
# What is missing is installed with apt where that is possible without asking; else one line says what to install.
set -euo pipefail

fail() {
    echo "headwater: $*" >&2
    exit 1
}

# True if apt can install without a person at the keyboard.
can_install() {
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Installs the first of the packages that there is.
install_first() {
    as_root apt-get update -qq >/dev/null || true
    local package
    for package in "$@"; do
        # Not a pipe into grep -q: that closes it early, and pipefail then takes the answer for a failure.
        if [[ $(apt-cache policy "$package" 2>/dev/null) == *"Candidate: "[0-9]* ]]; then
            echo "Installing $package with apt" >&2
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null
            return
        fi
    done
    return 1
}

check_python() {
    local candidate found=""
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            found=$candidate
            break
        fi
    done
    [ -n "$found" ] || fail "needs Python 3.11 or newer: install it, or name it with PYTHON=…"
    if ! "$found" -c 'import ensurepip, venv' 2>/dev/null; then
        local version package
        version=$("$found" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        package="python$version-venv"
        can_install || fail "needs Python's venv module: sudo apt-get install $package"
        install_first "$package" python3-venv || fail "needs Python's venv module, and apt could not install $package"
    fi
    echo "$found"
}

# The major version of the Java that Spark would start: JAVA_HOME's, else the one on the PATH; empty if there is none.
java_version() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    "$java" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1 || true
}

check_java() {
    local version
    version=$(java_version)
    [ "${version:-0}" -lt 17 ] || return 0
    if [ -n "${JAVA_HOME:-}" ]; then
        fail "needs Java 17 or newer, but JAVA_HOME has ${version:-none}: unset it, or let it name a newer one"
    fi
    can_install || fail "needs Java 17 or newer for Spark: sudo apt-get install openjdk-17-jre-headless (or default-jre-headless)"
    install_first openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless ||
        fail "needs Java 17 or newer for Spark, and apt could not install it: install one and put it on the PATH"
    version=$(java_version)
    [ "${version:-0}" -ge 17 ] || fail "needs Java 17 or newer, but the java on the PATH is ${version:-missing}: set JAVA_HOME"
}

case "${1:-}" in
python) check_python ;;
java) check_java ;;
*) fail "usage: prerequisites.sh python|java" ;;
esac

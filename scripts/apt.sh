#!/bin/sh
# Install Debian packages if this machine lets us: scripts/apt.sh PACKAGE...
# Permitted means: apt-get is there and we are root (or sudo asks no password), and ROTA_APT is not "no".
set -eu
if [ "${ROTA_APT:-yes}" = no ]; then
    echo "not installing $* (ROTA_APT=no)." >&2
    exit 1
fi
command -v apt-get >/dev/null 2>&1 || { echo "cannot install $*: there is no apt-get here." >&2; exit 1; }
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    echo "cannot install $*: not root, and sudo would ask for a password." >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
echo "installing Debian packages: $*"
$as_root apt-get install -y -q --no-install-recommends "$@" >/dev/null 2>&1 && exit 0
# A fresh image has no package lists yet.
$as_root apt-get update -q >/dev/null
$as_root apt-get install -y -q --no-install-recommends "$@" >/dev/null

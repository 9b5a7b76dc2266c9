#!/bin/sh
# Make sure of the system programs that the full test-suite wants besides Python packages.
# Here a missing program is fetched when permitted, else named; in CI (CI=true) a missing one is a failure.
set -eu
cd "$(dirname "$0")/.."
missing=0

server_found() { # Debian keeps server binaries off PATH, one directory for each major version
    command -v postgres >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1
}

pooler_found() { # Debian keeps it where only root looks
    command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ]
}

shim_found() { # a library, beside the others of the machine's architecture
    ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1
}

browser_found() {
    command -v chromium >/dev/null 2>&1
}

npm_found() {
    command -v npm >/dev/null 2>&1
}

want() { # want NAME-OF-CHECK "what it is for" PACKAGE...
    check=$1 purpose=$2
    shift 2
    "$check" && return 0
    for package in "$@"; do
        sh scripts/apt.sh "$package" && "$check" && return 0
    done
    echo "missing: $1 ($purpose). On Debian: apt-get install $1" >&2
    missing=1
}

# The embedded server is the newest PostgreSQL; the suite also runs on a second, older one.
want server_found "a second PostgreSQL server for the tests" postgresql-15 postgresql
# Many servers stand behind a pooler, which changes what a connection may do.
want pooler_found "a pooler in front of a server for the tests" pgbouncer
# Workers must not mind that their machine's clock is wrong.
want shim_found "wrong clocks for the chaos tests" faketime
# The pages are tried in a real browser, with the scripts that npm fetches for them.
want browser_found "a browser for the tests of the pages" chromium
want npm_found "the scripts that the pages load" npm

if [ "$missing" = 1 ] && [ "${CI:-}" = true ]; then
    echo "this is CI: what is missing above is a failure." >&2
    exit 1
fi

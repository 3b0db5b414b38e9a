# SPDX-License-Identifier: Apache-2.0
# For scripts that build Go programs on libhorus: which Go there is, and the library where cgo finds it.

# Ends the script with a sentence where Go is missing or older than $1.
require_go() {
  local found
  found=$(go env GOVERSION 2>/dev/null || true)
  if [ -z "$found" ] || [ "$(printf 'go%s\n%s\n' "$1" "$found" | sort -V | head -n 1)" != "go$1" ]; then
    echo "expected Go $1 or newer, found ${found:-none}. Debian 13 has it as golang-go" >&2
    exit 1
  fi
}

# Installs the library built in folder $1 beside it and points pkg-config and the loader there.
install_for_go() {
  cmake --install "$1" --prefix "$1/go-prefix" >"$1/go-prefix.log"
  export PKG_CONFIG_PATH=$1/go-prefix/lib/pkgconfig LD_LIBRARY_PATH=$1/go-prefix/lib
  export CGO_ENABLED=1 GOFLAGS=-buildvcs=false
}

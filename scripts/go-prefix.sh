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

# Installs the library built in folder $1 beside it and points pkg-config and the loader there. Go's cache looks at neither
# headers nor pkg-config: a flag of the one package that sees them, which the compiler has no use for, stands for both.
install_for_go() {
  local stamp
  cmake --install "$1" --prefix "$1/go-prefix" >"$1/go-prefix.log"
  export PKG_CONFIG_PATH=$1/go-prefix/lib/pkgconfig LD_LIBRARY_PATH=$1/go-prefix/lib
  stamp=$({ echo "$1"; cat "$1"/go-prefix/include/horus/*.h; } | sha256sum | cut -c 1-16)
  export CGO_ENABLED=1 GOFLAGS="-buildvcs=false -gcflags=libhorus.org/horus=-D=/$stamp"
}

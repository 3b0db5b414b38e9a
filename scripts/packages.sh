# SPDX-License-Identifier: Apache-2.0
# Sourced by the other scripts, in the project's folder: which Debian packages it needs, how to get the missing ones; --help.

packages_quickstart=(g++ cmake ninja-build pkg-config protobuf-compiler libprotobuf-dev libabsl-dev libxxhash-dev libeigen3-dev
  libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libcsv-dev)
packages_build=("${packages_quickstart[@]}" python3 libxgboost-dev coinor-libclp-dev)
packages_test=(libgtest-dev libgmock-dev libbenchmark-dev libonnx-dev python3 binutils abigail-tools gpg gpg-agent
  zsh fish mandoc # completions are tried in their shells, manual pages by mandoc
  ccache) # the embedding builds of the tests take the objects of the build they belong to
packages_lint=(clang-format-19 python3)
packages_clang=(clang-19 libclang-rt-19-dev)
packages_python=(python3-dev python3-venv)
packages_graphs=(python3-torch python3-torchvision python3-venv) # bench/quality/graphs/measured.py
packages_docs=(doxygen) # scripts/docs
packages_slurm=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libslurm-dev) # bindings/slurm/test/run plays jobs on it
packages_accounting=(slurmdbd mariadb-server) # with them, sacct on a database of its own
packages_browser=(chromium chromium-driver) # the report is looked at in it; Debian, Ubuntu has it as a snap
packages_page=(emscripten dpkg-dev python3) # scripts/page
packages_minimal=(g++ cmake ninja-build pkg-config protobuf-compiler libprotobuf-dev libabsl-dev libxxhash-dev)

# Of a script that sources this with --help: what its first lines say.
case "${1:-}" in
  -h | --help) sed -n '3,/^[^#]/s/^# \?//p' "scripts/$(basename "$0")"; exit 0 ;;
esac

say() { printf '\n== %s\n' "$*"; }

# apt_get <argument>... : for ensure_packages, whose log it writes. Another process that holds a lock of apt, as a fresh cloud
# machine's own updates do for minutes, is waited for.
apt_get() {
  local said=
  until "${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get "$@" >"$log" 2>&1; do
    lock=$(grep -m 1 -o 'Could not get lock .*' "$log") && [ "$waited_s" -lt 600 ] || return 1
    [ "$lock" = "$said" ] || echo "packages: waiting for another process, 10 minutes at most: $lock"
    said=$lock
    sleep 5
    waited_s=$((waited_s + 5))
  done
}

# ensure_packages <package>... : installs what is missing; on failure says what to do.
ensure_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "packages: all $# present"
    return 0
  fi
  echo "packages: installing ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "error: not root and sudo is missing; as root run: apt-get install ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  if ! command -v apt-get >/dev/null; then
    echo "error: this script knows apt only (Debian 12 or 13, Ubuntu 24.04); install the equivalents of: ${missing[*]}" >&2
    return 1
  fi
  local log lock='' waited_s=0
  log=$(mktemp)
  if ! apt_get update || ! apt_get install -y --no-install-recommends "${missing[@]}"; then
    tail -n 20 "$log" >&2
    echo "error: apt could not install: ${missing[*]} (what it said: $log)" >&2
    if [ -n "$lock" ]; then
      echo "       after $((waited_s / 60)) minutes another process still holds its lock; let it end, then run this script again" >&2
    else
      echo "       check the network and the package sources, then run this script again" >&2
    fi
    return 1
  fi
  rm -f "$log"
}

# Parallel jobs: one per core, but no more than one per 1.5 GiB of memory (a heavy file needs about 1 GiB).
build_jobs() {
  local cores mem_gib
  cores=$(nproc)
  mem_gib=$(awk '/MemAvailable/ {print int($2 / 1572864)}' /proc/meminfo)
  [ "$mem_gib" -ge 1 ] || mem_gib=1
  [ "$cores" -le "$mem_gib" ] && echo "$cores" || echo "$mem_gib"
}

# configure_and_build <preset> [cmake build arguments]
configure_and_build() {
  local preset=$1
  shift
  local launcher=()
  if command -v ccache >/dev/null; then
    # A checkout elsewhere compiles the same objects.
    export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}" CCACHE_NOHASHDIR=1
    # Except for coverage: its objects say in which checkout they were made, and those of others would not count.
    [ "$preset" != coverage ] || unset CCACHE_NOHASHDIR
    # With precompiled headers ccache needs telling that their macros and times are no matter.
    export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS:-pch_defines,time_macros}"
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  cmake --preset "$preset" "${launcher[@]}" >/dev/null
  cmake --build --preset "$preset" --parallel "$(build_jobs)" "$@"
}

# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that want a clean system: debootstrap trees, from the archive that this machine's apt is configured with.
# What is mounted in them is mounted for one command alone, so that they can simply be removed.

tree_skip() { echo "SKIPPED: $*" >&2; exit 77; }

# make_tree <folder> [codename] : a fresh minimal system there, of this machine's release or the one named; sets `tree`.
# The pristine one is kept in build/tree.
make_tree() {
  [ "$(id -u)" -eq 0 ] || tree_skip "only root can make a tree (debootstrap, chroot)"
  # shellcheck disable=SC1091
  local own codename pristine mirror http_proxy=${http_proxy:-}
  own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  codename=${2:-$own}
  pristine=$PWD/build/tree/$codename
  if [ ! -e "$pristine/made" ]; then
    command -v debootstrap >/dev/null || ensure_packages debootstrap || tree_skip "debootstrap cannot be installed"
    # The archive of one release has the others too.
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
      awk -v own="$own" '$2 == own && $3 == "main" {print $1; exit}')
    [ -n "$mirror" ] || tree_skip "apt is not configured with an archive of '$own'"
    [ -n "$http_proxy" ] || eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
    rm -rf "$pristine"
    mkdir -p "$pristine"
    http_proxy=$http_proxy debootstrap --variant=minbase "$codename" "$pristine" "$mirror" >"$pristine.log" 2>&1 ||
      { tail -n 5 "$pristine.log" >&2; tree_skip "debootstrap failed (no network, or no '$codename' in $mirror)"; }
    # How this machine reaches the archive: proxies, time-outs, dates that are not checked.
    apt-config dump --no-empty | awk '/^Acquire::(http|Check-|Retries|ForceIPv)/' >"$pristine/etc/apt/apt.conf.d/90archive"
    rm -f "$pristine"/var/cache/apt/archives/*.deb
    touch "$pristine/made"
  fi
  tree=$PWD/$1
  remove_tree "$1"
  mkdir -p "$(dirname "$tree")"
  cp -a "$pristine" "$tree"
}

# remove_tree <folder> : but never one in which something is mounted.
remove_tree() {
  if grep -q " $PWD/$1/" /proc/mounts; then
    echo "error: something is mounted below $1; unmount it first" >&2
    return 1
  fi
  rm -rf "${PWD:?}/$1"
}

in_tree() { # in_tree <command>... : with a /proc that nobody else sees
  unshare --mount sh -c 'mount -t proc proc "$1/proc" && exec chroot "$@"' sh "$tree" "$@"
}

apt_in_tree() { # apt_in_tree <command of apt-get> <package or file>...
  in_tree env DEBIAN_FRONTEND=noninteractive apt-get -y -qq --no-install-recommends "$@" >"$tree/apt.log" 2>&1 ||
    { tail -n 20 "$tree/apt.log" >&2; return 1; }
}

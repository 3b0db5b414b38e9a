# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that want a clean system: debootstrap trees of this machine's Debian release, from the archive that its
# apt is configured with. What is mounted in them is mounted for one command alone, so that they can simply be removed.

tree_skip() { echo "SKIPPED: $*" >&2; exit 77; }

# make_tree <folder> : a fresh minimal system there; sets `tree`. The pristine one is kept in build/tree.
make_tree() {
  [ "$(id -u)" -eq 0 ] || tree_skip "only root can make a tree (debootstrap, chroot)"
  # shellcheck disable=SC1091
  local codename pristine mirror
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  pristine=$PWD/build/tree/$codename
  if [ ! -e "$pristine/made" ]; then
    command -v debootstrap >/dev/null || ensure_packages debootstrap || tree_skip "debootstrap cannot be installed"
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
      awk -v release="$codename" '$2 == release && $3 == "main" {print $1; exit}')
    [ -n "$mirror" ] || tree_skip "apt is not configured with an archive of '$codename'"
    rm -rf "$pristine"
    mkdir -p "$pristine"
    debootstrap --variant=minbase "$codename" "$pristine" "$mirror" >"$pristine.log" 2>&1 ||
      { tail -n 5 "$pristine.log" >&2; tree_skip "debootstrap failed (no network?)"; }
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

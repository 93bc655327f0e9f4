#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# gpu_elsewhere.sh SOURCE [SUITE]: `scripts/gpu run --dry` of the packed kit by a user who is not root, in a bare
# system of another release of Debian (trixie) that has neither MPI nor a compiler. Needs root and a source of
# packages; skipped (77) where one is missing, or where nothing is packed.
set -uo pipefail
source=$1 suite=${2:-trixie}
skip() { echo "gpu_elsewhere: skipped: $1"; exit 77; }
[[ -e $source/.gpu/kit.tar.xz ]] || skip "scripts/gpu pack has packed nothing"
[[ $(id -u) == 0 ]] || skip "a system of its own is entered by chroot, which needs root"
unshare --mount true 2> /dev/null || skip "mounts of its own are forbidden"
. "$source/scripts/debian.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
is_known_debian && open_suites "$work" "$suite" || skip "$trouble"
"${get[@]}" -y --download-only install base-files bash dash coreutils tar xz-utils mawk sed grep findutils \
  libc-bin >&2 || skip "the packages of $suite cannot be fetched"
system=$work/system
mkdir -p "$system"
for package in "$work"/cache/archives/*.deb; do dpkg -x "$package" "$system" || exit 1; done
ln -sf mawk "$system/usr/bin/awk"
mkdir -p "$system"/{dev,proc,tmp,heddle/scripts,heddle/cmake,heddle/.gpu}
chmod 1777 "$system/tmp"
cp "$source/scripts/gpu" "$system/heddle/scripts/"
cp "$source/cmake/compare_results.sh" "$system/heddle/cmake/"
cp "$source/.gpu/kit.tar.xz" "$system/heddle/.gpu/"
chmod 755 "$work" "$system"
unshare --mount sh -c 'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" &&
  exec chroot --userspec=65534:65534 "$0" /usr/bin/env -i PATH=/usr/bin:/bin /bin/bash -c "
    . /etc/os-release; echo \$PRETTY_NAME; cd /tmp; /heddle/scripts/gpu run out 120 --dry; status=\$?
    cat out/log.txt; exit \$status"' "$system"

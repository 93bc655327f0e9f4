# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# Sourced by scripts/setup and scripts/gate: packages of newer Debian suites, fetched through apt with
# lists of its own. The system's lists, pins and package database stay as they are.
# The functions return 1 where something is missing, and `trouble` then says what.

keys=/usr/share/keyrings/debian-archive-keyring.gpg
trouble=

# Is this the system whose packages are known here?
is_known_debian() {
  local system
  # shellcheck disable=SC1090
  system=$( . "${HEDDLE_OS_RELEASE:-/etc/os-release}" 2> /dev/null && echo "${ID-} ${VERSION_ID-}") || true
  if [[ $system != "debian 12" ]]; then
    trouble="this is not Debian 12, the system that packages are known for"
  elif ! command -v apt-get > /dev/null; then
    trouble="there is no apt-get"
  elif [[ $(dpkg --print-architecture) != amd64 ]]; then
    trouble="packages are known for amd64, this is $(dpkg --print-architecture)"
  else
    return 0
  fi
  return 1
}

# open_suites WORK SUITE...: fills the arrays `get` and `cache`, which are apt-get and apt-cache on the
# suites alone, with everything they write below WORK. The source is the machine's own.
open_suites() {
  local work=$1 uri suite private
  shift
  source_of() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' 2> /dev/null |
      head -1
  }
  uri=$(source_of)
  if [[ -z $uri && $(id -u) == 0 ]]; then
    apt-get update -qq -o APT::Update::Error-Mode=any >&2 || true
    uri=$(source_of)
  fi
  trouble="apt has no source for Debian 12 (bookworm) that answers"
  [[ -n $uri ]] || return 1
  mkdir -p "$work"/{lists/partial,cache/archives/partial,packages}
  : > "$work/status"  # nothing is installed: dependencies resolve to all that they need
  for suite in "$@"; do
    echo "deb [arch=amd64 signed-by=$keys] $uri $suite main"
  done > "$work/sources.list"
  private=(-o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
           -o Dir::Etc::preferencesparts=/dev/null -o Dir::State::lists="$work/lists"
           -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache"
           -o APT::Install-Recommends=false -o Acquire::Languages=none -o APT::Sandbox::User=root)
  get=(apt-get -qq "${private[@]}")
  cache=(apt-cache "${private[@]}")
  trouble="the package source does not answer for $*"
  "${get[@]}" update -o APT::Update::Error-Mode=any >&2 || return 1
}

# choose PACKAGE PINNED PATTERN: the pinned version if it is served, else the newest that matches.
choose() {
  local versions
  versions=$("${cache[@]}" madison "$1" | awk '{ print $3 }')
  if grep -qxF "$2" <<< "$versions"; then
    echo "$2"
  else
    grep -E "$3" <<< "$versions" | sort -V | tail -1
  fi
}

# Two faults of Debian's package of Kokkos 5.2, below FOLDER/usr: its CMake file names the include
# folder absolutely, and two archives that are not in it. They hold nothing that is called.
mend_kokkos() {
  local libraries=$1/usr/lib/x86_64-linux-gnu name
  sed -i 's#"/usr/include/kokkos"#"${_IMPORT_PREFIX}/include/kokkos"#' \
    "$libraries/cmake/Kokkos/KokkosTargets.cmake"
  for name in kokkosalgorithms kokkossimd; do
    [[ -e $libraries/lib$name.a ]] || ar rcs "$libraries/lib$name.a"
  done
}

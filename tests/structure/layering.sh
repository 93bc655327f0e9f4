#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# layering.sh RULES INCLUDE_DIR: does every header include only what its room may, and nothing of another
# room's impl/? Are the names of systems in heddle::systems? One line per offence, exit status 1 where there
# is any. INCLUDE_DIR is the folder named heddle.
set -euo pipefail
rules=$1
include=$2
cd "$include"
mapfile -t headers < <(find . -name '*.[hi]pp' -printf '%P\n' | LC_ALL=C sort)
((${#headers[@]} > 0)) || { echo "no headers in $include"; exit 1; }

awk -v rules="$rules" '
  BEGIN {
    need["none"] = 0; need["kokkos"] = 1; need["mpi"] = 2
    top["heddle_core"] = 0; top["heddle"] = 2
    below["memory"] = " core "; below["heddle"] = " core memory "; below["json"] = " core "
    below["systems"] = " core memory heddle json "
    while ((getline line < rules) > 0) {
      if (line ~ /^#/ || split(line, f, " ") < 5) continue
      floor[f[1]] = f[2]; needs[f[1]] = need[f[3]]; target[f[1]] = f[5]
      count = split(f[4], side, ",")
      for (i = 1; i <= count; ++i) sideways[f[1], side[i]] = 1
    }
  }
  function report(text) { print text; bad = 1 }
  function place() { return FILENAME ":" FNR }
  # The room that a path below heddle/ belongs to: the innermost folder that rooms.txt lists, or the
  # first one. An umbrella header belongs to its room.
  function room_of(path,    room, folder, count, part, i) {
    sub(/\.[hi]pp$/, "", path)
    count = split(path, part, "/")
    room = folder = part[1]
    for (i = 2; i <= count; ++i) {
      folder = folder "/" part[i]
      if (folder in floor) room = folder
    }
    return room
  }
  FNR == 1 {
    room = room_of(FILENAME)
    inside = index(FILENAME, "/")
    umbrella = FILENAME == room ".hpp"
    # Two headers stand above the rooms: heddle_core.hpp is all that needs nothing, heddle.hpp all.
    above = !inside && (room in top)
    if (!above && !(room in floor))
      report(FILENAME ": " room " is not a room of rooms.txt")
  }
  /^namespace heddle/ {
    names = index($0, "v0::systems") > 0
    if (names != (room ~ /^systems/))
      report(place() ": " (names ? "only systems open heddle::systems" : "a system has its names in heddle::systems"))
  }
  /^[ \t]*#[ \t]*include/ {
    if (match($0, /"[^"]*"/)) {
      name = substr($0, RSTART + 1, RLENGTH - 2)
      folder = FILENAME
      sub(/[^\/]*$/, "", folder)
      report(place() ": write <heddle/" folder name ">, not a quoted name")
      next
    }
    if (!match($0, /<[^>]*>/)) next
    name = substr($0, RSTART + 1, RLENGTH - 2)
    mine = above ? top[room] : needs[room]
    if (name ~ /^(Kokkos|KokkosBlas|cblas|cublas|hipblas)/ && mine < 1)
      report(place() ": " room " must not include Kokkos or BLAS (" name ")")
    if (name ~ /^(mpi|nccl|rccl)\.h/ && mine < 2)
      report(place() ": " room " must not include MPI or NCCL (" name ")")
    if (name !~ /^heddle\//) next
    sub(/^heddle\//, "", name)
    if ((at = index(name, "/impl/")) && index(FILENAME, substr(name, 1, at)) != 1)
      report(place() ": heddle/" name " is for " substr(name, 1, at - 1) " only; what other rooms use is in internal/")
    other = room_of(name)
    if (!index(name, "/") && (other in top)) {
      if (!above || top[other] > mine)
        report(place() ": " room " must not include heddle/" name ", which stands above the rooms")
    } else if (!(other in floor)) {
      report(place() ": " other " is not a room of rooms.txt")
    } else if (above) {
      if (needs[other] > mine) report(place() ": " room " must not include " other)
    } else if (other != room && !(umbrella && index(other, room "/") == 1)) {
      lower = floor[other] < floor[room]
      if ((!lower && !((room, other) in sideways)) || needs[other] > mine)
        report(place() ": " room " must not include " other " (floor " floor[room] " and " \
               floor[other] ")")
      else if (target[other] != target[room] && !index(below[target[room]], " " target[other] " "))
        report(place() ": " room " is in heddle::" target[room] ", which does not stand on heddle::" \
               target[other] " (" other ")")
    }
  }
  END { exit bad }
' "${headers[@]}"
echo "${#headers[@]} headers include only what their rooms may"

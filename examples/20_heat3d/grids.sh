#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# grids.sh COMMAND...: starts COMMAND, heat3d on some ranks, with blocks that meshes do not divide,
# or that have fewer elements than ranks. Each time all meshes have to compute the same as one rank,
# and the files to hold what was computed.
set -uo pipefail
export LC_ALL=C
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# says WHAT EXPECTED PRINTED: the two are the same.
says() {
  [[ $2 == "$3" ]] && return
  failures=$((failures + 1))
  printf 'FAILED: %s\n  expected: %s\n  printed:  %s\n' "$1" "$2" "$3"
}

# spreads X Y Z: heat in a block of that size.
spreads() {
  local grid=$1,$2,$3 count=$(($1 * $2 * $3)) output status=0
  rm -f "$folder"/*
  output=$(HEDDLE_RESULTS=$folder timeout 60 "${command[@]}" --grid "$grid" --pictures "$folder" \
    2>&1) || status=$?
  says "$grid: status" 0 "$status"
  says "$grid: other than on one rank" "" \
       "$(sed -e "/: 0 of $count elements differ from one rank's$/d" -e '/^hottest after/d' \
            -e '/^wrote heat.vtk and heat.png/d' <<< "$output")"
  says "$grid: head of heat.vtk" "# vtk DataFile Version 3.0
heat
ASCII
DATASET STRUCTURED_POINTS
DIMENSIONS $3 $2 $1
ORIGIN 0 0 0
SPACING 1 1 1
POINT_DATA $count
SCALARS degrees double 1
LOOKUP_TABLE default" "$(head -n 10 "$folder/heat.vtk")"
  # The file of results has a head of two lines, and digits enough for the same number.
  says "$grid: values of heat.vtk that are those computed" "$count of $count" \
       "$(paste <(tail -n +11 "$folder/heat.vtk") <(tail -n +3 "$folder/heat3d.txt") |
            awk 'NF == 2 && $1 + 0 == $2 + 0 && $1 + 0 >= 0 { ++same }
                 END { print same + 0 " of " NR }')"
  # The signature, an IHDR of 13 bytes that begins with width and height, and IEND.
  local size sizes=""
  for size in $(($3 * 8)) $(($2 * 8)); do sizes+=" 0 0 $((size / 256)) $((size % 256))"; done
  says "$grid: heat.png" \
       "137 80 78 71 13 10 26 10 0 0 0 13 73 72 68 82$sizes 0 0 0 0 73 69 78 68 174 66 96 130" \
       "$( (head -c 24 "$folder/heat.png"; tail -c 12 "$folder/heat.png") | od -An -v -tu1 | xargs)"
  printf '%s: %s\n' "$grid" "$(grep -c 'elements differ' <<< "$output") meshes"
}

# refuses PHRASE ARGUMENTS...: ends with a status other than 0, and prints the phrase.
refuses() {
  local phrase=$1 output status=0
  shift
  output=$(timeout 60 "${command[@]}" "$@" 2>&1) || status=$?
  [[ $status != 0 && $status != 124 && $output == *"$phrase"* ]] || says "$*" "$phrase" "$output"
}

command=("$@")
spreads 7 5 3
spreads 2 13 40
spreads 3 2 1
spreads 1 1 1
refuses "a block has three sizes, of at least 1 each" --grid 3,2
refuses "a block has three sizes, of at least 1 each" --grid 3,0,2
refuses "not a number" --grid 3,2,x
refuses "cannot write '$folder/none/heat.vtk'" --grid 3,2,1 --pictures "$folder/none"
exit $((failures > 0))

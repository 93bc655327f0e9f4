#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# links.sh ROOT: the pages in ROOT, its folders docs, docs/decisions and packaging link to files that are there
# and, behind a #, to a heading of that page, with the anchors of GitHub: the words of the heading in small
# letters, joined by dashes, without marks, and -1, -2 behind repeated ones. One line per dead link.
set -euo pipefail
cd "$1"
shopt -s nullglob
pages=(*.md docs/*.md docs/*/*.md packaging/*.md)
((${#pages[@]} > 0)) || { echo "no pages in $1"; exit 1; }

# "page#anchor" of every heading.
anchors=$(awk '
  FNR == 1 { open = 0; split("", times) }
  /^```/ { open = !open }
  open || !/^#+ / { next }
  {
    heading = tolower($0)
    sub(/^#+ +/, "", heading)
    gsub(/\]\([^)]*\)/, "", heading)  # of a link its text is left
    gsub(/[^[:alnum:] _-]/, "", heading)
    gsub(/ /, "-", heading)
    print FILENAME "#" heading (times[heading] ? "-" times[heading] : "")
    ++times[heading]
  }' "${pages[@]}")

status=0 links=0
while IFS=$'\t' read -r page line link; do
  links=$((links + 1))
  file=${link%%#*}
  if [[ -z $file ]]; then
    target=$page
  else
    target=$(realpath -m --relative-to=. "$(dirname "$page")/$file")
    [[ -e $target ]] || { echo "$page:$line: there is no $file"; status=1; continue; }
  fi
  if [[ $link == *#* && $target == *.md ]] && ! grep -qxF -- "$target#${link#*#}" <<< "$anchors"; then
    echo "$page:$line: $target has no heading #${link#*#}"
    status=1
  fi
done < <(awk '
  FNR == 1 { open = 0 }
  /^```/ { open = !open }
  open { next }
  {
    gsub(/`[^`]*`/, "")
    while (match($0, /\]\([^)]+\)/)) {
      link = substr($0, RSTART + 2, RLENGTH - 3)
      $0 = substr($0, RSTART + RLENGTH)
      if (link !~ /^[a-z]+:/) print FILENAME "\t" FNR "\t" link
    }
  }' "${pages[@]}")
echo "$links links of ${#pages[@]} pages"
exit $status

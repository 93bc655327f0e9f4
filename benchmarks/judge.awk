# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# awk -v bars=bars.csv -v areas="AREA..." -f verdict.awk -f judge.awk OUTPUT: prints the lines of
# benchmarks that OUTPUT holds and the verdict of each bar; fails if one falls short.

# The ends of a spread, LOW..HIGH, into low and high.
function ends(spread, key,   part) {
  if (split(spread, part, /\.\./) != 2) return
  low[key] = part[1]; high[key] = part[2]
}
$1 == "ratio" || $1 == "value" {
  print
  key = $2 " " $3
  value[key] = $4
  if (!(key in exact)) ends($5, key)
}
$1 == "interval" {
  print
  key = $2 " " $3
  exact[key] = 1
  ends($4, key)
}
$1 == "skip" {
  name = $2
  sub(/^skip [^ ]+ /, "")
  skipped[name] = $0
}
END {
  while ((getline line < bars) > 0) {
    if (line ~ /^#/ || split(line, f, ",") < 5 || f[3] !~ /^[<>]=$/) continue
    key = f[1] " " f[2]
    if (!(key in value)) {
      split(f[1], place, "/")
      if (f[1] in skipped)
        printf "bar %s %s %s %s: skipped: %s\n", key, f[3], f[4], f[5], skipped[f[1]]
      else if (index(" " areas " ", " " place[1] " ")) {
        printf "bar %s %s %s %s: not measured\n", key, f[3], f[4], f[5]
        short = 1
      }
      continue
    }
    judged = verdict(value[key], low[key], high[key], f[3], f[4])
    if (judged == "falls short" || judged == "not a number") short = 1
    printf "bar %s %s %s %s: %s\n", key, f[3], f[4], f[5], judged
  }
  exit short
}

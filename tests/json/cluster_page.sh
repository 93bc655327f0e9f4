#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# cluster_page.sh JSON_TESTS PLAN PAGE: runs the commands of docs/cluster.md as they are printed, but with two
# seconds for each search. The test of the page's code writes the files that they read.
set -euo pipefail
tests=$1 plan=$2 page=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
HEDDLE_KEEP_FILES=1 "$tests" "a plan for two sites is better than the fast site and than equal stages" > /dev/null
cd cluster_guide_files
plan() {
  if [[ $1 == search ]]; then set -- "$@" --seconds 2; fi
  command "$plan" "$@"
}
commands=$(awk '/^```sh/ { shell = 1; next } /^```/ { shell = 0 } shell' "$page" | sed 's/ --seconds 5$//')
(($(grep -c '^plan ' <<< "$commands") >= 5)) || { echo "$page prints too few commands"; exit 1; }
failures=0
while IFS= read -r line; do
  echo "$line"
  eval "$line" > output 2>&1 || { echo "FAILED: $line"; tail -5 output; failures=1; }
done <<< "$commands"
[[ -s plan.json && -s plan.svg ]] || { echo "there is no plan, or no picture of it"; failures=1; }
exit $failures

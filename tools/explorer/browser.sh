#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# browser.sh SCHEDULE EXPLORER PLAN FOLDER: builds the explorer's page in FOLDER, drives it in headless
# Chromium and compares it with these programs. Skipped (status 77) where Chromium, node or the compiler for
# WebAssembly is missing: nothing is installed. browser.mjs says which variables it heeds.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
schedule=$1 explorer=$2 plan=$3 folder=$4
for chromium in chromium chromium-browser google-chrome ""; do
  command -v "$chromium" > /dev/null && break
done
[[ -n $chromium ]] || { echo "skipped: there is no Chromium (Debian: apt-get install chromium)"; exit 77; }
command -v node > /dev/null || { echo "skipped: there is no node"; exit 77; }
status=0
"$here/../../scripts/explorer" --offline "$folder/index.html" || status=$?
((status == 0)) || exit $status
exec node "$here/browser.mjs" "$(command -v "$chromium")" "$folder/index.html" "$schedule" "$explorer" "$plan"

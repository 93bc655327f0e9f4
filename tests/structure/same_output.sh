#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# same_output.sh FILE COMMAND...: whether COMMAND prints what FILE says, for example as it was when the build
# was configured.
set -euo pipefail
file=$1
shift
if ! "$@" | diff "$file" -; then
  echo "$file is not what $* prints: write it anew, or configure the build again where it wrote the file" >&2
  exit 1
fi

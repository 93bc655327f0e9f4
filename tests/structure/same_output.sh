#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# same_output.sh FILE COMMAND...: whether COMMAND still prints what FILE says, as it was when the build
# was configured.
set -euo pipefail
file=$1
shift
if ! "$@" | diff "$file" -; then
  echo "the build was configured before: configure it again" >&2
  exit 1
fi

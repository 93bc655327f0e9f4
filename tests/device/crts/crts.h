// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/* A stand-in for the machine's header of this name: what both sides know of it. mock.cpp forwards
   all of it to the emulated core group. */

#include <stddef.h>

typedef int athread_rply_t;

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/* A stand-in for the machine's header of this name: the calls of the host side. */

#include <crts.h>

int athread_init(void);
int athread_halt(void);
int __real_athread_spawn(void* function, void* argument, int flush);
int athread_join(void);

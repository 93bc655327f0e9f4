// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: heddle::memory::IpcSafe: other processes and network cards cannot reach the memory of
// this

/// @file
/// Memory of a resource that says nothing about other processes must not be marked as safe.

#include <heddle/memory/ipc_safe.hpp>
#include <heddle/memory/polymorphic.hpp>
#include <heddle/memory/source/pages.hpp>

auto use() {
#ifdef HEDDLE_OK
  return heddle::memory::IpcSafe(heddle::memory::Pages{});
#else
  return heddle::memory::IpcSafe(heddle::memory::FromPolymorphic{});
#endif
}

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// DevicePath: how messages leave the memory of a device.

#include <cstdint>

#include <heddle/core/contract.hpp>

namespace heddle::inline v0 {

/// The path of messages between device memory and the transport. Ranks may use different paths.
enum class DevicePath : std::uint8_t {
  automatic,  ///< direct if the transport takes device pointers (MPI is asked), else staged; with
              ///< HEDDLE_CHECK_COMMUNICATION, owned instead of direct
  direct,     ///< device pointers are passed to the transport
  staged,     ///< through host memory, pinned if the device has such memory
  owned,      ///< direct for memory of memory::message_memory() if the transport accepts device
          ///< pointers, else staged; for comparisons if the memory of a View may be the cause of a
          ///< fault
};

namespace impl {

/// Returns the path that `path` selects, which is not `automatic`. `on_host` tells if the host can
/// access the memory, and `takes_pointers` if the transport accepts its pointers.
[[nodiscard]] constexpr DevicePath device_path(DevicePath path, bool on_host, bool takes_pointers,
                                               ContractLevel level = contract_level) {
  const bool chosen = path == DevicePath::automatic;
  if (!takes_pointers && (chosen || path == DevicePath::owned)) return DevicePath::staged;
  if (!chosen) return path;
  return !on_host && level == ContractLevel::communication ? DevicePath::owned : DevicePath::direct;
}

}  // namespace impl

}  // namespace heddle::inline v0

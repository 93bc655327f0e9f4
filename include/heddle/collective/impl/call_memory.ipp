// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of call_memory.hpp.

#include <cstddef>
#include <memory>

#include <Kokkos_Core.hpp>

#include <heddle/collective/impl/call_memory.hpp>
#include <heddle/collective/impl/performer_in.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/gpu_aware.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/memory/space.hpp>

namespace heddle::inline v0::impl {

template <class MemorySpace>
Room zeroed_room(const char* label, Bytes bytes) {
  const Kokkos::View<std::byte*, MemorySpace> view(label, bytes);
  return {view.data(), bytes, std::make_shared<decltype(view)>(view)};
}

template <class MemorySpace>
bool mpi_takes(const std::byte* data) {
  const DevicePath path = device_path(DevicePath::automatic, memory::impl::on_host<MemorySpace>,
                                      gpu_aware<MemorySpace>());
  return handed_over<MemorySpace>(path, data);
}

template <class MemorySpace>
std::shared_ptr<Performer> performer_in(const PerformerKey& key, MpiTransport& transport,
                                        const CallMemory& of) {
  return std::make_shared<PerformerIn<MemorySpace>>(key, transport, of);
}

#if !HEDDLE_FULL_HEADER_ONLY
template Room zeroed_room<Kokkos::HostSpace>(const char*, Bytes);
template bool mpi_takes<Kokkos::HostSpace>(const std::byte*);
template std::shared_ptr<Performer> performer_in<Kokkos::HostSpace>(const PerformerKey&,
                                                                    MpiTransport&,
                                                                    const CallMemory&);
#endif

}  // namespace heddle::inline v0::impl

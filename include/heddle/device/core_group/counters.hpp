// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Counters of the emulated core group: the transfers, direct accesses and local memory of a
/// launch, and the time that the machine would need for the transfers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>

namespace heddle::inline v0 {

/// The counters of all cores over one or several launches. A *piece* is a contiguous run of bytes
/// in main memory. A plain transfer has one piece, and a strided transfer has many.
struct CoreGroupCounters {
  std::uint64_t launches = 0;              ///< number of launches that are summed
  std::uint64_t get_bytes = 0;             ///< DMA from main memory
  std::uint64_t put_bytes = 0;             ///< DMA to main memory
  std::uint64_t get_requests = 0;          ///< calls of get() and get_strided()
  std::uint64_t put_requests = 0;          ///< calls of put() and put_strided()
  std::uint64_t short_requests = 0;        ///< DMA requests whose pieces are shorter than 256 B
  std::uint64_t misaligned_requests = 0;   ///< DMA requests with a piece that is not 128 B aligned
  std::uint64_t long_bytes = 0;            ///< DMA bytes in pieces of 256 B and more
  std::uint64_t misaligned_get_bytes = 0;  ///< bytes of gets in pieces that are not 128 B aligned
  std::uint64_t misaligned_put_segments = 0;  ///< 128 B segments that misaligned puts fill partly
  std::uint64_t rma_bytes = 0;                ///< bytes sent from core to core
  std::uint64_t direct_loads = 0;   ///< loads of main memory without DMA, as the kernel reports
  std::uint64_t direct_stores = 0;  ///< stores to main memory without DMA, as the kernel reports
  std::uint64_t local_peak = 0;     ///< largest local memory in use on any core, in bytes
  double modelled_seconds = 0;      ///< see price.hpp; summed over the launches

  /// Returns the bytes of DMA in both directions.
  [[nodiscard]] std::uint64_t dma_bytes() const noexcept { return get_bytes + put_bytes; }
  /// Returns the DMA requests in both directions.
  [[nodiscard]] std::uint64_t dma_requests() const noexcept { return get_requests + put_requests; }

  /// Adds the counters of `other`. For local_peak it takes the larger value.
  CoreGroupCounters& operator+=(const CoreGroupCounters& other) noexcept {
    launches += other.launches;
    get_bytes += other.get_bytes;
    put_bytes += other.put_bytes;
    get_requests += other.get_requests;
    put_requests += other.put_requests;
    short_requests += other.short_requests;
    misaligned_requests += other.misaligned_requests;
    long_bytes += other.long_bytes;
    misaligned_get_bytes += other.misaligned_get_bytes;
    misaligned_put_segments += other.misaligned_put_segments;
    rma_bytes += other.rma_bytes;
    direct_loads += other.direct_loads;
    direct_stores += other.direct_stores;
    local_peak = std::max(local_peak, other.local_peak);
    modelled_seconds += other.modelled_seconds;
    return *this;
  }

  /// Prints the counters in one line.
  friend std::ostream& operator<<(std::ostream& out, const CoreGroupCounters& counters) {
    return out << counters.launches << " launches, DMA " << counters.get_bytes << " B in and "
               << counters.put_bytes << " B out in " << counters.dma_requests() << " requests ("
               << counters.short_requests << " short, " << counters.misaligned_requests
               << " misaligned), RMA " << counters.rma_bytes << " B, direct loads "
               << counters.direct_loads << ", stores " << counters.direct_stores
               << ", local memory " << counters.local_peak << " B, modelled "
               << counters.modelled_seconds * 1e6 << " us";
  }
};

}  // namespace heddle::inline v0

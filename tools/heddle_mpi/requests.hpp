// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Requests: the packed messages on their way that a program has a request of. For the interposer.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/layout/pack.hpp>

#include "buffers.hpp"
#include "call_mutex.hpp"
#include "known_types.hpp"

namespace heddle_mpi {

/// Unpacks what has come of a message to `to`, as `status` says; `code` is the error of it.
inline void arrive(const heddle::StridedBlock& block, const std::byte* packed, std::byte* to,
                   const MPI_Status& status, int code) {
  int is = 0, bytes = 0;
  if (code != MPI_SUCCESS) PMPI_Error_class(code, &is);
  if (is != MPI_SUCCESS && is != MPI_ERR_TRUNCATE) return;
  PMPI_Get_count(&status, MPI_PACKED, &bytes);
  if (bytes > 0) heddle::unpack_first(static_cast<heddle::Bytes>(bytes), block, packed, to);
}

/// A packed message on its way, and where it is unpacked to; nowhere, if it is sent. It knows the
/// bytes, not the datatype, which the program may free meanwhile.
struct Message {
  Buffer packed;
  std::shared_ptr<const Strided> strided;
  std::byte* to = nullptr;

  /// What there is to do when `status` says that it is there; `code` is the error of it.
  void arrive(const MPI_Status& status, int code) {
    if (to == nullptr) return;
    int cancelled = 0;
    PMPI_Test_cancelled(&status, &cancelled);
    if (cancelled == 0) heddle_mpi::arrive(strided->block, packed.data(), to, status, code);
    to = nullptr;
  }
};

/// By request; there is one object of it. A message is taken out before MPI may complete its
/// request, and put back if it did not: another thread may be given the same request as soon as MPI
/// has.
class Requests {
 public:
  [[nodiscard]] static bool none() noexcept { return s_count.load(std::memory_order_relaxed) == 0; }
  [[nodiscard]] static std::size_t count() noexcept { return s_count; }

  /// Whatever had this request before is over.
  void put(MPI_Request request, Message message) {
    const std::lock_guard lock(m_mutex);
    Entry& near = m_near[place_of(request)];
    if (near.request == MPI_REQUEST_NULL) {
      if (m_others.erase(request) == 0) count(+1);
      near.request = request;
      near.message = std::move(message);
    } else if (near.request == request) {
      near.message = std::move(message);
    } else if (m_others.insert_or_assign(request, std::move(message)).second) {
      count(+1);
    }
  }
  /// The message of a request, if it is of one.
  [[nodiscard]] std::optional<Message> take(MPI_Request request) {
    if (request == MPI_REQUEST_NULL) return {};
    const std::lock_guard lock(m_mutex);
    std::optional<Message> taken;
    if (Entry& near = m_near[place_of(request)]; near.request == request) {
      near.request = MPI_REQUEST_NULL;
      taken = std::move(near.message);
    } else if (auto other = m_others.extract(request)) {
      taken = std::move(other.mapped());
    }
    if (taken) count(-1);
    return taken;
  }

 private:
  struct Entry {
    MPI_Request request = MPI_REQUEST_NULL;
    Message message;
  };

  /// Under the mutex: no atomic operation but a load and a store, which short messages do not feel.
  static void count(int more) noexcept {
    s_count.store(s_count.load(std::memory_order_relaxed) + static_cast<std::size_t>(more),
                  std::memory_order_relaxed);
  }
  static std::size_t place_of(MPI_Request request) noexcept {
    const std::uint64_t mixed =
        std::hash<MPI_Request>()(request) * std::uint64_t{0x9e3779b97f4a7c15};
    return mixed >> 56;
  }

  CallMutex m_mutex;
  std::array<Entry, 256> m_near;  ///< each in its place, where that was free
  std::unordered_map<MPI_Request, Message> m_others;
  static inline constinit std::atomic<std::size_t> s_count = 0;
};

/// The messages whose requests the program has freed before they were completed: their memory must
/// stay until they are, which nobody else asks for.
class FreedRequests {
 public:
  void put(MPI_Request request, Message message) {
    {
      const std::lock_guard lock(m_mutex);
      m_freed.push_back({request, std::move(message)});
      m_some = true;
    }
    collect();
  }
  /// Gives up the memory of those that are completed. MPI, which may call the program's handler of
  /// errors, is not called under the lock.
  void collect() {
    if (!m_some.load(std::memory_order_relaxed)) return;
    std::vector<Freed> freed;
    {
      const std::lock_guard lock(m_mutex);
      freed.swap(m_freed);
    }
    std::erase_if(freed, [](Freed& each) {
      int flag = 0;
      MPI_Status status;
      const int code = PMPI_Test(&each.request, &flag, &status);
      if (flag != 0) each.message.arrive(status, code);
      return flag != 0;
    });
    const std::lock_guard lock(m_mutex);
    std::ranges::move(freed, std::back_inserter(m_freed));
    m_some = !m_freed.empty();
  }
  /// Leaves them to MPI, which is to be ended: their memory stays.
  void let_go() {
    const std::lock_guard lock(m_mutex);
    for (Freed& freed : m_freed) PMPI_Request_free(&freed.request);
  }

 private:
  struct Freed {
    MPI_Request request;
    Message message;
  };
  CallMutex m_mutex;
  std::vector<Freed> m_freed;
  std::atomic<bool> m_some = false;  ///< of these
};

/// Memory of a call, on its stack as far as it goes: short messages feel every call of malloc().
struct CallMemory {
  std::array<std::byte, 2048> bytes;
  std::pmr::monotonic_buffer_resource resource{bytes.data(), bytes.size()};
};

/// The messages of an array of requests for as long as a call of MPI looks at them. What has not
/// arrived by then goes back.
class TakenRequests {
 public:
  TakenRequests(Requests& home, int count, MPI_Request* requests, CallMemory& memory)
      : m_home(home), m_requests(requests), m_taken(&memory.resource) {
    if (requests == nullptr) return;  // the library says so
    m_taken.reserve(std::min(Requests::count(), static_cast<std::size_t>(std::max(count, 0))));
    for (int i = 0; i < count; ++i)
      if (std::optional<Message> message = home.take(requests[i]))
        m_taken.push_back({i, requests[i], *std::move(message)});
  }
  TakenRequests(const TakenRequests&) = delete;
  TakenRequests& operator=(const TakenRequests&) = delete;
  ~TakenRequests() {
    for (Taken& taken : m_taken)
      if (!taken.arrived) m_home.put(taken.request, std::move(taken.message));
  }

  [[nodiscard]] bool empty() const noexcept { return m_taken.empty(); }
  /// Request `index` is completed. For one that is not of the messages, or that is not, nothing
  /// happens.
  void arrive(int index, const MPI_Status& status, int code) {
    for (Taken& taken : m_taken)
      if (taken.index == index && m_requests[index] == MPI_REQUEST_NULL) {
        taken.message.arrive(status, code);
        taken.arrived = true;
      }
  }
  /// So are the `done` of them that `indices` names, with the first of `statuses`.
  void arrive_some(int done, const int* indices, const MPI_Status* statuses, int code) {
    if (done == MPI_UNDEFINED) return;
    for (int i = 0; i < done; ++i) arrive(indices[i], statuses[i], error_of(statuses[i], code));
  }
  /// So are those whose requests are gone.
  void arrive_all(const MPI_Status* statuses, int code) {
    for (Taken& taken : m_taken) {
      if (m_requests[taken.index] != MPI_REQUEST_NULL) continue;
      const MPI_Status& status = statuses[taken.index];
      taken.message.arrive(status, error_of(status, code));
      taken.arrived = true;
    }
  }

 private:
  struct Taken {
    int index;
    MPI_Request request;
    Message message;
    bool arrived = false;
  };
  /// The error of one of several: calls that return another code set none in statuses.
  static int error_of(const MPI_Status& status, int code) {
    int is = MPI_SUCCESS;
    if (code != MPI_SUCCESS) PMPI_Error_class(code, &is);
    return is == MPI_ERR_IN_STATUS ? status.MPI_ERROR : code;
  }

  Requests& m_home;
  MPI_Request* m_requests;
  std::pmr::vector<Taken> m_taken;
};

}  // namespace heddle_mpi

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Requests: the packed messages on their way that a program has a request of. For the interposer.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
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
  using Messages = std::unordered_map<MPI_Request, Message>;

 public:
  /// A request and its message, or none: `key()` and `mapped()`.
  using Taken = Messages::node_type;

  [[nodiscard]] static bool none() noexcept { return s_count.load(std::memory_order_relaxed) == 0; }

  void put(MPI_Request request, Message message) {
    const std::lock_guard lock(m_mutex);
    if (m_spare.empty()) {
      m_messages.insert_or_assign(request, std::move(message));
      s_count.store(m_messages.size(), std::memory_order_relaxed);
      return;
    }
    Taken node = std::move(m_spare.back());
    m_spare.pop_back();
    node.key() = request;
    node.mapped() = std::move(message);
    insert(std::move(node));
  }
  /// Back to where it was taken from.
  void put(Taken taken) {
    const std::lock_guard lock(m_mutex);
    insert(std::move(taken));
  }
  [[nodiscard]] Taken take(MPI_Request request) {
    if (request == MPI_REQUEST_NULL) return {};
    const std::lock_guard lock(m_mutex);
    Taken taken = m_messages.extract(request);
    s_count.store(m_messages.size(), std::memory_order_relaxed);
    return taken;
  }
  /// The message is there: its memory serves the next ones.
  void finish(Taken taken) {
    taken.mapped() = {};
    const std::lock_guard lock(m_mutex);
    m_spare.push_back(std::move(taken));
  }
  [[nodiscard]] static std::size_t count() noexcept { return s_count; }

 private:
  /// Whatever had this request before is over.
  void insert(Taken taken) {
    auto [place, inserted, refused] = m_messages.insert(std::move(taken));
    if (!inserted) place->second = std::move(refused.mapped());
    s_count.store(m_messages.size(), std::memory_order_relaxed);
  }

  CallMutex m_mutex;
  Messages m_messages;
  std::vector<Taken> m_spare;
  static inline constinit std::atomic<std::size_t> s_count = 0;
};

/// The messages whose requests the program has freed before they were completed: their memory must
/// stay until they are, which nobody else asks for.
class FreedRequests {
 public:
  void put(MPI_Request request, Message message) {
    const std::lock_guard lock(m_mutex);
    m_freed.push_back({request, std::move(message)});
    std::erase_if(m_freed, [](Freed& freed) {
      int flag = 0;
      MPI_Status status;
      const int code = PMPI_Test(&freed.request, &flag, &status);
      if (flag != 0) freed.message.arrive(status, code);
      return flag != 0;
    });
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
};

/// The messages of an array of requests for as long as a call of MPI looks at them. What has not
/// arrived by then goes back.
class TakenRequests {
 public:
  TakenRequests(Requests& home, int count, MPI_Request* requests)
      : m_home(home), m_requests(requests) {
    m_taken.reserve(std::min(Requests::count(), static_cast<std::size_t>(std::max(count, 0))));
    for (int i = 0; i < count; ++i)
      if (Requests::Taken message = home.take(requests[i]))
        m_taken.push_back({i, std::move(message)});
  }
  TakenRequests(const TakenRequests&) = delete;
  TakenRequests& operator=(const TakenRequests&) = delete;
  ~TakenRequests() {
    for (Taken& taken : m_taken)
      if (taken.arrived)
        m_home.finish(std::move(taken.message));
      else
        m_home.put(std::move(taken.message));
  }

  [[nodiscard]] bool empty() const noexcept { return m_taken.empty(); }
  /// Request `index` is completed. For one that is not of the messages, nothing happens.
  void arrive(int index, const MPI_Status& status, int code) {
    for (Taken& taken : m_taken)
      if (taken.index == index) {
        taken.message.mapped().arrive(status, code);
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
      taken.message.mapped().arrive(status, error_of(status, code));
      taken.arrived = true;
    }
  }

 private:
  struct Taken {
    int index;
    Requests::Taken message;
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
  std::vector<Taken> m_taken;
};

}  // namespace heddle_mpi

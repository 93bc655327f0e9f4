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
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <mpi.h>

#include "call_mutex.hpp"
#include "messages.hpp"

namespace heddle_mpi {

/// By request; there is one object of it. A message is taken out before MPI may complete its
/// request, and put back if it did not: another thread may be given the same request as soon as MPI
/// has.
class Requests {
 public:
  [[nodiscard]] static bool none() noexcept { return s_count.load(std::memory_order_relaxed) == 0; }
  [[nodiscard]] static std::size_t count() noexcept { return s_count; }

  /// Whatever had this request before is over.
  void put(MPI_Request request, MessagePointer message) {
    message->request = request;
    const std::lock_guard lock(m_mutex);
    MessagePointer& near = m_near[place_of(request)];
    if (near == nullptr) {
      if (m_others.empty() || m_others.erase(request) == 0) count(+1);
      near = std::move(message);
    } else if (near->request == request) {
      near = std::move(message);
    } else if (m_others.insert_or_assign(request, std::move(message)).second) {
      count(+1);
    }
  }
  /// The message of a request, if it is of one.
  [[nodiscard]] MessagePointer take(MPI_Request request) {
    if (request == MPI_REQUEST_NULL) return nullptr;
    const std::lock_guard lock(m_mutex);
    MessagePointer taken;
    if (MessagePointer& near = m_near[place_of(request)];
        near != nullptr && near->request == request) {
      taken = std::move(near);
    } else if (!m_others.empty()) {
      if (auto other = m_others.extract(request)) taken = std::move(other.mapped());
    }
    if (taken != nullptr) count(-1);
    return taken;
  }

 private:
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
  std::array<MessagePointer, 256> m_near;  ///< each in its place, where that was free
  std::unordered_map<MPI_Request, MessagePointer> m_others;
  static inline constinit std::atomic<std::size_t> s_count = 0;
};

/// The messages whose requests the program has freed before they were completed: their memory must
/// stay until they are, which nobody else asks for.
class FreedRequests {
 public:
  void put(MessagePointer message) {
    {
      const std::lock_guard lock(m_mutex);
      m_freed.push_back(std::move(message));
      m_some = true;
    }
    collect();
  }
  /// Gives up the memory of those that are completed. MPI, which may call the program's handler of
  /// errors, is not called under the lock.
  void collect() {
    if (m_some.load(std::memory_order_relaxed)) collect_some();
  }
  /// Leaves them to MPI, which is to be ended: their memory stays.
  void let_go() {
    const std::lock_guard lock(m_mutex);
    for (const MessagePointer& freed : m_freed) PMPI_Request_free(&freed->request);
  }

 private:
  void collect_some() {
    std::vector<MessagePointer> freed;
    {
      const std::lock_guard lock(m_mutex);
      freed.swap(m_freed);
    }
    std::erase_if(freed, [](MessagePointer& each) {
      int flag = 0;
      MPI_Status status;
      const int code = PMPI_Test(&each->request, &flag, &status);
      if (flag != 0) each->arrive(status, code);
      return flag != 0;
    });
    const std::lock_guard lock(m_mutex);
    std::ranges::move(freed, std::back_inserter(m_freed));
    m_some = !m_freed.empty();
  }

  CallMutex m_mutex;
  std::vector<MessagePointer> m_freed;
  std::atomic<bool> m_some = false;  ///< of these
};

/// The messages of an array of requests for as long as a call of MPI looks at them. What has not
/// arrived by then goes back.
class TakenRequests {
 public:
  TakenRequests(Requests& home, int count, MPI_Request* requests)
      : m_home(home), m_requests(requests) {
    if (requests == nullptr) return;  // the library says so
    Message** last = &m_first;
    for (int i = 0; i < count; ++i)
      if (Message* const message = home.take(requests[i]).release(); message != nullptr) {
        message->index = i;
        message->next = nullptr;
        *last = message;
        last = &message->next;
      }
  }
  TakenRequests(const TakenRequests&) = delete;
  TakenRequests& operator=(const TakenRequests&) = delete;
  ~TakenRequests() {
    while (m_first != nullptr) {
      MessagePointer message(std::exchange(m_first, m_first->next));
      const MPI_Request request = message->request;
      if (request != MPI_REQUEST_NULL) m_home.put(request, std::move(message));
    }
  }

  [[nodiscard]] bool empty() const noexcept { return m_first == nullptr; }
  /// Request `index` is completed. For one that is not of the messages, or that is not, nothing
  /// happens.
  void arrive(int index, const MPI_Status& status, int code) {
    for (Message* message = m_first; message != nullptr; message = message->next)
      if (message->index == index && m_requests[index] == MPI_REQUEST_NULL)
        arrive(*message, status, code);
  }
  /// So are the `done` of them that `indices` names, with the first of `statuses`.
  void arrive_some(int done, const int* indices, const MPI_Status* statuses, int code) {
    if (done == MPI_UNDEFINED) return;
    for (int i = 0; i < done; ++i) arrive(indices[i], statuses[i], error_of(statuses[i], code));
  }
  /// So are those whose requests are gone.
  void arrive_all(const MPI_Status* statuses, int code) {
    for (Message* message = m_first; message != nullptr; message = message->next)
      if (m_requests[message->index] == MPI_REQUEST_NULL) {
        const MPI_Status& status = statuses[message->index];
        arrive(*message, status, error_of(status, code));
      }
  }

 private:
  /// One that has arrived is of no request.
  static void arrive(Message& message, const MPI_Status& status, int code) {
    message.arrive(status, code);
    message.request = MPI_REQUEST_NULL;
  }
  /// The error of one of several: calls that return another code set none in statuses.
  static int error_of(const MPI_Status& status, int code) {
    int is = MPI_SUCCESS;
    if (code != MPI_SUCCESS) PMPI_Error_class(code, &is);
    return is == MPI_ERR_IN_STATUS ? status.MPI_ERROR : code;
  }

  Requests& m_home;
  MPI_Request* m_requests;
  Message* m_first = nullptr;  ///< linked, in the order of their requests
};

}  // namespace heddle_mpi

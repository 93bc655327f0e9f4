// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/layout/pack.hpp>

#include "answers.hpp"
#include "interposer.hpp"

namespace heddle_mpi {

namespace {

/// The bytes that a call is about, if they are known, many enough, and not an error's: whatever
/// the library would complain about is left to it. A pointer, for as long as the datatype lives or
/// this object does: short messages feel every atomic operation.
struct Found {
  const Strided* strided = nullptr;
  SharedStrided made = {};

  Found(const void* memory, int count, MPI_Datatype type) {
    Interposer& all = interposer();
    const KnownType* const known = all.types.find(type);
    if (known == nullptr || count <= 0 || memory == MPI_BOTTOM) return;
    try {
      strided = known->items(count, all.gains, made);
      if (strided->bytes > static_cast<hd::Bytes>(std::numeric_limits<int>::max()))
        strided = nullptr;
    } catch (const hd::contract_error&) {  // so many items do not fit in memory
    }
  }
  explicit operator bool() const { return strided != nullptr; }
  const Strided* operator->() const { return strided; }
};

/// Memory of a call that returns when its message is done with it.
struct Stack {
  alignas(64) std::byte bytes[2048];
};

/// The same of a message, and memory for it, if it is to be packed: on the stack of a call that
/// blocks, as far as it goes.
struct Packed : Found {
  MessagePointer message;
  std::byte* data = nullptr;

  /// Without a stack of a call that does not block.
  Packed(Call call, const void* memory, int count, MPI_Datatype type, int peer, MPI_Comm comm,
         Stack* stack = nullptr)
      : Found(memory, count, type) {
    if (strided == nullptr || peer == MPI_PROC_NULL) return;
    Interposer& all = interposer();
    const bool receives = call == Call::recv || call == Call::irecv;
    const bool packs = stack != nullptr
                           ? strided->packs_blocking
                           : strided->packs_nonblocking && !all.types.completed_elsewhere();
    if (packs && (!receives || too_long_ends(comm))) {
      if (stack != nullptr && strided->bytes <= sizeof stack->bytes) {
        data = stack->bytes;
      } else {
        all.freed.collect();
        message = all.messages.take(strided->bytes);
        if (message != nullptr) data = message->packed;
      }
    }
    if (data != nullptr)
      all.counters.ours(call, strided->bytes);
    else
      all.counters.theirs(call);
  }
  explicit operator bool() const { return data != nullptr; }
  [[nodiscard]] const hd::StridedBlock& block() const { return strided->block; }
  [[nodiscard]] int size() const { return static_cast<int>(strided->bytes); }
};

/// Whether a message is left to the library, as is soon known of one item of a datatype that the
/// table does not pack.
bool leaves(Call call, int count, MPI_Datatype type) {
  Interposer& all = interposer();
  const KnownType* const known = all.types.find(type);
  if (known == nullptr) return true;
  const bool blocks = call == Call::send || call == Call::recv;
  if (count != 1 || (blocks ? known->one->packs_blocking : known->one->packs_nonblocking))
    return false;
  all.counters.theirs(call);
  return true;
}

/// Whether `bytes` more fit in a buffer of packed data of `size` from `position` on.
bool fits(hd::Bytes bytes, const void* buffer, int size, const int* position) {
  return buffer != nullptr && position != nullptr && *position >= 0 && size >= *position &&
         static_cast<hd::Bytes>(size - *position) >= bytes;
}

const std::byte* bytes_at(const void* memory) { return static_cast<const std::byte*>(memory); }
std::byte* bytes_at(void* memory) { return static_cast<std::byte*>(memory); }

/// Where the status of a single request goes.
class Status {
 public:
  explicit Status(MPI_Status* wanted) : m_status(wanted == MPI_STATUS_IGNORE ? &m_own : wanted) {}
  operator MPI_Status*() { return m_status; }
  const MPI_Status& operator*() const { return *m_status; }

 private:
  MPI_Status m_own{};
  MPI_Status* m_status;
};
/// Where those of several go.
class Statuses {
 public:
  Statuses(MPI_Status* wanted, int count) : m_statuses(wanted) {
    if (wanted != MPI_STATUSES_IGNORE) return;
    const auto size = static_cast<std::size_t>(count);
    if (size > m_few.size()) m_many.resize(size);
    m_statuses = size > m_few.size() ? m_many.data() : m_few.data();
    std::fill_n(m_statuses, size, MPI_Status{});
  }
  Statuses(const Statuses&) = delete;
  Statuses& operator=(const Statuses&) = delete;
  operator MPI_Status*() { return m_statuses; }
  const MPI_Status& operator[](int i) const { return m_statuses[i]; }

 private:
  std::array<MPI_Status, 16> m_few;  // short messages feel every call of malloc()
  std::vector<MPI_Status> m_many;
  MPI_Status* m_statuses;
};

}  // namespace

int pack(const void* from, int count, MPI_Datatype type, void* to, int size, int* position,
         MPI_Comm comm) {
  const Found found(from, count, type);
  if (!found) return PMPI_Pack(from, count, type, to, size, position, comm);
  if (!fits(found->bytes, to, size, position)) {
    interposer().counters.theirs(Call::pack);
    return PMPI_Pack(from, count, type, to, size, position, comm);
  }
  // The library looks at the other arguments, of nothing.
  const int code = PMPI_Pack(from, 0, type, to, size, position, comm);
  if (code != MPI_SUCCESS) return code;
  hd::pack(found->block, bytes_at(from), bytes_at(to) + *position);
  *position += static_cast<int>(found->bytes);
  interposer().counters.ours(Call::pack, found->bytes);
  return MPI_SUCCESS;
}

int unpack(const void* from, int size, int* position, void* to, int count, MPI_Datatype type,
           MPI_Comm comm) {
  const Found found(to, count, type);
  if (!found) return PMPI_Unpack(from, size, position, to, count, type, comm);
  if (!fits(found->bytes, from, size, position)) {
    interposer().counters.theirs(Call::unpack);
    return PMPI_Unpack(from, size, position, to, count, type, comm);
  }
  // The library looks at the other arguments, of nothing.
  const int code = PMPI_Unpack(from, size, position, to, 0, type, comm);
  if (code != MPI_SUCCESS) return code;
  hd::unpack(found->block, bytes_at(from) + *position, bytes_at(to));
  *position += static_cast<int>(found->bytes);
  interposer().counters.ours(Call::unpack, found->bytes);
  return MPI_SUCCESS;
}

int send(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  if (leaves(Call::send, count, type)) return PMPI_Send(from, count, type, to, tag, comm);
  Stack stack;
  const Packed message(Call::send, from, count, type, to, comm, &stack);
  if (!message) return PMPI_Send(from, count, type, to, tag, comm);
  hd::pack(message.block(), bytes_at(from), message.data);
  return PMPI_Send(message.data, message.size(), MPI_PACKED, to, tag, comm);
}

int recv(void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
         MPI_Status* wanted) {
  if (leaves(Call::recv, count, type)) return PMPI_Recv(to, count, type, from, tag, comm, wanted);
  Stack stack;
  const Packed message(Call::recv, to, count, type, from, comm, &stack);
  if (!message) return PMPI_Recv(to, count, type, from, tag, comm, wanted);
  // While it waits another thread may free the datatype.
  const SharedStrided kept(message.strided);
  Status status(wanted);
  const int code = PMPI_Recv(message.data, message.size(), MPI_PACKED, from, tag, comm, status);
  arrive(message.block(), message.data, bytes_at(to), *status, code);
  return code;
}

int isend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
          MPI_Request* request) {
  if (leaves(Call::isend, count, type))
    return PMPI_Isend(from, count, type, to, tag, comm, request);
  Packed packed(Call::isend, from, count, type, to, comm);
  if (!packed) return PMPI_Isend(from, count, type, to, tag, comm, request);
  hd::pack(packed.block(), bytes_at(from), packed.data);
  const int code = PMPI_Isend(packed.data, packed.size(), MPI_PACKED, to, tag, comm, request);
  if (code == MPI_SUCCESS) interposer().requests.put(*request, std::move(packed.message));
  return code;
}

int irecv(void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
          MPI_Request* request) {
  if (leaves(Call::irecv, count, type))
    return PMPI_Irecv(to, count, type, from, tag, comm, request);
  Packed packed(Call::irecv, to, count, type, from, comm);
  if (!packed) return PMPI_Irecv(to, count, type, from, tag, comm, request);
  // Before another thread may know that it has begun, and free the datatype.
  packed.message->strided = SharedStrided(packed.strided);
  packed.message->to = bytes_at(to);
  const int code = PMPI_Irecv(packed.data, packed.size(), MPI_PACKED, from, tag, comm, request);
  if (code == MPI_SUCCESS) interposer().requests.put(*request, std::move(packed.message));
  return code;
}

int wait(MPI_Request* request, MPI_Status* wanted) {
  TakenRequests taken(interposer().requests, 1, request);
  if (taken.empty()) return PMPI_Wait(request, wanted);
  Status status(wanted);
  const int code = PMPI_Wait(request, status);
  if (*request == MPI_REQUEST_NULL) taken.arrive(0, *status, code);
  return code;
}

int test(MPI_Request* request, int* flag, MPI_Status* wanted) {
  TakenRequests taken(interposer().requests, 1, request);
  if (taken.empty()) return PMPI_Test(request, flag, wanted);
  Status status(wanted);
  const int code = PMPI_Test(request, flag, status);
  if (*request == MPI_REQUEST_NULL) taken.arrive(0, *status, code);
  return code;
}

int waitall(int count, MPI_Request* requests, MPI_Status* wanted) {
  TakenRequests taken(interposer().requests, count, requests);
  if (taken.empty()) return PMPI_Waitall(count, requests, wanted);
  Statuses statuses(wanted, count);
  const int code = PMPI_Waitall(count, requests, statuses);
  taken.arrive_all(statuses, code);
  return code;
}

int testall(int count, MPI_Request* requests, int* flag, MPI_Status* wanted) {
  TakenRequests taken(interposer().requests, count, requests);
  if (taken.empty()) return PMPI_Testall(count, requests, flag, wanted);
  Statuses statuses(wanted, count);
  const int code = PMPI_Testall(count, requests, flag, statuses);
  taken.arrive_all(statuses, code);
  return code;
}

int waitany(int count, MPI_Request* requests, int* index, MPI_Status* wanted) {
  TakenRequests taken(interposer().requests, count, requests);
  if (taken.empty() || index == nullptr) return PMPI_Waitany(count, requests, index, wanted);
  *index = MPI_UNDEFINED;  // for where an error leaves it as it is
  Status status(wanted);
  const int code = PMPI_Waitany(count, requests, index, status);
  taken.arrive(*index, *status, code);
  return code;
}

int testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* wanted) {
  TakenRequests taken(interposer().requests, count, requests);
  if (taken.empty() || index == nullptr || flag == nullptr)
    return PMPI_Testany(count, requests, index, flag, wanted);
  *flag = 0;  // for where an error leaves it as it is
  Status status(wanted);
  const int code = PMPI_Testany(count, requests, index, flag, status);
  if (*flag != 0) taken.arrive(*index, *status, code);
  return code;
}

int waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* wanted) {
  TakenRequests taken(interposer().requests, count, requests);
  if (taken.empty() || done == nullptr)
    return PMPI_Waitsome(count, requests, done, indices, wanted);
  *done = MPI_UNDEFINED;  // for where an error leaves it as it is
  Statuses statuses(wanted, count);
  const int code = PMPI_Waitsome(count, requests, done, indices, statuses);
  taken.arrive_some(*done, indices, statuses, code);
  return code;
}

int testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* wanted) {
  TakenRequests taken(interposer().requests, count, requests);
  if (taken.empty() || done == nullptr)
    return PMPI_Testsome(count, requests, done, indices, wanted);
  *done = MPI_UNDEFINED;  // for where an error leaves it as it is
  Statuses statuses(wanted, count);
  const int code = PMPI_Testsome(count, requests, done, indices, statuses);
  taken.arrive_some(*done, indices, statuses, code);
  return code;
}

int request_get_status(MPI_Request request, int* flag, MPI_Status* wanted) {
  Requests& requests = interposer().requests;
  MessagePointer taken = requests.take(request);
  if (taken == nullptr) return PMPI_Request_get_status(request, flag, wanted);
  if (flag != nullptr) *flag = 0;  // for where an error leaves it as it is
  Status status(wanted);
  const int code = PMPI_Request_get_status(request, flag, status);
  if (flag != nullptr && *flag != 0) taken->arrive(*status, code);
  requests.put(request, std::move(taken));
  return code;
}

int request_free(MPI_Request* request) {
  if (request == nullptr) return PMPI_Request_free(request);
  Interposer& all = interposer();
  MessagePointer taken = all.requests.take(*request);
  if (taken == nullptr) return PMPI_Request_free(request);
  all.freed.put(std::move(taken));
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

}  // namespace heddle_mpi

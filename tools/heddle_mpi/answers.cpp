// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/layout/pack.hpp>

#include "answers.hpp"
#include "interposer.hpp"

namespace heddle_mpi {

namespace {

template <Call call>
inline constexpr bool blocks = call == Call::send || call == Call::recv;
template <Call call>
inline constexpr bool receives = call == Call::recv || call == Call::irecv;
template <Call call>
bool packs(const Strided& strided) {
  return blocks<call> ? strided.packs_blocking : strided.packs_nonblocking;
}

/// Whether a message is left to the library, as is soon known of one item.
template <Call call>
bool leaves(Interposer& all, const KnownType* known, int count) {
  if (known == nullptr) return true;
  if (count != 1 || packs<call>(*known->one.get())) return false;
  all.counters.theirs(call);
  return true;
}

/// Which bytes a message is, and memory for them, if it is to be packed: of a call that blocks, on
/// its stack as far as that goes. It refers to what is known of the datatype, and counts no
/// reference: short messages feel every atomic operation. Errors are left to the library.
template <Call call>
class Packed {
 public:
  Packed(Interposer& all, const KnownType& known, const void* memory, int count, int peer,
         MPI_Comm comm) {
    if (memory == MPI_BOTTOM || peer == MPI_PROC_NULL) return;
    const Strided* const strided = known.items(count, all.gains, m_made);
    if (strided == nullptr) return;
    const bool ours = packs<call>(*strided) && (blocks<call> || !all.types.completed_elsewhere()) &&
                      (!receives<call> || too_long_ends(comm));
    if (ours) m_data = room_for(strided->bytes, all);
    if (m_data != nullptr) {
      m_strided = strided;
      all.counters.ours(call, strided->bytes);
    } else {
      all.counters.theirs(call);
    }
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  explicit operator bool() const { return m_data != nullptr; }
  [[nodiscard]] const Strided* strided() const { return m_strided; }
  [[nodiscard]] const hd::StridedBlock& block() const { return m_strided->block; }
  [[nodiscard]] double gain() const {
    return blocks<call> ? m_strided->gain_blocking : m_strided->gain_nonblocking;
  }
  [[nodiscard]] std::byte* data() const { return m_data; }
  [[nodiscard]] int size() const { return static_cast<int>(m_strided->bytes); }
  /// Of a call that does not block.
  [[nodiscard]] Message& message() const { return *m_message; }
  [[nodiscard]] MessagePointer release() { return std::move(m_message); }

 private:
  std::byte* room_for(hd::Bytes bytes, Interposer& all) {
    if (blocks<call> && bytes <= sizeof m_stack) return m_stack;
    all.freed.collect();
    m_message = all.messages.take(bytes);
    return m_message != nullptr ? m_message->packed : nullptr;
  }

  const Strided* m_strided = nullptr;
  std::byte* m_data = nullptr;
  SharedStrided m_made;
  MessagePointer m_message;
  alignas(blocks<call> ? 64 : 1) std::byte m_stack[blocks<call> ? 2048 : 1];
};

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
  Interposer& all = interposer();
  const KnownType* const known = all.types.find(type);
  SharedStrided made;
  const Strided* const strided =
      known == nullptr || from == MPI_BOTTOM ? nullptr : known->items(count, all.gains, made);
  if (strided == nullptr) return PMPI_Pack(from, count, type, to, size, position, comm);
  if (!fits(strided->bytes, to, size, position)) {
    all.counters.theirs(Call::pack);
    return PMPI_Pack(from, count, type, to, size, position, comm);
  }
  // The library looks at the other arguments, of nothing.
  const int code = PMPI_Pack(from, 0, type, to, size, position, comm);
  if (code != MPI_SUCCESS) return code;
  hd::pack(strided->block, bytes_at(from), bytes_at(to) + *position);
  *position += static_cast<int>(strided->bytes);
  all.counters.ours(Call::pack, strided->bytes);
  return MPI_SUCCESS;
}

int unpack(const void* from, int size, int* position, void* to, int count, MPI_Datatype type,
           MPI_Comm comm) {
  Interposer& all = interposer();
  const KnownType* const known = all.types.find(type);
  SharedStrided made;
  const Strided* const strided =
      known == nullptr || to == MPI_BOTTOM ? nullptr : known->items(count, all.gains, made);
  if (strided == nullptr) return PMPI_Unpack(from, size, position, to, count, type, comm);
  if (!fits(strided->bytes, from, size, position)) {
    all.counters.theirs(Call::unpack);
    return PMPI_Unpack(from, size, position, to, count, type, comm);
  }
  // The library looks at the other arguments, of nothing.
  const int code = PMPI_Unpack(from, size, position, to, 0, type, comm);
  if (code != MPI_SUCCESS) return code;
  hd::unpack(strided->block, bytes_at(from) + *position, bytes_at(to));
  *position += static_cast<int>(strided->bytes);
  all.counters.ours(Call::unpack, strided->bytes);
  return MPI_SUCCESS;
}

int send(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  Interposer& all = interposer();
  const KnownType* const known = all.types.find(type);
  if (leaves<Call::send>(all, known, count)) return PMPI_Send(from, count, type, to, tag, comm);
  const Packed<Call::send> packed(all, *known, from, count, to, comm);
  if (!packed) return PMPI_Send(from, count, type, to, tag, comm);
  all.counters.timed(packed.gain(),
                     [&] { hd::pack(packed.block(), bytes_at(from), packed.data()); });
  return PMPI_Send(packed.data(), packed.size(), MPI_PACKED, to, tag, comm);
}

int recv(void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
         MPI_Status* wanted) {
  Interposer& all = interposer();
  const KnownType* const known = all.types.find(type);
  if (leaves<Call::recv>(all, known, count))
    return PMPI_Recv(to, count, type, from, tag, comm, wanted);
  const Packed<Call::recv> packed(all, *known, to, count, from, comm);
  if (!packed) return PMPI_Recv(to, count, type, from, tag, comm, wanted);
  // While it waits another thread may free the datatype.
  const SharedStrided kept(packed.strided());
  Status status(wanted);
  const int code = PMPI_Recv(packed.data(), packed.size(), MPI_PACKED, from, tag, comm, status);
  arrive(packed.block(), packed.data(), bytes_at(to), *status, code, packed.gain(), all.counters);
  return code;
}

int isend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
          MPI_Request* request) {
  Interposer& all = interposer();
  const KnownType* const known = all.types.find(type);
  if (leaves<Call::isend>(all, known, count))
    return PMPI_Isend(from, count, type, to, tag, comm, request);
  Packed<Call::isend> packed(all, *known, from, count, to, comm);
  if (!packed) return PMPI_Isend(from, count, type, to, tag, comm, request);
  all.counters.timed(packed.gain(),
                     [&] { hd::pack(packed.block(), bytes_at(from), packed.data()); });
  const int code = PMPI_Isend(packed.data(), packed.size(), MPI_PACKED, to, tag, comm, request);
  if (code == MPI_SUCCESS) all.requests.put(*request, packed.release());
  return code;
}

int irecv(void* to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
          MPI_Request* request) {
  Interposer& all = interposer();
  const KnownType* const known = all.types.find(type);
  if (leaves<Call::irecv>(all, known, count))
    return PMPI_Irecv(to, count, type, from, tag, comm, request);
  Packed<Call::irecv> packed(all, *known, to, count, from, comm);
  if (!packed) return PMPI_Irecv(to, count, type, from, tag, comm, request);
  // Before another thread may know that it has begun, and free the datatype.
  packed.message().strided = SharedStrided(packed.strided());
  packed.message().to = bytes_at(to);
  const int code = PMPI_Irecv(packed.data(), packed.size(), MPI_PACKED, from, tag, comm, request);
  if (code == MPI_SUCCESS) all.requests.put(*request, packed.release());
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

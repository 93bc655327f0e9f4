// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of communicator.hpp.

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/agreement.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE bool impl::mpi_is_up() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

struct Communicator::Attached {
  const std::type_info* type;
  std::shared_ptr<void> object;
};

HEDDLE_FULL_INLINE Communicator::Communicator() = default;

HEDDLE_FULL_INLINE Communicator::Communicator(MPI_Comm original) {
  constexpr const char* where = "heddle::Communicator";
  expects(impl::mpi_is_up(), [&] {
    return ErrorInfo{where, "MPI is not running",
                     "MPI is not initialized yet, or already finalized",
                     "construct a heddle::Environment first"};
  });
  expects(original != MPI_COMM_NULL, [&] {
    return ErrorInfo{where, "the communicator is null", "MPI_COMM_NULL was given",
                     "only ranks that belong to a communicator can use it"};
  });
  int inter = 0;
  check(MPI_Comm_test_inter(original, &inter), where);
  expects(inter == 0, [&] {
    return ErrorInfo{where,
                     "an inter-communicator has no single set of ranks",
                     {},
                     "merge it with MPI_Intercomm_merge"};
  });
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(original, &copy), where);
  adopt(copy);
}

HEDDLE_FULL_INLINE Communicator::Communicator(Communicator&& other) noexcept
    : m_comm(std::exchange(other.m_comm, MPI_COMM_NULL)),
      m_rank(other.m_rank),
      m_size(std::exchange(other.m_size, 0)),
      m_left(std::exchange(other.m_left, false)),
      m_attached(std::move(other.m_attached)) {}

HEDDLE_FULL_INLINE Communicator& Communicator::operator=(Communicator&& other) noexcept {
  std::swap(m_comm, other.m_comm);
  std::swap(m_rank, other.m_rank);
  std::swap(m_size, other.m_size);
  std::swap(m_left, other.m_left);
  std::swap(m_attached, other.m_attached);
  return *this;
}

HEDDLE_FULL_INLINE Communicator::~Communicator() {
  m_attached.clear();
  if (m_comm != MPI_COMM_NULL && !m_left && impl::mpi_is_up()) MPI_Comm_free(&m_comm);
}

HEDDLE_FULL_INLINE void* Communicator::find(const std::type_info& type) const noexcept {
  for (const Attached& each : m_attached)
    if (*each.type == type) return each.object.get();
  return nullptr;
}

HEDDLE_FULL_INLINE void* Communicator::attach(const std::type_info& type,
                                              std::shared_ptr<void> object) const {
  m_attached.push_back({&type, std::move(object)});
  return m_attached.back().object.get();
}

HEDDLE_FULL_INLINE Communicator Communicator::split(int color, int key) const {
  constexpr const char* where = "heddle::Communicator::split";
  impl::check_color(*this, color, where);
  Communicator part;
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_split(m_comm, color, key, &made), where);
  if (made != MPI_COMM_NULL) part.adopt(made);
  return part;
}

HEDDLE_FULL_INLINE std::ostream& operator<<(std::ostream& out, const Communicator& comm) {
  return out << "rank " << comm.m_rank << " of " << comm.m_size;
}

HEDDLE_FULL_INLINE void Communicator::refuse_empty(std::string_view where) {
  throw contract_error({std::string(where), "the communicator is empty",
                        "it was moved from or released, or split() put this rank in no part",
                        "make the call only on ranks whose communicator has a size() above 0"});
}

HEDDLE_FULL_INLINE void Communicator::adopt(MPI_Comm made) {
  m_comm = made;
  MPI_Comm_set_errhandler(m_comm, MPI_ERRORS_RETURN);
  int rank = 0;
  MPI_Comm_rank(m_comm, &rank);
  MPI_Comm_size(m_comm, &m_size);
  m_rank = Rank{rank};
}

}  // namespace heddle::inline v0

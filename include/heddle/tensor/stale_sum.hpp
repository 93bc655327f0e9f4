// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StaleSum: sums over ranks that are some calls old, corrected by this rank's own changes.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/internal/meet.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/map.hpp>
#include <heddle/schedule/redistribution/staleness.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The function that corrects an old sum by the change of this rank's addend since then.
struct CorrectSum {
  /// Returns stale + (fresh - old).
  template <class T>
  KOKKOS_FUNCTION T operator()(const T& stale, const T& fresh, const T& old) const {
    return stale + (fresh - old);
  }
};

}  // namespace impl

/// The corrections that a StaleSum applies to an old sum.
enum class Correction : std::uint8_t {
  none,  ///< none: the old sum
  own    ///< replaces this rank's old addend by the present one
};

/// Sums values over the ranks of a communicator without waiting for the other ranks. It is for
/// values that change slowly from call to call, such as the moments of an iteration that converges.
/// The result of a call uses the addends of `age` calls ago. With Correction::own, only the recent
/// changes of the other ranks are missing. This is the corrected group normalisation of
/// DistriFusion (Li et al., 2024). A variance computed from such moments may be negative; the
/// caller should then use the variance of its own part.
///
///     hd::StaleSum<double, Exec> sums(comm, 2, {.age = 1, .warmup = 4});
///     sums(exec, moments);  // moments of this rank before the call, of all ranks after it
///
/// With age 0, in the first calls and in the warm-up it is equal to all_reduce(). All ranks must
/// make the same calls. The communicator must outlive the object.
template <class T, class Space>
class StaleSum {
 public:
  /// The View that is summed element by element.
  using View = Kokkos::View<T*, typename Space::memory_space>;

  /// Sums `size` values of each rank.
  /// @throws contract_error if the age or the warm-up is negative, or if `correction` is none of
  ///         the enumerators; at the contract level "communication" also if the ranks construct
  ///         different sums.
  StaleSum(const Communicator& comm, std::size_t size, const schedule::Staleness& staleness,
           Correction correction = Correction::own)
      : m_comm(&comm), m_staleness(staleness), m_correction(correction) {
    impl::check_together(
        comm, where,
        [&] {
          schedule::impl::expect_valid(staleness, where);
          impl::expect_enumerator(where, "correction", correction, Correction::own);
        },
        [&] {
          return impl::CollectiveCall{
              where,
              {{"values", text(size)},
               {"staleness", text(staleness)},
               {"correction", correction == Correction::own ? "own" : "none"}}};
        });
    for (int slot = 0; slot <= staleness.age; ++slot)
      m_slots.push_back({View("heddle::tensor::stale_own", size),
                         View("heddle::tensor::stale_sum", size), Request()});
  }

  /// Replaces this rank's `values` by the sums. Waits for the work of `space` first, and returns
  /// when the sums have been written.
  /// @throws contract_error if the number of values has changed, and the errors of all_reduce().
  template <class Exec>
  requires Kokkos::is_execution_space_v<Exec>
  void operator()(const Exec& space, const View& values, const CallOptions& options = {}) {
    const auto check = [&] {
      expects(values.size() == m_slots.front().own.size(), [&] {
        return ErrorInfo{where, "the number of values has changed",
                         text(values.size(), ", expected ", m_slots.front().own.size()),
                         "use one StaleSum for each number of values"};
      });
    };
    impl::agree(*m_comm, where, options.wait.watchdog, check, [&] {
      return impl::CollectiveCall{where, {}};
    });
    const std::int64_t call = ++m_calls;
    Slot& now = slot_of(call);
    Kokkos::deep_copy(space, now.own, values);
    Kokkos::deep_copy(space, now.sum, values);
    // nvcc takes the reference that is returned for a Request that nobody takes.
    static_cast<void>(now.request = all_reduce<Request>(space, now.sum, Sum{}, *m_comm, options));
    Slot& due = slot_of(call - m_staleness.of_call(call));
    due.request.wait();
    if (m_correction == Correction::own && &due != &now)
      kernel::map(space, impl::CorrectSum{}, values, due.sum, now.own, due.own);
    else
      Kokkos::deep_copy(space, values, due.sum);
    space.fence("heddle::tensor::stale_sum");
  }

 private:
  static constexpr const char* where = "heddle::StaleSum";

  /// A sum in flight.
  struct Slot {
    View own;  ///< this rank's addend
    View sum;
    Request request;
  };

  /// Returns the slot of call `call`, counted from 1. Completed calls used it before.
  [[nodiscard]] Slot& slot_of(std::int64_t call) {
    return m_slots[static_cast<std::size_t>(call - 1) % m_slots.size()];
  }

  const Communicator* m_comm;
  schedule::Staleness m_staleness;
  Correction m_correction;
  std::vector<Slot> m_slots;
  std::int64_t m_calls = 0;
};

}  // namespace heddle::inline v0

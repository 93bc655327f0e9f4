// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShareCosts: prices the passes of a stage by the samples that its rank computes, for Schedules
/// whose orders have StageShares.

#include <cstdint>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/samples_of.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0 {

/// Costs in proportion to samples. F, I, W and B cost the share of a microbatch that they compute,
/// see samples_of(). All other actions cost the same as with `whole`; a move has the bytes of its
/// samples. Passes of a schedule without shares cost a whole microbatch.
template <Costs C>
class ShareCosts {
 public:
  using Time = typename C::Time;  ///< the type of costs

  /// Constructs the costs. `whole` prices the passes of a microbatch of `samples` samples.
  /// @throws contract_error if `samples` is below 1.
  ShareCosts(C whole, std::int64_t samples) : m_whole(std::move(whole)), m_samples(samples) {
    expects(samples >= 1, [&] {
      return ErrorInfo{"heddle::ShareCosts", "a microbatch has at least one sample",
                       text("samples = ", samples)};
    });
  }

  /// Checks all costs. @throws contract_error as `whole` does.
  void check() const requires CheckedCosts<C> { m_whole.check(); }
  /// Returns the Machine whose links price the moves.
  [[nodiscard]] const Machine& machine() const noexcept requires SharingCosts<C> {
    return m_whole.machine();
  }
  /// Returns the cost of an action that is not a move.
  [[nodiscard]] Time time(const Schedule& schedule, ActionId id) const {
    return share(schedule, id, m_whole.time(schedule, id));
  }
  /// Returns the cost of a fused pair. Each half of the pair counts in proportion to its own cost.
  [[nodiscard]] Time fused(const Schedule& schedule, ActionId id) const requires FusedCosts<C> {
    const ActionId next{+id + 1};
    const Time both = m_whole.fused(schedule, id);
    const Time whole[] = {m_whole.time(schedule, id), m_whole.time(schedule, next)};
    const Time shares[] = {share(schedule, id, whole[0]), share(schedule, next, whole[1])};
    if (shares[0] == whole[0] && shares[1] == whole[1]) return both;
    return both * (shares[0] + shares[1]) / (whole[0] + whole[1]);
  }
  /// Returns the cost of a move.
  [[nodiscard]] Transfer<Time> transfer(const Schedule& schedule, ActionId id) const {
    return m_whole.transfer(schedule, id);
  }
  /// Returns the time for which a move keeps a shared resource.
  [[nodiscard]] Time occupancy(const Schedule& schedule, ActionId id,
                               const Shared& shared) const requires SharingCosts<C> {
    return m_whole.occupancy(schedule, id, shared);
  }

 private:
  [[nodiscard]] Time share(const Schedule& schedule, ActionId id, Time whole) const {
    const std::int64_t samples = schedule::samples_of(schedule, id);
    if (samples == 0 || samples == m_samples) return whole;
    return whole * static_cast<Time>(samples) / static_cast<Time>(m_samples);
  }

  C m_whole;
  std::int64_t m_samples;
};

}  // namespace heddle::inline v0

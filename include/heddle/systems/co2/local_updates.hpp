// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LocalUpdates: trains by local steps and an outer update whose average may be one round late. It
/// is the model that runs systems::local_steps().

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/combine.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::systems {

/// The outer update of LocalUpdates, with the defaults of CO2 (Sun et al., ICLR 2024).
struct OuterUpdate {
  double momentum = 0.5;    ///< the share of the old momentum that is kept, from 0 to below 1
  double rate = 1;          ///< the learning rate of the outer update, finite and above 0
  bool gap_penalty = true;  ///< whether the distance to a late average is divided by the gap
  double clip = 1;          ///< the largest magnitude of an element of the momentum, above 0
};

/// The plain average as an outer update: the shared parameters become the average.
inline constexpr OuterUpdate plain_average{.momentum = 0,
                                           .rate = 1,
                                           .gap_penalty = false,
                                           .clip = std::numeric_limits<double>::infinity()};

/// A model that trains data-parallel with few messages. A rank takes local steps on its own
/// parameters. At the end of a round all ranks move the shared parameters x towards the average of
/// the ranks' parameters, and continue from x. There is one object per rank:
///
///     hd::systems::LocalUpdates<double> model(start, [&](std::span<double> parameters,
///     std::int64_t step) {
///       ...  // one step of an optimiser on the data of this rank
///     });
///     const auto round = hd::systems::local_steps({.ranks = 4, .steps = 12, .bytes = n * 8});
///     hd::Runner train(model, round, transport);
///     for (int i = 0; i < 100; ++i) train.step();
///     use(model.parameters());
///
/// With the average a of the parameters the outer update is
///
///     m = clip(momentum m + (x - a) / gap, -clip, clip);  x = x - rate m
///
/// If the Schedule has a delay of 1, a is the average at the end of the round before. At the end of
/// the first round there is none, so every rank continues from its own parameters and x stays. The
/// gap penalty of a late average is 1 + |x - y| / |y - a|, where y are the shared parameters before
/// the last outer update. It is thus 1 plus the way of a shared parameter while the sum was in
/// flight, in units of its way in the averaged round. It is computed for each element, so it does
/// not depend on how ranks, stages and blocks divide the parameters. The paper defines the penalty
/// by the same two quantities, but its norm was not available to us. Without a delay the gap is 1.
///
/// All ranks must begin with the same parameters. Shared parameters are the same on all ranks, bit
/// by bit, because one rank computes each block. A rank stores two numbers for each parameter, and
/// two more for each one of its block.
template <std::floating_point T>
class LocalUpdates {
 public:
  /// A local step: changes the parameters. The number counts this rank's steps, from 0 on.
  using Step = std::function<void(std::span<T> parameters, std::int64_t number)>;

  /// Constructs the model of a rank that begins with the parameters `start`.
  /// @throws contract_error if a member of `outer` is out of range.
  LocalUpdates(std::vector<T> start, Step step, const OuterUpdate& outer = {})
      : m_step(std::move(step)),
        m_outer(outer),
        m_parameters(std::move(start)),
        m_data(m_parameters.size(), T{0}) {
    expects(m_step != nullptr, [] {
      return ErrorInfo{where, "the local step is an empty function"};
    });
    expects(
        outer.momentum >= 0 && outer.momentum < 1 && outer.rate > 0 && std::isfinite(outer.rate) &&
            outer.clip > 0,
        [&] {
          return ErrorInfo{
              where, "the outer update is not valid",
              text("momentum = ", outer.momentum, ", rate = ", outer.rate, ", clip = ", outer.clip),
              "use a momentum in [0, 1), a finite rate above 0 and a clip above 0"};
        });
  }

  /// Performs one action of systems::local_steps().
  void operator()(const Task& task) {
    switch (task.kind()) {
      case Kind::user: m_step(m_parameters, m_steps++); return;
      case Kind::combine: combine_on_host(task); return;
      case Kind::update: break;
      default:
        expects(false, [&] {
          return ErrorInfo{where, "the schedule has an action that local_steps() does not make",
                           std::string(to_string(task.kind()))};
        });
    }
    if (task.has("outer")) {
      if (m_has_sum) move(task.get<T>("data"), task.get<T>("outer"), task.schedule().ranks());
      return;
    }
    // A sum begins where "data" is written, ends where it is read, and both where it is updated.
    const bool is_written = task.uses().back().access == Access::write;
    const Access access = is_written ? Access::write : task.uses().front().access;
    m_is_late = access == Access::update;
    const bool has_moved = m_has_sum && !is_written;
    m_has_sum = true;
    if (!has_moved)
      std::copy(m_parameters.begin(), m_parameters.end(), m_data.begin());
    else if (m_is_late)
      std::swap_ranges(m_parameters.begin(), m_parameters.end(), m_data.begin());
    else
      std::copy(m_data.begin(), m_data.end(), m_parameters.begin());
  }

  /// Returns the memory of a buffer of this model, or null for other buffers.
  /// @throws contract_error if the buffer has other bytes than the parameters.
  [[nodiscard]] std::byte* memory(const Schedule& schedule, BufferId id) {
    const std::string_view role = schedule[schedule[id].label];
    if (role != "parameters" && role != "outer" && role != "data") return nullptr;
    const Share block =
        even_share(m_data.size(), static_cast<std::size_t>(schedule.ranks()), +schedule[id].rank);
    const std::size_t count = role == "outer" ? 2 * block.count : m_data.size();
    expects(schedule[id].bytes == count * sizeof(T) && schedule[id].type == scalar_of<T>, [&] {
      return ErrorInfo{
          where, "the schedule is for other parameters",
          text("'", role, "' has ", schedule[id].bytes, " bytes of ", schedule[id].type,
               ", expected ", count * sizeof(T), " of ", scalar_of<T>),
          "set LocalStepsOptions::bytes and type"};
    });
    if (role == "outer" && m_shared.size() != count) {
      m_shared.assign(count, T{0});
      std::copy_n(m_parameters.begin() + static_cast<std::ptrdiff_t>(block.first), block.count,
                  m_shared.begin());
    }
    std::vector<T>& values = role == "parameters" ? m_parameters
                             : role == "outer"    ? m_shared
                                                  : m_data;
    return reinterpret_cast<std::byte*>(values.data());
  }

  /// Returns the parameters of this rank. Between two rounds, and behind the first outer update,
  /// they are those that all ranks share.
  [[nodiscard]] std::span<const T> parameters() const noexcept { return m_parameters; }

 private:
  static constexpr const char* where = "heddle::systems::LocalUpdates";

  /// Moves a block of the shared parameters towards the average, and writes them to `sums`.
  /// `state` is the block, then its momentum.
  void move(std::span<T> sums, std::span<T> state, int ranks) const {
    const std::span<T> x = state.first(sums.size());
    const std::span<T> m = state.last(sums.size());
    const T rate = static_cast<T>(m_outer.rate);
    const T momentum = static_cast<T>(m_outer.momentum);
    const T clip = static_cast<T>(m_outer.clip);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const T average = sums[i] / static_cast<T>(ranks);
      T step = x[i] - average;
      if (m_is_late && m_outer.gap_penalty) {
        const T moved = std::abs(rate * m[i]);
        const T progress = std::abs(x[i] + rate * m[i] - average);
        if (moved > 0) step *= progress / (progress + moved);
      }
      m[i] = std::clamp(momentum * m[i] + step, -clip, clip);
      x[i] -= rate * m[i];
      sums[i] = x[i];
    }
  }

  Step m_step;
  OuterUpdate m_outer;
  std::vector<T> m_parameters;
  std::vector<T> m_data;    ///< the sum, and the shared parameters that come of it
  std::vector<T> m_shared;  ///< this rank's block of the shared parameters, then its momentum
  std::int64_t m_steps = 0;
  bool m_has_sum = false;  ///< whether "data" is being summed
  bool m_is_late = false;  ///< whether the sum is of the round before
};

}  // namespace heddle::inline v0::systems

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
///     use(model.shared());
///
/// With the average a of the parameters the outer update is
///
///     m = clip(momentum m + (x - a) / gap, -clip, clip);  x = x - rate m
///
/// If the Schedule has a delay of 1, a is the average at the end of the round before. At the end of
/// the first round there is none, so every rank continues from its own parameters and x stays. The
/// gap penalty of a late average is 1 + |x - y| / |y - a|, where y are the shared parameters before
/// the last outer update. It is thus 1 plus the way of the shared parameters while the sum was in
/// flight, in units of the way of the averaged round. The norms are Euclidean, over all parameters.
/// The paper defines the penalty by the same two quantities, but its norm was not available to us.
/// Without a delay the gap is 1.
///
/// All ranks must begin with the same parameters. Shared parameters are the same on all ranks, bit
/// by bit, because every rank computes them from the same sum.
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
        m_shared(2 * m_parameters.size(), T{0}),
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
    std::copy(m_parameters.begin(), m_parameters.end(), m_shared.begin());
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
    if (!task.has("outer")) return store();  // before a sum that is not late
    const bool is_late = task.uses().front().access == Access::update;
    if (is_late && !m_has_sum) {
      m_has_sum = true;
      return store();
    }
    move(task.schedule().ranks(), is_late);
  }

  /// Returns the memory of a buffer of this model, or null for other buffers.
  /// @throws contract_error if the buffer has other bytes than the parameters.
  [[nodiscard]] std::byte* memory(const Schedule& schedule, BufferId id) {
    const std::string_view role = schedule[schedule[id].label];
    std::vector<T>* const values = role == "parameters" ? &m_parameters
                                   : role == "outer"    ? &m_shared
                                   : role == "data"     ? &m_data
                                                        : nullptr;
    if (values == nullptr) return nullptr;
    expects(schedule[id].bytes == values->size() * sizeof(T) && schedule[id].type == scalar_of<T>,
            [&] {
              return ErrorInfo{
                  where, "the schedule is for other parameters",
                  text("'", role, "' has ", schedule[id].bytes, " bytes of ", schedule[id].type,
                       ", expected ", values->size() * sizeof(T), " of ", scalar_of<T>),
                  "set LocalStepsOptions::bytes and type"};
            });
    return reinterpret_cast<std::byte*>(values->data());
  }

  /// Returns the parameters that all ranks share, after the last outer update.
  [[nodiscard]] std::span<const T> shared() const {
    return std::span(m_shared).first(m_data.size());
  }
  /// Returns the parameters of this rank.
  [[nodiscard]] std::span<const T> parameters() const noexcept { return m_parameters; }
  /// Returns the gap penalty of the last outer update.
  [[nodiscard]] double gap() const noexcept { return m_gap; }

 private:
  static constexpr const char* where = "heddle::systems::LocalUpdates";

  /// Stores the parameters for the next sum.
  void store() { std::copy(m_parameters.begin(), m_parameters.end(), m_data.begin()); }

  /// Moves the shared parameters towards the average, and the parameters to them. If the average is
  /// late, stores the parameters of this rank for the next sum.
  void move(int ranks, bool is_late) {
    const std::size_t n = m_data.size();
    const std::span<T> x = std::span(m_shared).first(n);
    const std::span<T> m = std::span(m_shared).subspan(n);
    const T rate = static_cast<T>(m_outer.rate);
    double moved = 0;
    double progress = 0;
    // Other ranks may still receive the sum from m_data, so it is divided where it is read.
    const auto average = [&](std::size_t i) { return m_data[i] / static_cast<T>(ranks); };
    for (std::size_t i = 0; i < n; ++i) {
      const double way = static_cast<double>(rate * m[i]);
      const double far = static_cast<double>(x[i] + rate * m[i] - average(i));
      moved += way * way;
      progress += far * far;
    }
    moved = std::sqrt(moved);
    progress = std::sqrt(progress);
    const bool counts = is_late && m_outer.gap_penalty && moved > 0;
    m_gap = counts ? 1 + moved / progress : 1;
    const T share = static_cast<T>(counts ? progress / (progress + moved) : 1);
    const T momentum = static_cast<T>(m_outer.momentum);
    const T clip = static_cast<T>(m_outer.clip);
    for (std::size_t i = 0; i < n; ++i) {
      m[i] = std::clamp(momentum * m[i] + (x[i] - average(i)) * share, -clip, clip);
      x[i] -= rate * m[i];
      if (is_late) m_data[i] = m_parameters[i];
      m_parameters[i] = x[i];
    }
  }

  Step m_step;
  OuterUpdate m_outer;
  std::vector<T> m_parameters;
  std::vector<T> m_shared;  ///< the shared parameters, then their momentum
  std::vector<T> m_data;
  std::int64_t m_steps = 0;
  bool m_has_sum = false;  ///< whether "data" has been summed, or is being summed
  double m_gap = 1;
};

}  // namespace heddle::inline v0::systems

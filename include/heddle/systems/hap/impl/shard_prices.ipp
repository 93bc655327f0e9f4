// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShardPrices: what instructions of a ShardedProgram cost on a machine.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/program.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

namespace heddle::inline v0::systems::impl {

/// The prices of instructions. `shares` are by dimension and rank.
class ShardPrices {
 public:
  using Shares = std::vector<std::vector<double>>;
  static constexpr std::size_t whole = static_cast<std::size_t>(-1);

  ShardPrices(const TensorProgram& program, const Machine& machine, const HapOptions& options)
      : m_program(&program), m_ranks(static_cast<std::size_t>(machine.ranks())) {
    constexpr const char* where = "heddle::systems::hap";
    expects(options.flops > 0 && options.flops < std::numeric_limits<double>::infinity() &&
                options.state_per_parameter >= 1 &&
                options.state_per_parameter < std::numeric_limits<double>::infinity() &&
                options.rounds >= 1,
            [&] {
              return ErrorInfo{
                  where, "an option is out of range",
                  text("flops ", options.flops, ", state_per_parameter ",
                       options.state_per_parameter, ", rounds ", options.rounds),
                  "finite flops above 0, a finite state_per_parameter and rounds from 1"};
            });
    std::vector<Rank> ring;
    for (std::size_t r = 0; r < m_ranks; ++r) {
      ring.push_back(Rank{static_cast<int>(r)});
      const Device& device = machine.device(ring.back());
      expects(device.speed > 0, [&] {
        return ErrorInfo{where, "a device has no speed above 0",
                         text("rank ", r, ", ", device.name, ", speed ", device.speed),
                         "leave it out of the machine"};
      });
      m_speed.push_back(options.flops * device.speed);
      m_capacity.push_back(
          device.memories.empty() ? 0.0 : static_cast<double>(device.memories.front().capacity));
      m_limited = m_limited || m_capacity.back() > 0;
    }
    if (m_ranks == 1) return;
    const auto n = static_cast<double>(m_ranks);
    constexpr double bytes = 1e9;
    const Seconds latencies = plan::ring_all_reduce_time(machine, ring, 0);
    m_hop = latencies / (2 * (n - 1));
    m_per_byte =
        (plan::ring_all_reduce_time(machine, ring, bytes) - latencies) * n / (2 * (n - 1)) / bytes;
  }

  [[nodiscard]] std::size_t ranks() const { return m_ranks; }
  [[nodiscard]] bool limited() const { return m_limited; }
  /// The bytes that a rank can hold; infinite if they are unknown.
  [[nodiscard]] double capacity(std::size_t rank) const {
    return m_capacity[rank] > 0 ? m_capacity[rank] : std::numeric_limits<double>::infinity();
  }
  [[nodiscard]] double raw_capacity(std::size_t rank) const { return m_capacity[rank]; }
  [[nodiscard]] double speed(std::size_t rank) const { return m_speed[rank]; }

  /// The dimension that a form divides, or `whole`.
  [[nodiscard]] std::size_t dimension(const TensorForm& form) const {
    return form.kind == TensorForm::Kind::sharded ? m_program->dimension(form.dim) : whole;
  }

  /// The seconds of a computation that `dimension` divides, if it is one.
  [[nodiscard]] Seconds compute(double flops, std::size_t dimension, const Shares& shares) const {
    Seconds longest = 0;
    for (std::size_t r = 0; r < m_ranks; ++r) {
      const double share = dimension == whole ? 1 : shares[dimension][r];
      longest = std::max(longest, flops * share / m_speed[r]);
    }
    return longest;
  }

  /// The kind of instruction from one form to another, or `place` if there is none.
  [[nodiscard]] static ShardInstructionKind between(TensorForm::Kind from, TensorForm::Kind to) {
    using Kind = TensorForm::Kind;
    using Step = ShardInstructionKind;
    if (from == Kind::partial && to == Kind::replicated) return Step::all_reduce;
    if (from == Kind::partial && to == Kind::sharded) return Step::reduce_scatter;
    if (from == Kind::sharded && to == Kind::replicated) return Step::all_gather;
    if (from == Kind::sharded && to == Kind::sharded) return Step::all_to_all;
    if (from == Kind::replicated && to == Kind::sharded) return Step::slice;
    return Step::place;
  }

  /// The seconds that all latencies of a collective take.
  [[nodiscard]] Seconds latency(ShardInstructionKind kind) const {
    const double hops = static_cast<double>(m_ranks - 1) * m_hop;
    if (kind == ShardInstructionKind::slice) return 0;
    return kind == ShardInstructionKind::all_reduce ? 2 * hops : hops;
  }
  /// The seconds of a byte through the narrowest link.
  [[nodiscard]] Seconds per_byte() const { return m_per_byte; }

  /// The seconds of a slice or a collective of a tensor of this size.
  [[nodiscard]] Seconds communicate(ShardInstructionKind kind, double bytes, std::size_t from,
                                    std::size_t to, const Shares& shares) const {
    using Step = ShardInstructionKind;
    if (m_ranks == 1 || kind == Step::slice) return 0;
    const auto n = static_cast<double>(m_ranks);
    double part = 0;
    if (kind == Step::all_reduce) part = 2 * (n - 1) / n;
    for (std::size_t r = 0; r < m_ranks; ++r) {
      if (kind == Step::all_gather) part = std::max(part, (n - 1) * shares[from][r]);
      if (kind == Step::reduce_scatter) part = std::max(part, (n - 1) * shares[to][r]);
      if (kind == Step::all_to_all) {
        const double sent = shares[from][r] * (1 - shares[to][r]);
        const double received = shares[to][r] * (1 - shares[from][r]);
        part = std::max({part, sent, received});
      }
    }
    return latency(kind) + part * bytes * m_per_byte;
  }

 private:
  const TensorProgram* m_program;
  std::size_t m_ranks;
  std::vector<double> m_speed;     ///< flops a second, by rank
  std::vector<double> m_capacity;  ///< bytes, by rank; 0 if unknown
  bool m_limited = false;
  Seconds m_hop = 0;
  Seconds m_per_byte = 0;
};

}  // namespace heddle::inline v0::systems::impl

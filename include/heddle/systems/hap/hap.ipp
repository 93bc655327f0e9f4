// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of hap.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/hap/hap.hpp>
#include <heddle/systems/hap/impl/hap_search.ipp>
#include <heddle/systems/hap/impl/shard_prices.ipp>

namespace heddle::inline v0::systems {

namespace impl {

/// Shares by dimension of blocks. Dimensions without blocks are never divided.
inline ShardPrices::Shares shares_of(const TensorProgram& program, const ShardedProgram& sharded) {
  ShardPrices::Shares out;
  for (std::size_t d = 0; d < sharded.blocks.size(); ++d) {
    out.emplace_back();
    for (const std::int64_t block : sharded.blocks[d])
      out.back().push_back(static_cast<double>(block) /
                           static_cast<double>(program.dimensions[d].size));
  }
  return out;
}

/// Calls `visit(instruction, tensor, bytes)` for each instruction. `bytes` are those of the whole
/// tensor, with the optimiser's state if it is a parameter that is placed.
template <class Visit>
void for_each_form(const TensorProgram& program, const ShardedProgram& sharded,
                   const HapOptions& options, Visit&& visit) {
  for (const ShardInstruction& instruction : sharded.instructions) {
    const ProgramTensor& tensor = program.tensors[program.tensor(instruction.tensor)];
    const bool kept =
        instruction.kind == ShardInstructionKind::place && tensor.role == TensorRole::parameter;
    visit(instruction, tensor, program.bytes(tensor) * (kept ? options.state_per_parameter : 1));
  }
}

/// Returns true if the time or a limit depends on the shares of a group.
inline bool names(const RatioProblem<double>& problem, std::size_t group) {
  const auto here = [&](const auto& entry) {
    return std::ranges::any_of(entry.terms, [&](const auto& term) { return term.group == group; });
  };
  return std::ranges::any_of(problem.steps, here) || std::ranges::any_of(problem.limits, here);
}

inline void expect_ranks(int ranks, const Machine& machine) {
  expects(ranks == machine.ranks(), [&] {
    return ErrorInfo{"heddle::systems::sharded_price", "the machine has another number of ranks",
                     text(ranks, " ranks in the program, ", machine.ranks(), " in the machine")};
  });
}

/// Throws the error of a rank whose memory is exceeded.
[[noreturn]] inline void throw_shortage(std::size_t rank, double needed, double capacity,
                                        const std::string& largest, double bytes) {
  throw contract_error(
      ErrorInfo{"heddle::systems::hap", "the memory of a rank is too small",
                text("rank ", rank, " needs ", needed, " bytes and has ", capacity,
                     "; its largest tensor is '", largest, "' with ", bytes, " bytes"),
                "use more ranks, a smaller batch, or less state_per_parameter"});
}

/// Throws the error if no program fits: of the rank that lacks most if every tensor is divided
/// along the best dimension.
[[noreturn]] inline void throw_nothing_fits(const TensorProgram& program, const Machine& machine,
                                            const ShardGroups& groups,
                                            const std::vector<std::vector<double>>& shares,
                                            const HapOptions& options) {
  const ShardPrices prices(program, machine, options);
  std::size_t worst = 0;
  double lack = -std::numeric_limits<double>::infinity(), most = 0, bytes = 0;
  std::string largest;
  for (std::size_t r = 0; r < prices.ranks(); ++r) {
    double sum = 0, top = -1;
    std::string name;
    for (const ProgramTensor& tensor : program.tensors) {
      double least = 1;
      for (const std::string& dim : tensor.dims) {
        const std::size_t group = groups.of(program.dimension(dim));
        if (prices.ranks() > 1 && groups.divisible(group))
          least = std::min(least, shares[group][r]);
      }
      const bool kept = tensor.role == TensorRole::parameter;
      const double here =
          least * program.bytes(tensor) * (kept ? options.state_per_parameter : 1.0);
      sum += here;
      if (here <= top) continue;
      top = here;
      name = tensor.name;
    }
    if (sum - prices.capacity(r) <= lack) continue;
    lack = sum - prices.capacity(r);
    worst = r;
    most = sum;
    largest = name;
    bytes = top;
  }
  if (lack > 0) throw_shortage(worst, most, prices.capacity(worst), largest, bytes);
  throw contract_error(
      ErrorInfo{"heddle::systems::hap", "no program fits",
                text("program '", program.name, "' on ", prices.ranks(), " ranks, ",
                     options.forms.size(), " prescribed forms; the largest tensor is '", largest,
                     "' with ", bytes, " bytes on rank ", worst),
                "remove prescribed forms, or use ranks with more memory"});
}

}  // namespace impl

HEDDLE_INLINE ShardedPrice sharded_price(const TensorProgram& program,
                                         const ShardedProgram& sharded, const Machine& machine,
                                         const HapOptions& options) {
  check(program, sharded);
  impl::expect_ranks(sharded.ranks, machine);
  const impl::ShardPrices prices(program, machine, options);
  const auto shares = impl::shares_of(program, sharded);
  ShardedPrice out;
  std::vector<double> memory(prices.ranks(), 0), top(prices.ranks(), -1);
  std::vector<std::string> largest(prices.ranks());
  impl::for_each_form(
      program, sharded, options, [&](const auto& now, const auto& tensor, double bytes) {
        const std::size_t to = prices.dimension(now.to);
        Seconds& seconds = out.instructions.emplace_back(0);
        if (now.kind == ShardInstructionKind::compute) {
          seconds = prices.compute(program.flops(program.operations[now.operation]),
                                   now.rule.divided.empty() ? impl::ShardPrices::whole
                                                            : program.dimension(now.rule.divided),
                                   shares);
          out.computation += seconds;
        } else if (now.kind != ShardInstructionKind::place) {
          seconds = prices.communicate(now.kind, bytes, prices.dimension(now.from), to, shares);
          out.communication += seconds;
        }
        for (std::size_t r = 0; r < memory.size(); ++r) {
          const double here = bytes * (to == impl::ShardPrices::whole ? 1 : shares[to][r]);
          memory[r] += here;
          if (here <= top[r]) continue;
          top[r] = here;
          largest[r] = tensor.name;
        }
      });
  for (std::size_t r = 0; r < memory.size(); ++r) {
    if (memory[r] > prices.capacity(r) * (1 + 1e-9))
      impl::throw_shortage(r, memory[r], prices.capacity(r), largest[r], top[r]);
    out.peak = std::max(out.peak, memory[r]);
  }
  return out;
}

HEDDLE_INLINE std::optional<ShardedProgram> hap_search(
    const TensorProgram& program, const Machine& machine, const ShardGroups& groups,
    const std::vector<std::vector<double>>& shares, const HapOptions& options,
    std::size_t& candidates) {
  check(program);
  groups.expect_fit("heddle::systems::hap_search", program, machine.ranks(), shares);
  impl::HapSearch search(program, machine, groups, shares, options);
  std::optional<ShardedProgram> found = search.run();
  candidates += search.candidates();
  if (found) found->blocks = groups.blocks(program, shares);
  return found;
}

HEDDLE_INLINE RatioProblem<double> hap_ratios(const TensorProgram& program,
                                              const ShardedProgram& sharded, const Machine& machine,
                                              const ShardGroups& groups,
                                              const std::vector<std::vector<double>>& shares,
                                              const HapOptions& options) {
  impl::expect_ranks(sharded.ranks, machine);
  groups.expect_fit("heddle::systems::hap_ratios", program, machine.ranks(), shares);
  const impl::ShardPrices prices(program, machine, options);
  const std::size_t n = prices.ranks();
  RatioProblem<double> out{.devices = n};
  for (std::size_t g = 0; g < groups.size(); ++g)
    out.least.push_back(groups.divisible(g) ? 1 / static_cast<double>(groups.units(g)) : 0);
  for (std::size_t r = 0; r < n && prices.limited(); ++r)
    out.limits.push_back({text("memory of rank ", r), {}, prices.capacity(r)});
  const auto group = [&](std::size_t dimension) { return groups.of(dimension); };
  impl::for_each_form(
      program, sharded, options, [&](const auto& now, const auto& tensor, double bytes) {
        using Step = ShardInstructionKind;
        RatioStep<double> step{text(now.kind, ' ', tensor.name), {}};
        const std::size_t from = prices.dimension(now.from), to = prices.dimension(now.to);
        const double whole = bytes * prices.per_byte();
        for (std::size_t r = 0; r < n; ++r) {
          if (now.kind == Step::compute && !now.rule.divided.empty())
            step.terms.push_back(
                {group(program.dimension(now.rule.divided)), r,
                 program.flops(program.operations[now.operation]) / prices.speed(r)});
          const double others = static_cast<double>(n - 1) * whole;
          if (now.kind == Step::all_gather) step.terms.push_back({group(from), r, others});
          if (now.kind == Step::reduce_scatter) step.terms.push_back({group(to), r, others});
          if (now.kind == Step::all_to_all) {
            const std::size_t a = group(from), b = group(to);
            step.terms.push_back({a, r, whole * (1 - shares[b][r])});
            step.terms.push_back({b, r, whole * (1 - shares[a][r])});
          }
          if (r >= out.limits.size()) continue;
          if (to == impl::ShardPrices::whole)
            out.limits[r].bound -= bytes;
          else
            out.limits[r].terms.push_back({group(to), r, bytes});
        }
        if (!step.terms.empty()) out.steps.push_back(std::move(step));
      });
  std::erase_if(out.limits, [](const auto& limit) {
    return limit.bound == std::numeric_limits<double>::infinity();
  });
  return out;
}

HEDDLE_INLINE HapResult hap(const TensorProgram& program, const Machine& machine,
                            const HapOptions& options) {
  check(program);
  const impl::ShardPrices prices(program, machine, options);
  const std::size_t n = prices.ranks();
  for (const auto& [name, form] : options.forms) {
    const ProgramTensor& tensor = program.tensors[program.tensor(name)];
    heddle::impl::expect_enumerator("heddle::systems::hap", "HapOptions::forms, kind", form.kind,
                                    TensorForm::Kind::sharded);
    const bool has_dim = std::ranges::find(tensor.dims, form.dim) != tensor.dims.end();
    expects(form.kind != TensorForm::Kind::sharded || has_dim, [&] {
      return ErrorInfo{"heddle::systems::hap",
                       "a prescribed form divides a dimension that is not there",
                       text("tensor '", name, "', form ", form), "name one of its dimensions"};
    });
  }
  const auto positive = [](double share) { return share > 0 && std::isfinite(share); };
  expects(options.shares.empty() ||
              (options.shares.size() == n && std::ranges::all_of(options.shares, positive)),
          [&] {
            std::string given;
            for (const double share : options.shares) given += text(' ', share);
            return ErrorInfo{"heddle::systems::hap",
                             "prescribed shares leave a rank nothing where it must hold something, "
                             "or are not one for each rank",
                             text(n, " ranks, shares", given),
                             "give each rank a share above 0, or leave it out of the machine"};
          });
  Seconds computation = 0;  // of all operations, on each rank
  for (const Operation& operation : program.operations)
    for (std::size_t r = 0; r < n; ++r) computation += program.flops(operation) / prices.speed(r);
  heddle::impl::expect_sum(
      "heddle::systems::hap", computation,
      [&] { return text(program.operations.size(), " operations with flops = ", options.flops); },
      "use greater flops, or correct the speeds of the devices");
  const ShardGroups groups(program, machine.ranks());

  std::vector<std::vector<double>> starts;
  if (options.shares.empty()) {
    starts.resize(2);
    bool known = prices.limited();
    for (std::size_t r = 0; r < n; ++r) {
      starts[0].push_back(prices.speed(r));
      starts[1].push_back(1);
      known = known && prices.raw_capacity(r) > 0;
    }
    if (known) starts.emplace_back();
    for (std::size_t r = 0; r < n && known; ++r) starts[2].push_back(prices.raw_capacity(r));
  } else {
    starts.push_back(options.shares);
  }
  HapResult best{.groups = groups};
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> shares;
  for (const std::vector<double>& start : starts) {
    const double sum = std::accumulate(start.begin(), start.end(), 0.0);
    shares.assign(groups.size(), start);
    for (std::vector<double>& of_group : shares)
      for (double& share : of_group) share /= sum;
    double before = std::numeric_limits<double>::infinity();
    for (int round = 0; round < options.rounds; ++round) {
      ++best.rounds;
      const auto found = hap_search(program, machine, groups, shares, options, best.candidates);
      if (!found) break;
      ShardedProgram now = *found;
      // Shares for this program. Without a limit of memory there always are some.
      for (int turn = 0; turn < 2; ++turn) {
        if (turn == 1 && !options.shares.empty()) break;
        if (turn == 1) {
          const RatioProblem<double> ratios =
              hap_ratios(program, now, machine, groups, shares, options);
          const plan::LinearSolution<double> solved = options.solver.solve(ratio_program(ratios));
          if (solved.outcome != plan::Outcome::optimal) break;
          for (std::size_t g = 0; g < groups.size(); ++g)
            for (std::size_t r = 0; r < n && impl::names(ratios, g); ++r)
              shares[g][r] = std::max(0.0, solved.values[g * n + r]);
          now.blocks = groups.blocks(program, shares);
        }
        try {
          const ShardedPrice price = sharded_price(program, now, machine, options);
          if (price.time() >= least) continue;
          least = price.time();
          best.program = now;
          best.shares = shares;
          best.price = price;
        } catch (const contract_error&) {
          // Whole blocks exceed a memory that the shares did not. The next shares may fit.
          if (!prices.limited()) throw;
        }
      }
      if (!(least < before * (1 - 1e-12)) || !options.shares.empty()) break;
      before = least;
    }
  }
  if (least == std::numeric_limits<double>::infinity())
    impl::throw_nothing_fits(program, machine, groups, shares, options);
  if (!prices.limited() || !options.shares.empty()) return best;
  const RatioProblem<double> ratios =
      hap_ratios(program, best.program, machine, groups, best.shares, options);
  const auto solved = options.solver.solve(ratio_program(ratios));
  if (solved.outcome != plan::Outcome::optimal) return best;
  auto price = solved.prices.end() - static_cast<std::ptrdiff_t>(ratios.limits.size());
  for (std::size_t r = 0; r < n; ++r)
    best.memory_prices.push_back(prices.raw_capacity(r) > 0 ? *price++ : 0.0);
  return best;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const HapResult& result) {
  return out << "time " << result.price.time() << " s, computation " << result.price.computation
             << " s, communication " << result.price.communication << " s, at most "
             << result.price.peak << " bytes a rank, " << result.candidates << " property sets in "
             << result.rounds << " searches\n"
             << result.program;
}

}  // namespace heddle::inline v0::systems

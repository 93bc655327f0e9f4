// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Finds the parameters that stages have in common, for Stages.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/checksum.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/pipeline/impl/any_stage.hpp>
#include <heddle/pipeline/impl/held_state.hpp>
#include <heddle/pipeline/tied_parameter.hpp>
#include <heddle/schedule/pass/tie_parameters.hpp>

namespace heddle::inline v0::impl {

/// A TiedParameter of a stage, in the form in which ranks exchange it.
struct TiedRecord {
  static constexpr std::size_t longest = 55;

  std::uint32_t stage;
  std::uint32_t checksum;  ///< the checksum of the values
  std::uint32_t sums;      ///< 1 if the stage sums its gradients itself, in its update only
  std::uint32_t length;    ///< the length of the name
  std::uint64_t first, count;
  std::array<char, longest + 1> name;

  [[nodiscard]] std::string called() const { return name.data(); }
  /// Returns true for the same copy, which replicas of its stage have, too.
  [[nodiscard]] bool same_copy(const TiedRecord& other) const {
    return stage == other.stage && first == other.first && name == other.name;
  }
};

/// Returns the record of `tied` of a stage.
[[nodiscard]] inline TiedRecord tied_record(const HeldStage& held, const TiedParameter& tied,
                                            const StageTraits& traits) {
  const std::size_t named = std::min(tied.name.size(), TiedRecord::longest);
  TiedRecord record{held.number.value,
                    0,
                    held.sizes.gradients != held.sizes.parameters && !traits.sums_gradients,
                    static_cast<std::uint32_t>(tied.name.size()),
                    tied.first,
                    tied.count,
                    {}};
  std::copy_n(tied.name.begin(), named, record.name.begin());
  const Bytes element = size_of(traits.type);
  if (held.sizes.first_owned > 0) return record;  // parameters() begins within the stage's
  if (tied.first > held.sizes.parameters || tied.count > held.sizes.parameters - tied.first)
    return record;  // tie_parameters() says so
  HostElements values(tied.count * element);
  traits.space->copy_to_host(held.stage->parameters() + tied.first * element, values.data(),
                             tied.count * element);
  record.checksum = crc32c(std::span(values.data(), tied.count * element));
  return record;
}

/// Throws if `copies` of one parameter cannot be tied. If `compare`, their values must be equal.
inline void check_copies(const std::vector<TiedRecord>& copies, bool compare) {
  constexpr const char* where = "heddle::Stages";
  const TiedRecord& one = copies.front();
  const std::string name = one.called();
  expects(!name.empty() && one.length <= TiedRecord::longest, [&] {
    return ErrorInfo{where, "the name of a tied parameter is empty or too long",
                     text("'", name, "' has ", one.length, " characters, at most ",
                          TiedRecord::longest, " fit")};
  });
  if (copies.size() != 2) {
    std::string stages;
    for (const TiedRecord& copy : copies) stages += text(" ", copy.stage);
    throw contract_error(
        {where, "a tied parameter needs exactly two layers",
         text("'", name, "' is a parameter of ", copies.size(),
              copies.size() == 1 ? " layer, on stage" : " layers, on stages", stages),
         "give both layers the same name for it, and no other layer"});
  }
  const TiedRecord& other = copies.back();
  expects(one.count == other.count, [&] {
    return ErrorInfo{where, "the copies of a tied parameter have different sizes",
                     text("'", name, "' has ", one.count, " elements on stage ", one.stage, " and ",
                          other.count, " on stage ", other.stage)};
  });
  expects(!compare || one.checksum == other.checksum, [&] {
    return ErrorInfo{where, "the copies of a tied parameter have different values",
                     text("'", name, "' on stages ", one.stage, " and ", other.stage),
                     "give both layers the same initial values"};
  });
  if (one.sums != 0 || other.sums != 0)
    throw infeasible(
        {where, "stages that sum their own gradients in their update cannot have tied parameters",
         text("'", name, "' on stages ", one.stage, " and ", other.stage),
         "add the members sum_gradients() and owned() to the stage, or use "
         "GradientSum::ring, library or sharded"});
}

/// Returns the ranges of parameters that the stages of all ranks have in common. All ranks must
/// call it. If `compare`, ranks that have the same parameters have the same values.
/// @throws contract_error on every rank if a parameter has not two copies of one size and of the
///         same values; infeasible if the stages sum their own gradients in their update only.
[[nodiscard]] inline std::vector<TiedRanges> tied_ranges(std::span<const HeldStage> held,
                                                         const StageTraits& traits, bool compare,
                                                         const TransportRef& transport,
                                                         const ExecuteOptions& options) {
  std::vector<TiedRecord> mine;
  for (const HeldStage& each : held)
    for (const TiedParameter& tied : each.stage->tied_parameters())
      mine.push_back(tied_record(each, tied, traits));
  std::map<std::string, std::vector<TiedRecord>> by_name;
  for (const auto& rank : all_gather<TiedRecord>(transport, mine, options))
    for (const TiedRecord& record : rank) {
      std::vector<TiedRecord>& copies = by_name[record.called()];
      if (std::ranges::none_of(copies, [&](const auto& copy) { return copy.same_copy(record); }))
        copies.push_back(record);
    }
  const Bytes element = size_of(traits.type);
  std::vector<TiedRanges> ties;
  for (const auto& [name, copies] : by_name) {
    check_copies(copies, compare);
    const TiedRecord &one = copies.front(), &other = copies.back();
    ties.push_back({Stage{one.stage}, one.first * element, Stage{other.stage},
                    other.first * element, one.count * element});
  }
  return ties;
}

}  // namespace heddle::inline v0::impl

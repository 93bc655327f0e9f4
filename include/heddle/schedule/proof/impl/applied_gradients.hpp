// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AppliedGradients: what the updates of a Schedule apply, compared with the serial step.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/order/stage_shares.hpp>
#include <heddle/schedule/proof/impl/terms.hpp>
#include <heddle/schedule/proof/serial_step.hpp>

namespace heddle::inline v0::impl {

/// The sums of gradients of all updates that a Schedule has performed.
class AppliedGradients {
 public:
  AppliedGradients(Terms& terms, const schedule::SerialStep& step);

  /// A gradient of a stage for the samples [first, last) of a microbatch, on a line of replicas.
  struct Piece {
    std::uint32_t stage, line, item, first, last;
    friend auto operator<=>(const Piece&, const Piece&) = default;
  };
  /// A difference in words, and the term that shows it, or 0.
  struct Difference {
    TermId term = 0;
    std::string what = {};
  };

  /// Returns the lines that hold each shard.
  [[nodiscard]] const std::map<std::uint32_t, std::vector<std::uint32_t>>& lines() const noexcept {
    return m_lines;
  }
  /// Returns the samples of a microbatch, or one unit if no stage is divided.
  [[nodiscard]] SampleRange all_samples(std::uint32_t item) const;
  /// Returns the number of updates of the range of `weights` that begins at `begin`.
  [[nodiscard]] std::uint32_t updates(BufferId weights, std::uint64_t begin) const;
  /// Returns the most updates of a range of the weights of `stage`, and at least 1.
  [[nodiscard]] std::uint32_t updates(Stage stage) const { return m_updates[+stage]; }

  /// Adds an update of `weights`, which `buffer` holds. It applies `sum`, the gradients from `at`
  /// on.
  void add(BufferId buffer, const Term& weights, std::uint64_t at, TermId sum);

  /// Returns the first difference: a gradient that is missing, or applied twice or elsewhere.
  [[nodiscard]] Difference difference();
  /// Returns what `pieces` lack or have twice of the results of stage `of` over the lines of
  /// `shard`, as a part of a sentence about `stage`. The pieces are sorted.
  [[nodiscard]] std::string not_once(std::vector<Piece> pieces, std::uint32_t of,
                                     std::uint32_t stage, std::uint32_t shard) const;

 private:
  /// The updates of a range of the parameters that a rank holds.
  struct Applied {
    std::uint32_t stage = 0, shard = 0;
    std::uint64_t gradient = 0;     ///< where the range begins among the gradients
    std::vector<TermId> sums = {};  ///< the gradients of each update
  };

  [[nodiscard]] Difference wrong(const Applied& applied);
  /// Collects what the range of gradients `term`, which begins at `at`, is the sum of.
  [[nodiscard]] Difference collect(TermId term, std::uint32_t stage, std::uint64_t at,
                                   std::map<std::uint64_t, std::vector<Piece>>& pieces);
  /// Returns the stages whose gradients belong to the place `at` of those of `stage`, itself first,
  /// and the place there.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint64_t>> owners(std::uint32_t stage,
                                                                            std::uint64_t at) const;

  Terms& m_terms;
  const schedule::SerialStep& m_step;
  std::map<std::uint32_t, std::vector<std::uint32_t>> m_lines;         ///< by shard
  std::map<std::pair<std::size_t, std::uint64_t>, Applied> m_applied;  ///< by buffer and begin
  std::vector<std::uint32_t> m_updates;                                ///< by stage
  /// Sums that were found right: the stage, the shard, the first byte of the gradient and the sum.
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, TermId>> m_proved;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/proof/impl/applied_gradients.ipp>
#endif

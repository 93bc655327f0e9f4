// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StepProver: runs a Schedule on symbols beside the serial step, see why_not_equivalent().

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/proof/impl/applied_gradients.hpp>
#include <heddle/schedule/proof/impl/symbolic_store.hpp>
#include <heddle/schedule/proof/impl/terms.hpp>
#include <heddle/schedule/proof/serial_step.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// The state of one call of why_not_equivalent().
class StepProver {
 public:
  StepProver(const Schedule& schedule, const schedule::SerialStep& step);

  /// Returns the first difference, or an empty string.
  [[nodiscard]] std::string run();

 private:
  using Place = schedule::SerialStep::Place;

  [[nodiscard]] Place place_of(Rank rank) const {
    return m_step.places.empty() ? Place{rank} : m_step.places[+rank];
  }
  [[nodiscard]] bool divides() const { return !m_step.shares.empty(); }
  /// Returns the samples of a microbatch that the rank at `place` computes for `stage`.
  [[nodiscard]] SampleRange samples(const Place& place, Stage stage, Item item) const;

  /// Gives the weights of every stage their names.
  void begin();
  /// Performs an action. Returns its fault, or an empty string.
  [[nodiscard]] std::string perform(ActionId id);
  /// Marks all that an action writes as wrong.
  void spoil(ActionId id, std::string fault);
  /// Returns the fault behind `term`, or `otherwise` if none of its values is wrong.
  [[nodiscard]] std::string first_fault(TermId term, std::string otherwise);
  [[nodiscard]] std::string compute(ActionId id);
  [[nodiscard]] std::string update(ActionId id);
  /// Compares what `use` holds with `wanted`, which has no range yet.
  [[nodiscard]] std::string expect(const Use& use, Term wanted, SampleRange samples);
  /// Names the value that a pass writes to `use`.
  [[nodiscard]] std::string name(const Use& use, Term value, SampleRange samples);
  /// Adds the contribution of a pass to the gradients in `use`.
  [[nodiscard]] std::string contribute(const Use& use, Term value);

  [[nodiscard]] std::string finish();
  [[nodiscard]] std::string missing_forward();
  [[nodiscard]] std::string wrong_weights();

  const Schedule& m_schedule;
  const schedule::SerialStep& m_step;
  SymbolicStore m_store;
  Terms& m_terms;
  std::vector<std::vector<std::uint32_t>> m_in, m_out;  ///< by stage: its edges
  std::vector<std::uint32_t> m_version_parts;           ///< by buffer of weights; 0: of no weights
  AppliedGradients m_applied;
  std::vector<std::string> m_faults;                ///< the faults of actions
  std::optional<std::uint32_t> m_earlier;           ///< the fault that led to the last one
  std::vector<AppliedGradients::Piece> m_forwards;  ///< if the step does not train
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/proof/impl/step_prover.ipp>
#endif

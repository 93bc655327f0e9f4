// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceAxes: the ranks that a sequence is sharded over, and the method of their attention. It
/// is the part of SequenceLine that is compiled once for all types of elements.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/kernel/attention_state.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/shard_order.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/sequence_method.hpp>
#include <heddle/sequence/sequence_explanation.hpp>
#include <heddle/sequence/sequence_options.hpp>
#include <heddle/sequence/sequence_shape.hpp>

namespace heddle::inline v0 {

/// The ranks that attention over a sharded sequence is computed by: U ranks of a heads axis times R
/// ranks of a ring axis, and the method. It is a SequenceLine without the types of elements and
/// execution space.
class SequenceAxes {
 public:
  /// Number of ranks of the heads axis, U.
  [[nodiscard]] std::size_t heads_size() const { return size_of(m_heads); }
  /// This rank's number on the heads axis.
  [[nodiscard]] std::size_t heads_rank() const { return rank_of(m_heads); }
  /// Number of ranks of the ring axis, R.
  [[nodiscard]] std::size_t ring_size() const { return size_of(m_ring); }
  /// This rank's number on the ring axis.
  [[nodiscard]] std::size_t ring_rank() const { return rank_of(m_ring); }
  /// Number of ranks, U R.
  [[nodiscard]] std::size_t size() const { return heads_size() * ring_size(); }
  /// Returns the method of the options, which may be automatic.
  [[nodiscard]] SequenceMethod method() const { return m_options.method; }
  /// Returns the method of calls of this shape, which is not automatic. The first call for a shape
  /// predicts the times of the methods that the axes can serve; all ranks find the same.
  /// @throws contract_error if none of them can compute attention of this shape.
  [[nodiscard]] SequenceMethod method(const SequenceShape& shape) const;
  /// Returns the number of ways around the ring of calls of this shape, 1 or 2.
  /// @throws contract_error as method().
  [[nodiscard]] int ways(const SequenceShape& shape) const { return choice(shape).ways; }

  /// Returns the methods for attention of `shape` over as many ranks as this line has, with the
  /// bytes and messages of a rank and the times that simulate() predicts on `machine`: see
  /// plan::sequence_choice(). The ranks of the machine stand for the ranks of the line as in
  /// SequenceOptions. A method of these axes that saves more than SequenceOptions::saved_limit is
  /// refused. Sends no message.
  /// @throws contract_error if the machine has fewer ranks than the line, or as
  ///         plan::sequence_choice().
  [[nodiscard]] SequenceExplanation explain(const SequenceShape& shape,
                                            const Machine& machine) const;
  /// Returns the order in which the ring axis divides the positions of a sequence.
  [[nodiscard]] const ShardOrder& order() const { return m_options.order; }
  /// Returns the options of the messages.
  [[nodiscard]] const ExecuteOptions& execute() const { return m_options.wait; }

  /// Returns the positions, out of `context`, that the ranks with the number `rank` on the ring
  /// axis have together. They are the ranks of one heads axis.
  [[nodiscard]] IndexSet ring_positions(std::int64_t context, std::size_t rank) const;
  /// Returns the positions of this rank, out of `context`.
  [[nodiscard]] IndexSet positions(std::int64_t context) const;
  /// Returns the number of rows of this rank's matrices: its positions in all sequences.
  [[nodiscard]] std::size_t rows(const SequenceShape& shape) const;
  /// Returns the rows of a matrix sharded by heads: all positions of the ranks of this heads axis.
  [[nodiscard]] std::size_t ring_rows(const SequenceShape& shape) const;

  /// Returns the heads that this rank computes: an even share of the K,V heads, and the heads of Q
  /// that they serve.
  /// @throws contract_error if there are more heads ranks than K,V heads.
  [[nodiscard]] kernel::AttentionHeads own_heads(const kernel::AttentionHeads& heads) const;

  /// Returns the number of elements that forward saves for backward: the AttentionState of
  /// all rows and heads, and Q | K | V after the exchange if the heads axis has several ranks. If a
  /// rank has a fixed number of rows, it does not grow with the context. But the method rsa saves
  /// the output and all probabilities, and these grow with it.
  /// @throws contract_error as own_heads().
  [[nodiscard]] std::size_t saved_size(const SequenceShape& shape) const;
  /// Returns the part of saved_size() that is Q | K | V.
  [[nodiscard]] std::size_t saved_qkv_size(const SequenceShape& shape) const;

  /// Elements that forward leaves for backward of one sequence around a ring of several ranks. By
  /// the method rsa these are the output and all probabilities, which grow with the context. By the
  /// other methods they are a state; every piece of a rank's block has as much room as the longest
  /// one, so that messages can take each other's place.
  [[nodiscard]] std::size_t ring_state_size(const SequenceShape& shape) const;
  /// Returns the form of attention around the ring for one sequence, which is not empty.
  [[nodiscard]] schedule::AttentionForm ring_form(const SequenceShape& shape, bool backward) const;

  /// Compares a call between the ranks, at the contract level "communication".
  void check_call(const char* call, const SequenceShape& shape) const;

  /// Calls `call`. If it throws, the ranks of both axes are told that this rank failed while
  /// `doing`; see heddle::abort_on_error(). So an error in a ring reaches also ranks that wait for
  /// an exchange of heads.
  template <class Call>
  void abort_on_error(const char* doing, Call&& call) const {
    report_on_error(call, [&](const char* reason) { tell_failure(doing, reason); });
  }

 protected:
  /// One rank.
  explicit SequenceAxes(Scalar element);
  /// The ranks of two axes. Throws as SequenceLine.
  SequenceAxes(Scalar element, const Communicator& heads, const Communicator& ring,
               SequenceOptions options);

  /// Returns the communicator of an axis, or null for one rank.
  [[nodiscard]] const Communicator* heads() const noexcept { return m_heads; }
  /// See heads().
  [[nodiscard]] const Communicator* ring() const noexcept { return m_ring; }

 private:
  static constexpr const char* where = "heddle::SequenceLine";

  [[nodiscard]] static std::size_t size_of(const Communicator* axis);
  [[nodiscard]] static std::size_t rank_of(const Communicator* axis);

  /// Compares the calls along the heads axis, then along the ring axis. It does the second even if
  /// the first has failed, because the other ranks of the ring wait for this one and are told of
  /// the failure.
  void expect_agreement() const;

  /// Checks the options that this rank alone knows.
  void expect_options() const;

  void expect_axes() const;

  [[nodiscard]] schedule::AttentionForm form_of(const SequenceShape& shape, std::size_t ranks,
                                                int ways, bool backward,
                                                const kernel::AttentionHeads& heads) const;
  [[nodiscard]] static std::size_t kept_size(SequenceMethod method,
                                             const schedule::AttentionForm& form);

  /// Why `candidate` is refused by the limit of what is saved, the same on all ranks; empty if it
  /// is not.
  [[nodiscard]] std::string saves_too_much(const SequenceShape& shape,
                                           const plan::SequenceCandidate& candidate) const;

  /// The method and ways of a shape.
  struct Choice {
    SequenceMethod method;
    int ways;
  };
  struct Choices;
  [[nodiscard]] Choice choice(const SequenceShape& shape) const;
  void tell_failure(const char* doing, const char* reason) const;

  Scalar m_element;
  const Communicator* m_heads = nullptr;
  const Communicator* m_ring = nullptr;
  SequenceOptions m_options = {};
  std::shared_ptr<Choices> m_choices;  ///< the choices of earlier shapes
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SEQUENCE
#include <heddle/sequence/sequence_axes.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// sequence_choice(): the methods of attention over a sharded sequence, with the bytes, the
/// messages and the predicted time of each on a Machine.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/sequence_method.hpp>

namespace heddle::inline v0::plan {

/// The axis of a line of ranks along which consecutive ranks lie.
enum class NearAxis : std::uint8_t {
  heads,  ///< ranks of one heads group are consecutive: the mesh {{"ring", R}, {"heads", U}}
  ring    ///< ranks of one ring are consecutive: the mesh {{"heads", U}, {"ring", R}}
};

/// The local work of attention: its times on a device of speed 1, and the number of sequences.
struct AttentionWork {
  std::size_t sequences = 1;  ///< sequences of a microbatch, each of the form's tokens
  Seconds product = 0;        ///< per (query, key) pair: one product over all heads of the form
  Seconds combine = 0;        ///< per byte of states or gradients that are joined
  Seconds cast = 0;           ///< per byte that is packed or unpacked
  Seconds user = 0;           ///< the softmax of RSA on a rank
};

/// The messages and the time of one pass, forward or backward.
struct SequencePass {
  Bytes bytes = 0;        ///< bytes sent by the rank that sends most, exact
  Bytes all_bytes = 0;    ///< bytes sent by all ranks, exact
  std::size_t moves = 0;  ///< messages sent by the rank that sends most messages
  Seconds time = 0;       ///< from the common start of all ranks to the end of the last
};

/// One way to compute attention over P = `heads` * `ring` ranks.
struct SequenceCandidate {
  SequenceMethod method = SequenceMethod::ulysses;  ///< the method
  int heads = 1;                                    ///< ranks of the heads axis, U
  int ring = 1;                                     ///< ranks of the ring axis, R
  int ways = 1;                                     ///< directions of the ring, 1 or 2
  NearAxis near = NearAxis::heads;                  ///< the axis of consecutive ranks
  SequencePass forward = {};                        ///< 0 if the candidate is refused
  std::optional<SequencePass> backward = {};        ///< none: refused, or there is no backward pass
  Seconds time = 0;                                 ///< time of the passes that the form asks for
  std::string refused = {};                         ///< why it cannot be used; empty: it can

  /// Returns the rank of number `heads_rank` on the heads axis and `ring_rank` on the ring axis.
  [[nodiscard]] Rank rank(int heads_rank, int ring_rank) const noexcept {
    return near == NearAxis::heads ? Rank{ring_rank * heads + heads_rank}
                                   : Rank{heads_rank * ring + ring_rank};
  }
  /// Prints the candidate without its costs: "usp 4 x 2, heads near" or "ring, two ways".
  friend std::ostream& operator<<(std::ostream& out, const SequenceCandidate& candidate);
};

/// Returns one pass of `candidate` as a Schedule over all ranks: the exchanges from tokens to heads
/// and back around the schedule of the attention, as SequenceLine executes them. Each rank begins a
/// phase when it has ended the phase before it. The form's own `ways` is not used.
///
/// Actions of the attention keep their stages and items, which are numbers on the ring axis. A cast
/// of no bytes stands between two phases of a rank.
/// @throws contract_error for a form without a schedule, no sequences, a candidate of another
///         number of ranks or with an unknown or automatic method, two axes of a method with one,
///         and the backward pass of TokenRing.
[[nodiscard]] Schedule sequence_schedule(const SequenceCandidate& candidate,
                                         const schedule::AttentionForm& form, bool backward,
                                         std::size_t sequences = 1);

/// Returns all candidates for attention of `form` over its ranks on `machine`. The candidates that
/// can be used come first, the least time first and equal times in the order of the enumerators.
/// Refused ones follow, each with its reason.
///
/// There are: ulysses (U = P), ring with one way and with two, rsa, token_ring, and usp for every
/// U R = P with U, R > 1, with one way and with two, and with either axis near. USP with R = 1 is
/// ulysses and with U = 1 ring.
///
/// Times are those of simulate() of sequence_schedule(). With `form.backward` a candidate's time is
/// that of a forward and a backward pass, as in training, and token_ring is refused; otherwise it
/// is that of the forward pass.
/// @throws contract_error for a form without a schedule, a machine with fewer ranks, no sequences,
///         and a cost that is negative, infinite or not a number.
[[nodiscard]] std::vector<SequenceCandidate> sequence_choice(const schedule::AttentionForm& form,
                                                             const Machine& machine,
                                                             const AttentionWork& work);

/// Returns a table of candidates, one line each: the candidate, the bytes and moves a rank, the
/// times in seconds, or the reason why it is refused.
[[nodiscard]] std::string to_table(std::span<const SequenceCandidate> candidates);

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/sequence_choice.ipp>
#endif

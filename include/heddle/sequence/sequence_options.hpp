// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceOptions: the choices of a SequenceLine.

#include <optional>

#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/layout/shard_order.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/schedule/sequence_method.hpp>

namespace heddle::inline v0 {

/// The choices of a SequenceLine. All ranks make the same, except for `wait`.
struct SequenceOptions {
  SequenceMethod method = SequenceMethod::ulysses;  ///< how attention is computed
  /// The division of the positions among the ranks of the ring axis. A zigzag balances causal
  /// attention. Without a causal mask it is correct, but useless.
  ShardOrder order = {};
  /// 2: each half of K and V goes around the ring in its own direction; 1: all in one. The method
  /// automatic chooses it.
  int ways = 1;
  ExecuteOptions wait = {};  ///< options of the messages, for example the watchdog

  /// The machine on which the method automatic predicts times. Its ranks from 0 on stand for the
  /// ranks of the line, in the order of a mesh of its two axes.
  std::optional<Machine> machine = {};
  /// The axis whose ranks are consecutive among those of the line: the last one of the two in the
  /// mesh. Only predictions use it.
  plan::NearAxis near = plan::NearAxis::heads;
  /// The costs of computation for predicted times. Each call replaces its number of sequences. If
  /// all costs are 0, the prediction counts messages only.
  plan::AttentionWork work = {};
  /// Whether the method automatic serves backward too. Without backward it may choose TokenRing.
  bool trains = true;
  /// The most bytes that the method automatic lets forward save around the ring; 0: no limit. RSA
  /// saves all probabilities, so a limit excludes it for long contexts.
  Bytes saved_limit = 0;
};

}  // namespace heddle::inline v0

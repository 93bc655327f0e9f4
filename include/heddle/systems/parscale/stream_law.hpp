// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StreamLaw: the loss of a language model by its parameters and its parallel streams, fitted to
/// measured losses; and the memory that streams and parameters add.

#include <cstddef>
#include <span>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::systems {

/// The measured loss of a model.
struct StreamLoss {
  double parameters = 1;  ///< number of parameters
  int streams = 1;        ///< number of parallel streams, P
  double loss = 0;        ///< the loss after training
};

/// The law of parallel scaling, L = least + (scale 1e9 / (N (gain ln P + 1)))^power. P streams have
/// the effect of gain ln P + 1 times the parameters N. Source: Chen et al., "Parallel Scaling Law
/// for Language Models", 2025, with gains of 0.39 on code and 0.33 on general text.
struct StreamLaw {
  double least = 0;  ///< the loss of infinitely many parameters, E
  double scale = 1;  ///< A, in 10^9 parameters
  double power = 1;  ///< alpha
  double gain = 0;   ///< k: what ln P streams add, in units of the parameters

  /// Returns the factor of parameters that has the effect of `streams` streams.
  /// @throws contract_error if a member is out of range, or if there is no stream.
  [[nodiscard]] double factor(int streams) const;
  /// Returns the predicted loss.
  /// @throws contract_error as factor(), or if `parameters` is not above 0 and finite.
  [[nodiscard]] double loss(double parameters, int streams) const;

  /// Returns the law with the least sum of squared relative errors of L - least on `losses`. For
  /// given `least` and `gain` the other two are a linear regression of logarithms; these two are
  /// searched on grids that become finer. `gain` is at most 2.
  /// @throws contract_error if there are fewer than four losses, if all have the same number of
  ///         streams or of parameters, or if a number is not above 0 and
  ///         finite. The error names the loss.
  [[nodiscard]] static StreamLaw fit(std::span<const StreamLoss> losses);
};

/// Returns the share of the variance of `losses` that `law` explains, R^2.
/// @throws contract_error as StreamLaw::loss(), or if the losses are not at least two that differ.
[[nodiscard]] double explained(const StreamLaw& law, std::span<const StreamLoss> losses);

/// The sizes of a transformer from which the memory of decoding with several streams follows.
struct StreamMemory {
  Bytes layers = 1;   ///< number of layers
  Bytes keys = 1;     ///< elements of the keys of a token in a layer; its values have as many
  Bytes width = 1;    ///< elements of a token in the output of a stream
  Bytes prefix = 48;  ///< tokens of the learned prefix of a stream
  Bytes context = 0;  ///< tokens whose keys and values are kept
  Bytes hidden = 1;   ///< hidden units of the gate
  Bytes number = 2;   ///< bytes of an element

  /// Returns the bytes that `streams` streams add to those of one stream without prefix and gate:
  /// the prefixes of all streams, the keys and values of P - 1 more contexts, and the gate.
  [[nodiscard]] Bytes added(int streams) const;
};

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/parscale/stream_law.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Profile: what the layers of a model cost, by device, tensor degree and samples. It is measured
/// by profile_layers(), read from a file or written by hand.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/machine/device.hpp>

namespace heddle::inline v0::plan {

/// The times of one layer.
struct LayerTimes {
  Seconds forward = 0;          ///< F
  Seconds backward_input = 0;   ///< I: backward for the input
  Seconds backward_weight = 0;  ///< W: backward for the weights
  Seconds update = 0;           ///< a step of the optimiser; does not depend on samples

  /// Returns the time of a whole backward.
  [[nodiscard]] Seconds backward() const noexcept { return backward_input + backward_weight; }
  /// Adds the times of another layer.
  LayerTimes& operator+=(const LayerTimes& other) noexcept {
    forward += other.forward;
    backward_input += other.backward_input;
    backward_weight += other.backward_weight;
    update += other.update;
    return *this;
  }
  friend bool operator==(const LayerTimes&, const LayerTimes&) = default;
};

/// The times of a layer that were measured with one number of samples.
struct LayerMeasurement {
  std::string device = {};   ///< the kind of device: Device::name
  int tensor = 1;            ///< ranks that divide the layer, with their communication in the times
  std::int64_t samples = 1;  ///< samples of the microbatch
  LayerTimes times = {};     ///< for all of these samples

  friend bool operator==(const LayerMeasurement&, const LayerMeasurement&) = default;
};

/// A layer of a Profile.
struct ProfiledLayer {
  std::string name = {};  ///< shown to people
  Bytes output = 0;       ///< that the next layer reads, a sample; its gradient has the same size
  Bytes saved = 0;        ///< kept from forward to backward, a sample
  Bytes delta = 0;        ///< kept from I to W, a sample
  Bytes parameters = 0;   ///< bytes of the weights, and of their gradients
  std::vector<LayerMeasurement> measured = {};  ///< in any order
  /// Bytes of the keys and values of the layer's attention, a sample. Ranks that divide sequences
  /// exchange them.
  Bytes keys = 0;
  /// Bytes of the queries of the layer's attention, a sample, and of its outputs. Ulysses exchanges
  /// them as well. 0: half of the keys, as if keys had as many heads as queries.
  Bytes queries = 0;

  /// Returns `queries`, or their default if they are 0.
  [[nodiscard]] Bytes query_bytes() const noexcept { return queries > 0 ? queries : keys / 2; }

  friend bool operator==(const ProfiledLayer&, const ProfiledLayer&) = default;
};

/// The costs of a model's layers. A value type.
///
/// Between two measured numbers of samples, a time is on the straight line through both. Above the
/// most samples that were measured, it is proportional to samples. Below the fewest, it is on the
/// line through the two nearest measurements, but not below what is proportional to samples. A time
/// never falls with more samples: a measurement that is below one of fewer samples counts as the
/// time of the latter. So 10% of noise in the measurements changes a time of more samples by no
/// more than that. No samples take no time. The time of an update is the one that was measured with
/// the fewest samples. If the ranks of a group divide a layer, each has an equal share of its
/// parameters and of what it saves, rounded up.
struct Profile {
  std::string model = {};                  ///< shown to people
  Bytes input = 0;                         ///< that the first layer reads, a sample
  std::vector<ProfiledLayer> layers = {};  ///< in order
  /// The kind of device whose times, divided by Device::speed, stand for kinds that were not
  /// measured. Empty: every kind must have been measured.
  std::string reference = {};

  /// Returns the times of one layer for `samples` samples on a device.
  /// @throws contract_error if there is no such layer, or if the kind of device or the tensor
  ///         degree was not measured. The error names them, and what was measured.
  [[nodiscard]] LayerTimes times(int layer, const Device& device, int tensor, double samples) const;
  /// Returns the sum of the times of several layers. @throws contract_error as for one layer.
  [[nodiscard]] LayerTimes times(LayerRange range, const Device& device, int tensor,
                                 double samples) const;
  /// Returns the bytes of the weights of several layers, for one of `tensor` ranks.
  [[nodiscard]] Bytes parameters(LayerRange range, int tensor = 1) const;
  /// Returns the bytes a sample that several layers keep from forward to backward, for one of
  /// `tensor` ranks.
  [[nodiscard]] Bytes saved(LayerRange range, int tensor = 1) const;
  /// Returns the bytes a sample that layer `layer` reads.
  [[nodiscard]] Bytes input_of(int layer) const;
  /// Returns the tensor degrees that were measured for every layer on this kind of device, in
  /// ascending order.
  [[nodiscard]] std::vector<int> tensor_degrees(const Device& device) const;

  friend bool operator==(const Profile&, const Profile&) = default;
  /// Prints the model, its layers, the devices, degrees and samples that were measured.
  friend std::ostream& operator<<(std::ostream& out, const Profile& profile);
};

/// Checks a profile. @throws contract_error if it has no layers, a layer was not measured (if there
///         is a `reference`, on that device), a measurement appears twice, a time is negative,
///         infinite or not a number, or if a forward takes no time. The error names the layer and
///         the measurement.
void check(const Profile& profile);

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/profile.ipp>
#endif

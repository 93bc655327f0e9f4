// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of profile.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/machine/device.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/internal/is_time.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns "layer 3 ('attention')".
[[nodiscard]] inline std::string layer_text(const plan::Profile& profile, int layer) {
  return text("layer ", layer, " ('", profile.layers[static_cast<std::size_t>(layer)].name, "')");
}

/// Returns the kinds, degrees and samples of a layer's measurements: "a100 x 2: 1 4 8; ...".
[[nodiscard]] inline std::string measured_text(const plan::ProfiledLayer& layer) {
  std::vector<std::pair<std::pair<std::string, int>, std::int64_t>> all;
  for (const plan::LayerMeasurement& m : layer.measured)
    all.push_back({{m.device, m.tensor}, m.samples});
  std::ranges::sort(all);
  std::string result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 0 || all[i].first != all[i - 1].first)
      result += text(i == 0 ? "" : "; ", all[i].first.first, ", tensor degree ",
                     all[i].first.second, ", samples");
    result += text(' ', all[i].second);
  }
  return result;
}

inline void expect_layer(const plan::Profile& profile, int layer, const char* where) {
  expects(layer >= 0 && static_cast<std::size_t>(layer) < profile.layers.size(), [&] {
    return ErrorInfo{where, "no such layer", text("layer ", layer, " of ", profile.layers.size())};
  });
}

inline void expect_range(const plan::Profile& profile, LayerRange range, const char* where) {
  expects(range.first >= 0 && range.first <= range.last &&
              static_cast<std::size_t>(range.last) <= profile.layers.size(),
          [&] {
            return ErrorInfo{
                where, "no such layers",
                text("layers ", range.first, " to ", range.last, " of ", profile.layers.size())};
          });
}

/// Returns whether a layer was measured on this kind of device.
[[nodiscard]] inline bool measured_on(const plan::ProfiledLayer& layer, std::string_view device) {
  return std::ranges::find(layer.measured, device, &plan::LayerMeasurement::device) !=
         layer.measured.end();
}

/// Returns the kind of device whose measurements of `layer` stand for `device`, or "".
[[nodiscard]] inline std::string_view kind_for(const plan::Profile& profile,
                                               const plan::ProfiledLayer& layer,
                                               std::string_view device) {
  if (measured_on(layer, device)) return device;
  if (!profile.reference.empty() && measured_on(layer, profile.reference)) return profile.reference;
  return {};
}

/// Returns the times for `samples` samples by the measurements of one kind and degree. At least one
/// exists.
[[nodiscard]] inline plan::LayerTimes times_between(const plan::ProfiledLayer& layer,
                                                    std::string_view kind, int tensor,
                                                    double samples) {
  const auto counts = [&](const plan::LayerMeasurement& m) {
    return m.tensor == tensor && m.device == kind;
  };
  constexpr auto raise = [](plan::LayerTimes& times, const plan::LayerTimes& by) {
    for (const auto time : {&plan::LayerTimes::forward, &plan::LayerTimes::backward_input,
                            &plan::LayerTimes::backward_weight})
      times.*time = std::max(times.*time, by.*time);
  };
  // A time counts as not below one of fewer samples.
  plan::LayerTimes near_times;
  // The nearest measurement at or below `samples`, the two nearest above, and the first of all.
  const plan::LayerMeasurement *below = nullptr, *above = nullptr, *next = nullptr,
                               *least = nullptr;
  for (const plan::LayerMeasurement& m : layer.measured) {
    if (!counts(m)) continue;
    if (least == nullptr || m.samples < least->samples) least = &m;
    if (static_cast<double>(m.samples) <= samples) {
      raise(near_times, m.times);
      if (below == nullptr || m.samples > below->samples) below = &m;
    } else if (above == nullptr || m.samples < above->samples) {
      next = std::exchange(above, &m);
    } else if (next == nullptr || m.samples < next->samples) {
      next = &m;
    }
  }
  if (samples <= 0) return {.update = least->times.update};
  const plan::LayerMeasurement& near = below != nullptr ? *below : *above;
  const plan::LayerMeasurement* far = below != nullptr ? above : next;
  const auto near_samples = static_cast<double>(near.samples);
  raise(near_times, near.times);
  plan::LayerTimes far_times = near_times;
  if (far != nullptr) raise(far_times, far->times);
  const auto at = [&](Seconds plan::LayerTimes::*time) {
    const Seconds near_time = near_times.*time, scaled = near_time * (samples / near_samples);
    if (far == nullptr) return scaled;
    const double share =
        (samples - near_samples) / static_cast<double>(far->samples - near.samples);
    return std::max(near_time + (far_times.*time - near_time) * share,
                    below == nullptr ? scaled : 0);
  };
  return {.forward = at(&plan::LayerTimes::forward),
          .backward_input = at(&plan::LayerTimes::backward_input),
          .backward_weight = at(&plan::LayerTimes::backward_weight),
          .update = least->times.update};
}

/// Returns a layer's share of `bytes`, rounded up.
[[nodiscard]] inline Bytes share_of(Bytes bytes, int tensor) {
  const auto ranks = static_cast<Bytes>(tensor);
  return bytes / ranks + (bytes % ranks != 0);
}

[[nodiscard]] inline Bytes sum_of(const plan::Profile& profile, LayerRange range, int tensor,
                                  Bytes plan::ProfiledLayer::*bytes, const char* where) {
  expect_range(profile, range, where);
  expects(tensor >= 1, [&] {
    return ErrorInfo{where, "a tensor degree is at least 1", text("tensor = ", tensor)};
  });
  Bytes sum = 0;
  for (int l = range.first; l < range.last; ++l) {
    const Bytes more = share_of(profile.layers[static_cast<std::size_t>(l)].*bytes, tensor);
    sum += more;
    expects(sum >= more, [&] {
      return ErrorInfo{where, "the bytes of the layers do not fit in 64 bits",
                       text(layer_text(profile, l), " has ", more, " bytes")};
    });
  }
  return sum;
}

}  // namespace impl

namespace plan {

HEDDLE_INLINE LayerTimes Profile::times(int layer, const Device& device, int tensor,
                                        double samples) const {
  constexpr const char* where = "heddle::plan::Profile::times";
  heddle::impl::expect_layer(*this, layer, where);
  const ProfiledLayer& profiled = layers[static_cast<std::size_t>(layer)];
  const std::string_view kind = heddle::impl::kind_for(*this, profiled, device.name);
  expects(!kind.empty(), [&] {
    return ErrorInfo{where, text("the device '", device.name, "' was not measured"),
                     text(heddle::impl::layer_text(*this, layer), " has ",
                          heddle::impl::measured_text(profiled)),
                     "measure it, or set Profile::reference to a kind that was"};
  });
  expects(std::ranges::any_of(
              profiled.measured,
              [&](const LayerMeasurement& m) { return m.tensor == tensor && m.device == kind; }),
          [&] {
            return ErrorInfo{where,
                             text("tensor degree ", tensor, " was not measured on '", kind, "'"),
                             text(heddle::impl::layer_text(*this, layer), " has ",
                                  heddle::impl::measured_text(profiled)),
                             "use a degree that was measured"};
          });
  expects(std::isfinite(samples), [&] {
    return ErrorInfo{where, "a number of samples must be finite", text("samples = ", samples)};
  });
  expects(device.speed > 0 && std::isfinite(device.speed), [&] {
    return ErrorInfo{where, "the speed of a device must be above 0 and finite",
                     text("'", device.name, "' has speed = ", device.speed)};
  });
  LayerTimes times = heddle::impl::times_between(profiled, kind, tensor, samples);
  using heddle::impl::is_time;
  expects(
      is_time(times.forward) && is_time(times.backward_input) && is_time(times.backward_weight) &&
          is_time(times.update),
      [&] {
        return ErrorInfo{
            where, "the measurements give a time that is negative or not finite",
            text(heddle::impl::layer_text(*this, layer), " for ", samples, " samples on '", kind,
                 "': forward = ", times.forward, ", backward_input = ", times.backward_input,
                 ", backward_weight = ", times.backward_weight, ", update = ", times.update),
            "correct the measurements; see check(const Profile&)"};
      });
  if (kind != device.name)
    for (const auto time : {&LayerTimes::forward, &LayerTimes::backward_input,
                            &LayerTimes::backward_weight, &LayerTimes::update})
      times.*time /= device.speed;
  return times;
}

HEDDLE_INLINE LayerTimes Profile::times(LayerRange range, const Device& device, int tensor,
                                        double samples) const {
  heddle::impl::expect_range(*this, range, "heddle::plan::Profile::times");
  LayerTimes sum;
  for (int l = range.first; l < range.last; ++l) sum += times(l, device, tensor, samples);
  return sum;
}

HEDDLE_INLINE Bytes Profile::parameters(LayerRange range, int tensor) const {
  return heddle::impl::sum_of(*this, range, tensor, &ProfiledLayer::parameters,
                              "heddle::plan::Profile::parameters");
}

HEDDLE_INLINE Bytes Profile::saved(LayerRange range, int tensor) const {
  return heddle::impl::sum_of(*this, range, tensor, &ProfiledLayer::saved,
                              "heddle::plan::Profile::saved");
}

HEDDLE_INLINE Bytes Profile::input_of(int layer) const {
  heddle::impl::expect_layer(*this, layer, "heddle::plan::Profile::input_of");
  return layer == 0 ? input : layers[static_cast<std::size_t>(layer) - 1].output;
}

HEDDLE_INLINE std::vector<int> Profile::tensor_degrees(const Device& device) const {
  std::vector<int> common;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const std::string_view kind = heddle::impl::kind_for(*this, layers[l], device.name);
    std::vector<int> degrees, both;
    for (const LayerMeasurement& m : layers[l].measured)
      if (!kind.empty() && m.device == kind) degrees.push_back(m.tensor);
    std::ranges::sort(degrees);
    degrees.erase(std::unique(degrees.begin(), degrees.end()), degrees.end());
    if (l == 0)
      both = degrees;
    else
      std::ranges::set_intersection(common, degrees, std::back_inserter(both));
    common = std::move(both);
  }
  return common;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Profile& profile) {
  const LayerRange all{0, static_cast<int>(profile.layers.size())};
  out << (profile.model.empty() ? "a model" : profile.model) << ": " << profile.layers.size()
      << (profile.layers.size() == 1 ? " layer, " : " layers, ") << profile.parameters(all)
      << " bytes of parameters, input of " << profile.input << " bytes a sample";
  if (!profile.reference.empty()) out << ", other devices relative to " << profile.reference;
  // Equal neighbours have one line.
  const auto equal = [](const ProfiledLayer& a, ProfiledLayer b) {
    b.name = a.name;
    return a == b;
  };
  for (std::size_t begin = 0; begin < profile.layers.size();) {
    const ProfiledLayer& layer = profile.layers[begin];
    std::size_t end = begin + 1;
    while (end < profile.layers.size() && equal(layer, profile.layers[end])) ++end;
    out << '\n' << (end - begin == 1 ? "layer " : "layers ") << begin;
    if (end - begin != 1) out << '-' << end - 1;
    if (!layer.name.empty()) out << " (" << layer.name << (end - begin == 1 ? ")" : ", ...)");
    out << ": parameters " << layer.parameters << ", output " << layer.output << ", saved "
        << layer.saved << ", delta " << layer.delta;
    if (layer.keys > 0) out << ", keys " << layer.keys;
    if (layer.queries > 0) out << ", queries " << layer.queries;
    out << "; measured on " << heddle::impl::measured_text(layer);
    begin = end;
  }
  return out;
}

HEDDLE_INLINE void check(const Profile& profile) {
  constexpr const char* where = "heddle::check(Profile)";
  expects(!profile.layers.empty(), [&] {
    return ErrorInfo{where, "a profile has at least one layer", text("'", profile.model, "': 0")};
  });
  for (int l = 0; l < static_cast<int>(profile.layers.size()); ++l) {
    const ProfiledLayer& layer = profile.layers[static_cast<std::size_t>(l)];
    expects(!layer.measured.empty(), [&] {
      return ErrorInfo{where, "every layer must be measured",
                       text(heddle::impl::layer_text(profile, l), " has no measurement"),
                       "measure it, or merge it with a neighbour"};
    });
    expects(profile.reference.empty() || heddle::impl::measured_on(layer, profile.reference), [&] {
      return ErrorInfo{where, "every layer must be measured on the device of reference",
                       text(heddle::impl::layer_text(profile, l), " was not on '",
                            profile.reference, "'; it has ", heddle::impl::measured_text(layer))};
    });
    for (std::size_t i = 0; i < layer.measured.size(); ++i) {
      const LayerMeasurement& m = layer.measured[i];
      const auto of = [&] {
        return text(heddle::impl::layer_text(profile, l), ", measurement ", i, " on '", m.device,
                    "' (tensor degree ", m.tensor, ", ", m.samples, " samples): ");
      };
      expects(!m.device.empty() && m.tensor >= 1 && m.samples >= 1, [&] {
        return ErrorInfo{where, "a measurement needs a device, a degree of at least 1 and a sample",
                         heddle::impl::layer_text(profile, l) +
                             text(", measurement ", i, ": device '", m.device, "', tensor ",
                                  m.tensor, ", samples ", m.samples)};
      });
      for (const auto& [name, time] : {std::pair{"forward", m.times.forward},
                                       {"backward_input", m.times.backward_input},
                                       {"backward_weight", m.times.backward_weight},
                                       {"update", m.times.update}})
        expects(std::isfinite(time) && time >= 0, [&] {
          return ErrorInfo{where, "a time must be finite and at least 0",
                           text(of(), name, ' ', time, " s"), "measure it again"};
        });
      expects(m.times.forward > 0, [&] {
        return ErrorInfo{where, "a forward takes time", text(of(), "forward 0 s"),
                         "measure more samples, or merge the layer with a neighbour"};
      });
      for (std::size_t j = 0; j < i; ++j) {
        const LayerMeasurement& other = layer.measured[j];
        expects(other.samples != m.samples || other.tensor != m.tensor || other.device != m.device,
                [&] {
                  return ErrorInfo{where, "a measurement appears twice",
                                   text(of(), "also measurement ", j), "keep one of them"};
                });
      }
    }
  }
}

}  // namespace plan

}  // namespace heddle::inline v0

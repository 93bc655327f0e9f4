// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What leaves a simulation: its state in a file, a picture and the power of its waves.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/checkpoint.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/trace/png.hpp>

#include "domain.hpp"
#include "exchange.hpp"

namespace nbody {

/// Returns the bodies of all ranks by their numbers, on rank 0 alone. All ranks call it.
[[nodiscard]] inline std::vector<Body> gathered(const std::vector<Body>& bodies,
                                                const heddle::Communicator& comm) {
  const Kokkos::View<Body*, Kokkos::HostSpace> send(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, "nbody::state"), bodies.size());
  std::copy(bodies.begin(), bodies.end(), send.data());
  std::vector<std::size_t> counts(static_cast<std::size_t>(comm.size()), 0);
  counts[0] = bodies.size();
  const auto received =
      examples::Exchange(counts, comm).there(Kokkos::DefaultHostExecutionSpace{}, send);
  std::vector<Body> all(received.data(), received.data() + received.size());
  std::ranges::sort(all, {}, &Body::number);
  return all;
}

/// Calls `write()` on rank 0, which throws its error. If there is one, the other ranks throw, too,
/// so that none waits for rank 0. All ranks call it.
template <class Write>
void on_first_rank(const heddle::Communicator& comm, Write&& write) {
  std::exception_ptr error;
  try {
    if (comm.rank() == 0) write();
  } catch (...) {
    error = std::current_exception();
  }
  const int failed = heddle::all_reduce(error ? 1 : 0, heddle::Max{}, comm);
  if (error) std::rethrow_exception(error);
  if (failed != 0) throw heddle::format_error({"nbody", "rank 0 cannot write a file"});
}

/// A setting of a run. If `names` is not empty, the value is the number of one of them.
struct Setting {
  std::string name;
  double value;
  std::vector<std::string_view> names = {};

  /// Returns a value as a user would write it.
  [[nodiscard]] std::string shown(double of_file) const {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (of_file == static_cast<double>(i)) return std::string(names[i]);
    return heddle::text(of_file);
  }
};

/// The settings that a file of save() contains. A run goes on from a file if all of them are equal.
using Run = std::vector<Setting>;

/// Writes bodies in the order of their numbers, so that the file is the same for any number of
/// ranks with the same values.
inline void save(const std::string& path, const std::vector<Body>& bodies, const Run& run,
                 std::int64_t step) {
  heddle::Checkpoint file;
  std::vector<double> about, values;
  for (const auto& setting : run) about.push_back(setting.value);
  file.set("run", about);
  file.set("step", std::vector<std::int64_t>{step});
  for (const Body& body : bodies) {
    for (const Vector3* vector : {&body.place, &body.speed, &body.pull})
      values.insert(values.end(), vector->begin(), vector->end());
    values.push_back(body.mass);
    values.push_back(body.work);
  }
  file.set("bodies", values);
  file.save(path);
}

/// Reads a file of save(). Returns its step.
/// @throws format_error if it belongs to another run.
[[nodiscard]] inline std::int64_t load(const std::string& path, std::vector<Body>& bodies,
                                       const Run& run) {
  const heddle::Checkpoint file = heddle::Checkpoint::load(path);
  const std::vector<double> about = file.get<double>("run", run.size());
  for (std::size_t i = 0; i < run.size(); ++i)
    if (about[i] != run[i].value)
      throw heddle::format_error(
          {path, "the file belongs to another run",
           heddle::text("expected --", run[i].name, " ", run[i].shown(run[i].value), ", got ",
                        run[i].shown(about[i])),
           "give the options of that run, or begin without --resume"});
  const std::vector<double> values = file.get<double>("bodies");
  constexpr std::size_t each = 11;
  if (values.size() % each != 0 || values.empty())
    throw heddle::format_error({path, "the file has no whole number of particles",
                                heddle::text(values.size(), " values, ", each, " a particle"),
                                "take a file that --save has written"});
  bodies.resize(values.size() / each);
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const double* value = &values[each * i];
    for (Vector3* vector : {&bodies[i].place, &bodies[i].speed, &bodies[i].pull})
      for (double& x : *vector) x = *value++;
    bodies[i].mass = *value++;
    bodies[i].work = *value;
    bodies[i].number = static_cast<std::int64_t>(i);
  }
  return file.get<std::int64_t>("step", 1)[0];
}

/// Returns a PNG file of the box, seen along the last dimension: bright where many particles are.
[[nodiscard]] inline std::string picture(const std::vector<Body>& bodies,
                                         const heddle::Communicator& comm) {
  constexpr std::size_t side = 400;
  const Kokkos::View<std::int64_t*, Kokkos::HostSpace> cells("nbody::picture", side * side);
  const auto pixel = [](double x) { return static_cast<std::size_t>(x * side); };
  for (const Body& body : bodies) ++cells(pixel(body.place[1]) * side + pixel(body.place[0]));
  heddle::all_reduce(Kokkos::DefaultHostExecutionSpace{}, cells, heddle::Sum{}, comm);
  std::int64_t most = 1;
  for (std::size_t i = 0; i < cells.size(); ++i) most = std::max(most, cells(i));
  std::vector<heddle::trace::Pixel> pixels;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const double bright =
        std::log1p(static_cast<double>(cells(i))) / std::log1p(static_cast<double>(most));
    const auto part = [&](double from, double to) {
      return static_cast<std::uint8_t>(255 * std::clamp((bright - from) / (to - from), 0.0, 1.0));
    };
    pixels.push_back({part(0.2, 0.8), part(0.35, 1), part(0, 0.5)});
  }
  return heddle::trace::to_png(side, pixels);
}

}  // namespace nbody

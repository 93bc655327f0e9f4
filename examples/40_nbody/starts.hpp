// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Where a simulation starts: random particles, a lattice with waves, or a file. The total mass is
/// 1.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>

#include "domain.hpp"
#include "particles.hpp"

namespace nbody {

/// Time in an Einstein-de Sitter universe of mean density 1, whose scale a grows as t^(2/3): the
/// Hubble rate is sqrt(8 pi / 3) a^(-3/2). Speeds are a^2 dx/dt.
struct Expansion {
  static double rate() { return std::sqrt(8 * std::numbers::pi / 3); }
  /// Returns the integral of dt / a between two scales, which turns pulls into speeds.
  [[nodiscard]] static double kick(double from, double to) {
    return 2 * (std::sqrt(to) - std::sqrt(from)) / rate();
  }
  /// Returns the integral of dt / a^2, which turns speeds into displacements.
  [[nodiscard]] static double drift(double from, double to) {
    return 2 * (1 / std::sqrt(from) - 1 / std::sqrt(to)) / rate();
  }
  /// Returns the speed of a displacement that grows in proportion to a and is `at_one` at a = 1.
  [[nodiscard]] static double growing(double at_one, double a) {
    return rate() * a * std::sqrt(a) * at_one;
  }
};

/// Moves a coordinate into the box.
[[nodiscard]] inline double wrapped(double x) {
  x -= std::floor(x);
  return x >= 1 ? 0 : x;  // what is not a number stays so, and is found
}

/// Returns place number `i` of a lattice of side^3 places.
[[nodiscard]] inline Vector3 lattice_place(std::int64_t i, std::int64_t side) {
  const auto along = [&](std::int64_t n) {
    return (static_cast<double>(n % side) + 0.5) / static_cast<double>(side);
  };
  return {along(i / side / side), along(i / side), along(i)};
}

/// A wave of displacements that grow in proportion to a.
struct Wave {
  Vector3 k{};          ///< 2 pi times whole numbers
  Vector3 amplitude{};  ///< at a = 1
  double phase = 0;

  /// Returns the displacement of the particle that began at `q`, at a = 1.
  [[nodiscard]] Vector3 operator()(const Vector3& q) const {
    Vector3 result{};
    add_to(result, amplitude, -std::sin(dot(k, q) + phase));
    return result;
  }
};

/// Returns Zel'dovich's plane wave, whose particles meet at a = 1.
[[nodiscard]] inline std::vector<Wave> plane_wave() {
  constexpr double turn = 2 * std::numbers::pi;
  return {{{turn, 0, 0}, {1 / turn, 0, 0}, 0}};
}

/// Returns random waves up to 4 along the box, whose displacements have a mean square of
/// (0.08)^2 at a = 1. The power of the density falls as 1 / k.
[[nodiscard]] inline std::vector<Wave> random_waves(std::uint64_t seed) {
  const Random random(seed, "waves");
  std::vector<Wave> waves;
  double square = 0;
  std::uint64_t draw = 0;
  for (int x = -4; x <= 4; ++x)
    for (int y = -4; y <= 4; ++y)
      for (int z = -4; z <= 4; ++z) {
        const double length = std::sqrt(x * x + y * y + z * z);
        if (!(std::array{x, y, z} > std::array{0, 0, 0}) || length > 4) continue;
        const double size = random.normal(2 * draw) / std::pow(length, 1.5);
        const double phase = 2 * std::numbers::pi * random.uniform(2 * draw + 1);
        ++draw;
        Wave wave{{}, {}, phase};
        add_to(wave.k, {1.0 * x, 1.0 * y, 1.0 * z}, 2 * std::numbers::pi);
        add_to(wave.amplitude, {x / length, y / length, z / length}, size);
        square += size * size / 2;
        waves.push_back(wave);
      }
  for (Wave& wave : waves)
    for (double& amplitude : wave.amplitude) amplitude *= 0.08 / std::sqrt(square);
  return waves;
}

/// Returns this rank's share, bodies `first` to `last`, of a lattice that the waves displace, at
/// scale `a`.
[[nodiscard]] inline std::vector<Body> displaced(std::int64_t side, const std::vector<Wave>& waves,
                                                 double a, std::int64_t first, std::int64_t last) {
  std::vector<Body> bodies;
  for (std::int64_t i = first; i < last; ++i) {
    Body body{.mass = 1 / static_cast<double>(side * side * side), .number = i};
    const Vector3 q = lattice_place(i, side);
    Vector3 at_one{};
    for (const Wave& wave : waves) add_to(at_one, wave(q));
    for (std::size_t d = 0; d < 3; ++d) {
      body.place[d] = wrapped(q[d] + a * at_one[d]);
      body.speed[d] = Expansion::growing(at_one[d], a);
    }
    bodies.push_back(body);
  }
  return bodies;
}

/// Returns bodies `first` to `last` of random particles at rest.
[[nodiscard]] inline std::vector<Body> drawn(std::int64_t count, std::uint64_t seed,
                                             std::size_t clusters, std::int64_t first,
                                             std::int64_t last) {
  const Particles all = random_particles(static_cast<std::size_t>(count), seed, clusters);
  double mass = 0;
  for (const double one : all.masses) mass += one;
  std::vector<Body> bodies;
  for (std::int64_t i = first; i < last; ++i) {
    const auto at = static_cast<std::size_t>(i);
    bodies.push_back({.place = all.places[at], .mass = all.masses[at] / mass, .number = i});
  }
  return bodies;
}

/// Reads the particles of a file. A line has a position, each coordinate in [0, 1), and a speed if
/// you like; all masses are the same. Lines that begin with # are comments.
[[nodiscard]] inline std::vector<Body> read_bodies(const std::string& path) {
  const std::string content = heddle::read_file(path);
  std::vector<Body> bodies;
  std::size_t line_number = 0;
  for (std::string_view rest = content; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++line_number;
    if (line.find_first_not_of(" \t\r") == line.npos || line.front() == '#') continue;
    std::array<double, 7> numbers{};
    std::size_t count = 0;
    bool good = true;
    for (const char* at = line.data(); good; ++count) {
      const char* const last = line.data() + line.size();
      while (at < last && (*at == ' ' || *at == '\t' || *at == '\r')) ++at;
      if (at == last || count == numbers.size()) break;
      const auto [next, error] = std::from_chars(at, last, numbers[count]);
      good = error == std::errc{} && std::isfinite(numbers[count]) &&
             (count >= 3 || (numbers[count] >= 0 && numbers[count] < 1));
      at = next;
    }
    if (!good || (count != 3 && count != 6))
      throw heddle::format_error({heddle::text(path, ":", line_number), "not a particle",
                                  heddle::text("'", line.substr(0, 60), "'"),
                                  "write a position of three numbers in [0, 1), and a speed of "
                                  "three numbers if you like"});
    Body body;
    for (std::size_t d = 0; d < 3; ++d) {
      body.place[d] = numbers[d];
      body.speed[d] = numbers[3 + d];
    }
    body.number = static_cast<std::int64_t>(bodies.size());
    bodies.push_back(body);
  }
  for (Body& body : bodies) body.mass = 1 / static_cast<double>(bodies.size());
  return bodies;
}

}  // namespace nbody

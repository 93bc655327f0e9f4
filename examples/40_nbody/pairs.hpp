// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The kernel of direct pairs: the near pull on the particles of leaves, from lists of other
/// leaves. On a host it computes several targets side by side, with the instructions that the
/// processor has.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include <Kokkos_Core.hpp>

#include "near_potential.hpp"
#include "space.hpp"

namespace nbody {

/// The share of Newton's pull that the mesh leaves to pairs, erfc(u) + 2 u / sqrt(pi) exp(-u^2) at
/// u = r / 2 rs, as a polynomial of t = 2 r / cut - 1.
struct PairWindow {
  /// The error is below 1e-4 up to a cut-off of 6 rs.
  static constexpr int degree = 10;
  double coefficients[degree + 1] = {};

  /// Interpolates between the zeros of Chebyshev polynomials, and keeps the lowest of these.
  PairWindow(double rs, double cut) {
    constexpr int nodes = 64;
    const NearPotential pull(rs);
    std::vector<double> before(degree + 1, 0.0), now(degree + 1, 0.0);  // powers of T(k - 1), T(k)
    now[0] = 1;
    for (int k = 0; k <= degree; ++k) {
      double share = 0;
      for (int j = 0; j < nodes; ++j) {
        const double angle = std::numbers::pi * (j + 0.5) / nodes;
        const double r = cut / 2 * (std::cos(angle) + 1);
        share += pull(1, r) * r * r * r * std::cos(k * angle) * (k == 0 ? 1 : 2) / nodes;
      }
      for (std::size_t power = 0; power < now.size(); ++power)
        coefficients[power] += share * now[power];
      std::vector<double> next(degree + 1, 0.0);
      for (std::size_t power = 0; power < now.size(); ++power) {
        if (power > 0) next[power] += (k == 0 ? 1 : 2) * now[power - 1];
        if (k > 0) next[power] -= before[power];
      }
      before = now;
      now = next;
    }
  }
};

/// Leaves and the lists of those that pull on them, in the memory of the execution space.
struct PairTask {
  static constexpr int own_image = 13;   ///< no shift
  static constexpr int each_image = 27;  ///< each pair has a nearest image of its own

  const double *x = nullptr, *y = nullptr, *z = nullptr, *mass = nullptr;  // by particle
  double *pull_x = nullptr, *pull_y = nullptr, *pull_z = nullptr;          // by particle
  const std::int32_t* targets = nullptr;  // by leaf: first particle, one past the last
  const std::int32_t* begins = nullptr;   // by leaf: first source; one more at the end
  const std::int32_t* sources = nullptr;  // by source: first particle, one past the last, image
  PairWindow window;
  double cut, softening;

  /// Adds the pulls of all sources to up to `lanes` targets from `first` on.
  template <int lanes>
  KOKKOS_FORCEINLINE_FUNCTION void pull(int leaf, int first, int last) const {
    double at_x[lanes], at_y[lanes], at_z[lanes], sum_x[lanes], sum_y[lanes], sum_z[lanes];
    for (int k = 0; k < lanes; ++k) {
      const int i = first + k < last ? first + k : last - 1;
      at_x[k] = x[i];
      at_y[k] = y[i];
      at_z[k] = z[i];
      sum_x[k] = sum_y[k] = sum_z[k] = 0;
    }
    const double scale = 2 / cut, most = cut * cut, soft = softening * softening;
    for (int source = begins[leaf]; source < begins[leaf + 1]; ++source) {
      const int image = sources[3 * source + 2];
      const bool each = image == each_image;
      const double shift_x = each ? 0 : image / 9 - 1;
      const double shift_y = each ? 0 : image / 3 % 3 - 1;
      const double shift_z = each ? 0 : image % 3 - 1;
      for (int j = sources[3 * source]; j < sources[3 * source + 1]; ++j) {
        const double from_x = x[j] + shift_x, from_y = y[j] + shift_y, from_z = z[j] + shift_z;
        const double weight = mass[j];
        double off_x[lanes], off_y[lanes], off_z[lanes];
        for (int k = 0; k < lanes; ++k) {
          off_x[k] = from_x - at_x[k];
          off_y[k] = from_y - at_y[k];
          off_z[k] = from_z - at_z[k];
        }
        if (each)
          for (int k = 0; k < lanes; ++k) {
            off_x[k] -= Kokkos::round(off_x[k]);
            off_y[k] -= Kokkos::round(off_y[k]);
            off_z[k] -= Kokkos::round(off_z[k]);
          }
        for (int k = 0; k < lanes; ++k) {
          const double real = off_x[k] * off_x[k] + off_y[k] * off_y[k] + off_z[k] * off_z[k];
          const double square = real + soft;
          const double root = inverse_root<lanes>(square);
          const double t = scale * (square * root) - 1;
          double share = window.coefficients[PairWindow::degree];
          for (int power = PairWindow::degree - 1; power >= 0; --power)
            share = share * t + window.coefficients[power];
          const double pulls = weight * share * (root * root * root);
          const double kept = real > 0 && real <= most ? pulls : 0;
          sum_x[k] += kept * off_x[k];
          sum_y[k] += kept * off_y[k];
          sum_z[k] += kept * off_z[k];
        }
      }
    }
    for (int k = 0; k < lanes && first + k < last; ++k) {
      pull_x[first + k] += sum_x[k];
      pull_y[first + k] += sum_y[k];
      pull_z[first + k] += sum_z[k];
    }
  }
  template <int lanes>
  KOKKOS_FORCEINLINE_FUNCTION void pull_leaf(int leaf) const {
    const int last = targets[2 * leaf + 1];
    for (int first = targets[2 * leaf]; first < last; first += lanes)
      pull<lanes>(leaf, first, last);
  }

 private:
  /// Returns 1 / sqrt(square). Side by side: an estimate from the bits of the number, whose error
  /// of 3.4% becomes 5e-6 by two steps of Newton's method, far below the error of the window.
  template <int lanes>
  KOKKOS_FORCEINLINE_FUNCTION static double inverse_root(double square) {
    if constexpr (lanes == 1) {
      return 1 / Kokkos::sqrt(square);
    } else {
      double root = Kokkos::bit_cast<double>(0x5fe6eb50c7b537a9 -
                                             (Kokkos::bit_cast<std::uint64_t>(square) >> 1));
      const double half = 0.5 * square;
      root *= 1.5 - half * root * root;
      root *= 1.5 - half * root * root;
      return root;
    }
  }
};

using PairFunction = void (*)(const PairTask&, int leaf);

inline void pull_usual(const PairTask& task, int leaf) { task.pull_leaf<4>(leaf); }

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
__attribute__((target("avx2,fma"))) inline void pull_avx2(const PairTask& task, int leaf) {
  task.pull_leaf<8>(leaf);
}
__attribute__((
    target("avx512f,avx512dq,avx512vl,avx512bw,fma,prefer-vector-width=512"))) inline void
pull_avx512(const PairTask& task, int leaf) {
  task.pull_leaf<16>(leaf);
}
/// Returns the form of the kernel for the processor of this machine.
[[nodiscard]] inline PairFunction pair_function() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    return pull_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return pull_avx2;
  return pull_usual;
}
#else
[[nodiscard]] inline PairFunction pair_function() { return pull_usual; }
#endif

/// The kernel: one leaf each.
struct PullLeaves {
  PairTask task;
  PairFunction on_host;  ///< of pair_function()

  KOKKOS_FUNCTION void operator()(int leaf) const {
    KOKKOS_IF_ON_HOST((on_host(task, leaf);))
    KOKKOS_IF_ON_DEVICE((task.pull_leaf<1>(leaf);))
  }
};

}  // namespace nbody

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// optional: fftw3 fftw3.h

/// @file
/// Example 40 on one rank and one thread, by processor time: the kernel of direct pairs against the
/// widest multiply-adds of the core, and how the time of all forces grows from 16k to 1M particles.

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>
#ifdef HEDDLE_HAS_FFTW3
#include <fftw3.h>
#endif
#if defined(__x86_64__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/core/text.hpp>

#include "../../examples/40_nbody/gravity.hpp"
#include "../../examples/40_nbody/pairs.hpp"
#include "../../examples/40_nbody/particles.hpp"
#include "../support.hpp"

namespace {

constexpr const char* name = "applications/nbody";

#if defined(__x86_64__) && !defined(__CUDACC__)
constexpr int chains = 16;  // enough for two units of four cycles each

__attribute__((target("avx512f"))) double multiply_adds_512(std::int64_t rounds) {
  __m512d sums[chains];
  const __m512d factor = _mm512_set1_pd(0.999), addend = _mm512_set1_pd(0.001);
  for (int c = 0; c < chains; ++c) sums[c] = _mm512_set1_pd(c);
  for (std::int64_t i = 0; i < rounds; ++i)
    for (int c = 0; c < chains; ++c) sums[c] = _mm512_fmadd_pd(sums[c], factor, addend);
  for (int c = 1; c < chains; ++c) sums[0] = _mm512_add_pd(sums[0], sums[c]);
  double lanes[8];
  _mm512_storeu_pd(lanes, sums[0]);
  return lanes[0] + lanes[7];
}
__attribute__((target("avx2,fma"))) double multiply_adds_256(std::int64_t rounds) {
  __m256d sums[chains];
  const __m256d factor = _mm256_set1_pd(0.999), addend = _mm256_set1_pd(0.001);
  for (int c = 0; c < chains; ++c) sums[c] = _mm256_set1_pd(c);
  for (std::int64_t i = 0; i < rounds; ++i)
    for (int c = 0; c < chains; ++c) sums[c] = _mm256_fmadd_pd(sums[c], factor, addend);
  for (int c = 1; c < chains; ++c) sums[0] = _mm256_add_pd(sums[0], sums[c]);
  return _mm256_cvtsd_f64(sums[0]);
}
#endif

/// The seconds that so many operations take at the core's widest rate, or 0 if it is not known.
double seconds_of_multiply_adds(double operations) {
#if defined(__x86_64__) && !defined(__CUDACC__)
  const bool wide = __builtin_cpu_supports("avx512f");
  if (!wide && !__builtin_cpu_supports("fma")) return 0;
  const double each = 2.0 * chains * (wide ? 8 : 4);
  const auto rounds = static_cast<std::int64_t>(operations / each);
  double sum = 0;
  const double seconds = bench::processor_seconds_of(
      [&] { sum = wide ? multiply_adds_512(rounds) : multiply_adds_256(rounds); });
  return sum == 0 ? 0 : seconds;
#else
  return operations * 0;
#endif
}

/// All pairs of particles in leaves of 32, in turn with multiply-adds.
void measure_kernel() {
  constexpr std::int32_t count = 2048, leaf = 32, leaves = count / leaf;
  const nbody::Particles particles = nbody::random_particles(count, 1);
  std::vector<double> values(7 * count, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t d = 0; d < 3; ++d) values[d * count + i] = 0.1 * particles.places[i][d];
    values[3 * count + i] = particles.masses[i];
  }
  std::vector<std::int32_t> targets, begins{0}, sources;
  for (std::int32_t to = 0; to < leaves; ++to) {
    targets.insert(targets.end(), {leaf * to, leaf * (to + 1)});
    for (std::int32_t from = 0; from < leaves; ++from)
      sources.insert(sources.end(), {leaf * from, leaf * (from + 1), nbody::PairTask::own_image});
    begins.push_back(leaves * (to + 1));
  }
  const double cut = 0.2;
  nbody::PairTask task{.window = nbody::PairWindow(cut / 6, cut), .cut = cut, .softening = 0};
  double* const at = values.data();
  task.x = at, task.y = at + count, task.z = at + 2 * count, task.mass = at + 3 * count;
  task.pull_x = at + 4 * count, task.pull_y = at + 5 * count, task.pull_z = at + 6 * count;
  task.targets = targets.data(), task.begins = begins.data(), task.sources = sources.data();
  const nbody::PullLeaves kernel{task, nbody::pair_function()};
  // 43 operations are the least that the sum needs: a window of degree 8, and one step of Newton's
  // method. What the kernel computes beyond them does not count.
  constexpr double operations = 43.0 * count * count;
  std::vector<double> ours, widest, rates;
  for (int round = 0; round < 31; ++round) {
    ours.push_back(bench::processor_seconds_of([&] {
      for (int l = 0; l < leaves; ++l) kernel(l);
    }));
    widest.push_back(seconds_of_multiply_adds(operations));
    rates.push_back(1e-9 * operations / ours.back());
  }
  bench::print_value(name, "pair_kernel", bench::summarise(rates), "Gop/s");
  if (widest.back() > 0)
    bench::print_ratio(name, "multiply_adds", bench::ratios(widest, ours));
  else
    std::cout << "skip " << name << " the processor has no wide multiply-adds\n";
}

#ifdef HEDDLE_HAS_FFTW3
void transform(std::complex<double>* data, const nbody::Lines& lines, int sign) {
  static std::map<std::pair<nbody::Lines, int>, fftw_plan> plans;
  auto* const values = reinterpret_cast<fftw_complex*>(data);
  fftw_plan& plan = plans[{lines, sign}];
  const int count = static_cast<int>(lines.count), stride = static_cast<int>(lines.stride);
  const int apart = static_cast<int>(lines.apart);
  if (plan == nullptr)
    plan =
        fftw_plan_many_dft(1, &count, static_cast<int>(lines.lines), values, nullptr, stride, apart,
                           values, nullptr, stride, apart, sign, FFTW_ESTIMATE | FFTW_UNALIGNED);
  fftw_execute_dft(plan, values, values);
}

/// The exponent of the time of all forces, from 25^3 particles to 100^3, one for each cell of the
/// mesh.
void measure_growth(const heddle::Communicator& comm) {
  const auto seconds = [&](std::size_t side) {
    const std::size_t count = side * side * side;
    const nbody::Particles particles = nbody::random_particles(count, 1);
    std::vector<nbody::Body> bodies;
    for (std::size_t i = 0; i < count; ++i)
      bodies.push_back({.place = particles.places[i],
                        .mass = particles.masses[i],
                        .number = static_cast<std::int64_t>(i)});
    nbody::Gravity gravity(comm, {.mesh = side, .theta = 0.5, .meshes = 1, .leaf_size = 32}, 0,
                           transform);
    const double time = bench::processor_seconds_of([&] { gravity.compute(bodies); });
    bench::require_equal("the number of covered pairs", gravity.interactions().covered,
                         static_cast<std::int64_t>(count * count));
    return time;
  };
  const double few = seconds(25), many = seconds(100);
  bench::print_value(name, "growth", bench::summarise({std::log(many / few) / std::log(64.0)}),
                     "exponent");
  bench::print_value(name, "million", bench::summarise({many}), "s");
}
#endif

}  // namespace

int main(int argc, char** argv) {
  heddle::Environment env(argc, argv);
  return bench::status_of(name, [] {
    measure_kernel();
#ifdef HEDDLE_HAS_FFTW3
    measure_growth(heddle::Communicator(MPI_COMM_WORLD));
#else
    std::cout << "skip " << name << " the growth of the time needs FFTW, which was not found\n";
#endif
  });
}

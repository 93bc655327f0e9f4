// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Particles under gravity in a periodic box, static or expanding. Far forces come from a mesh, near
// ones from trees, and very near ones from pairs. Particles move between ranks as their work does.
//
//   mpiexec -n 4 example_40_nbody                              (or any other number of ranks)
//   mpiexec -n 4 example_40_nbody --start zeldovich            a wave with a known solution
//   mpiexec -n 4 example_40_nbody --pictures FOLDER            writes frames and the power of waves
//   mpiexec -n 4 example_40_nbody --read FILE --dt 0.001       your own particles

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fftw3.h>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/operations.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/layout/share.hpp>

#include "domain.hpp"
#include "gravity.hpp"
#include "options.hpp"
#include "results.hpp"
#include "starts.hpp"
#include "state.hpp"

namespace {

namespace hd = heddle;
using namespace nbody;

constexpr std::array<std::string_view, 4> starts{"waves", "zeldovich", "random", "clusters"};

struct Settings {
  std::int64_t particles = 16;
  std::uint64_t seed = 1;
  std::string start = "waves", read, save, resume, pictures;
  std::size_t clusters = 5;
  Splitting splitting{.mesh = 32, .theta = 0.5, .leaf_size = 16};
  double softening = 0.002, dt = 0.002, from = 0.1, to = 1;
  std::int64_t steps = 20, stop = -1, frames = 10;
};

/// Transforms lines by plans of FFTW, which it keeps.
class FftwLines {
 public:
  FftwLines() = default;
  FftwLines(const FftwLines&) = delete;
  FftwLines& operator=(const FftwLines&) = delete;
  ~FftwLines() {
    for (const auto& [what, plan] : m_plans) fftw_destroy_plan(plan);
  }
  void operator()(std::complex<double>* data, const Lines& lines, int sign) {
    auto* const values = reinterpret_cast<fftw_complex*>(data);
    fftw_plan& plan = m_plans[{lines, sign}];
    if (plan == nullptr) {
      const int count = static_cast<int>(lines.count), stride = static_cast<int>(lines.stride);
      const int apart = static_cast<int>(lines.apart);
      plan = fftw_plan_many_dft(1, &count, static_cast<int>(lines.lines), values, nullptr, stride,
                                apart, values, nullptr, stride, apart, sign,
                                FFTW_ESTIMATE | FFTW_UNALIGNED);
    }
    fftw_execute_dft(plan, values, values);
  }

 private:
  std::map<std::pair<Lines, int>, fftw_plan> m_plans;
};

/// Returns the first particles of this rank.
std::vector<Body> started(const Settings& settings, const hd::Communicator& comm) {
  hd::expects(std::ranges::find(starts, settings.start) != starts.end(), [&] {
    return hd::ErrorInfo{"command line",
                         hd::text("--start has no '", settings.start, "'"),
                         {},
                         "choose one of waves, zeldovich, random, clusters"};
  });
  hd::expects(settings.particles >= 1 && settings.particles <= 1024, [&] {
    return hd::ErrorInfo{"command line", "there are no such particles",
                         hd::text("--particles ", settings.particles),
                         "give the side of a cube of 1 to 1024 particles"};
  });
  std::vector<Body> all;
  if (!settings.read.empty()) all = read_bodies(settings.read);
  const std::int64_t side = settings.particles;
  const auto count =
      settings.read.empty() ? side * side * side : static_cast<std::int64_t>(all.size());
  hd::expects(count >= comm.size(), [&] {
    return hd::ErrorInfo{"nbody", "there are more ranks than particles",
                         hd::text(comm.size(), " ranks, and ", count, " particles"),
                         hd::text("start at most ", count, " ranks, or give more particles")};
  });
  const hd::Share share =
      hd::even_share(static_cast<std::size_t>(count), static_cast<std::size_t>(comm.size()),
                     static_cast<std::size_t>(+comm.rank()));
  const auto first = static_cast<std::int64_t>(share.first);
  const auto last = static_cast<std::int64_t>(share.end());
  if (!settings.read.empty()) return {all.begin() + first, all.begin() + last};
  if (settings.start == "zeldovich")
    return displaced(side, plane_wave(), settings.from, first, last);
  if (settings.start == "waves")
    return displaced(side, random_waves(settings.seed), settings.from, first, last);
  return drawn(count, settings.seed, settings.start == "clusters" ? settings.clusters : 0, first,
               last);
}

class Simulation {
 public:
  Simulation(const Settings& settings, const hd::Communicator& comm)
      : m_settings(settings),
        m_comm(comm),
        m_expands(settings.read.empty() &&
                  (settings.start == "waves" || settings.start == "zeldovich")),
        m_gravity(comm, settings.splitting, settings.softening,
                  [this](std::complex<double>* data, const Lines& lines, int sign) {
                    m_fftw(data, lines, sign);
                  }) {
    hd::expects(
        settings.steps >= 1 && settings.dt > 0 && settings.from > 0 &&
            settings.from < settings.to && settings.frames >= 1,
        [&] {
          return hd::ErrorInfo{
              "command line", "there is nothing to simulate",
              hd::text("--steps ", settings.steps, ", --dt ", settings.dt, ", --from ",
                       settings.from, ", --to ", settings.to, ", --frames ", settings.frames),
              "give at least one step, a positive --dt, and scales from below to above"};
        });
    m_bodies = started(settings, comm);
    m_total = hd::all_reduce(static_cast<std::int64_t>(m_bodies.size()), hd::Sum{}, comm);
    if (settings.resume.empty()) {
      m_gravity.compute(m_bodies);
      return;
    }
    std::vector<Body> all;
    m_step = load(settings.resume, all, run_settings());
    if (static_cast<std::int64_t>(all.size()) != m_total)
      throw hd::format_error({settings.resume, "the file belongs to another run",
                              hd::text("expected ", m_total, " particles, got ", all.size()),
                              "give the --particles or --read of that run"});
    std::vector<Body> mine;  // those of the same numbers as at the start
    for (const Body& body : m_bodies) mine.push_back(all[static_cast<std::size_t>(body.number)]);
    m_bodies = std::move(mine);
  }

  int run() {
    const bool speaks = m_comm.rank() == 0;
    const std::int64_t end =
        m_settings.stop < 0 ? m_settings.steps : std::min(m_settings.stop, m_settings.steps);
    std::int64_t moved_pairs = 0, moved_nodes = 0;
    const Momentum before = momentum();
    const double begin = hd::steady_seconds();
    const std::int64_t first = m_step;
    bool each_once = true;
    if (m_step == 0) frame();
    while (m_step < end) {
      advance();
      moved_pairs += m_gravity.interactions().pairs;
      moved_nodes += m_gravity.interactions().nodes;
      each_once = each_once && m_gravity.interactions().covered == m_total * m_total;
      if (m_step % m_settings.frames == 0 || m_step == m_settings.steps) frame();
    }
    const double seconds = hd::steady_seconds() - begin;
    const auto steps = static_cast<double>(std::max<std::int64_t>(1, m_step - first));
    if (speaks)
      std::printf(
          "%lld particles on %d ranks, steps %lld to %lld: %.6g pairs and %.6g pairs of nodes a "
          "step, %.3g s a step\neach pair of particles once: %s\n",
          static_cast<long long>(m_total), m_comm.size(), static_cast<long long>(first),
          static_cast<long long>(m_step), static_cast<double>(moved_pairs) / steps,
          static_cast<double>(moved_nodes) / steps, seconds / steps, each_once ? "yes" : "NO");
    const Momentum after = momentum();
    const Vector3 changed = minus(after.sum, before.sum);
    const double drift = after.lengths == 0 ? 0 : std::sqrt(dot(changed, changed)) / after.lengths;
    const double wrong =
        m_settings.start == "zeldovich" && m_settings.read.empty() ? wave_error() : 0;
    if (speaks) {
      std::printf("momentum: the sum has changed by %s of the sum of the lengths\n",
                  drift <= 1e-10 ? "less than 1e-10" : hd::text(drift).c_str());
      if (m_settings.start == "zeldovich" && m_settings.read.empty())
        std::printf("Zel'dovich: the largest error of a displacement is %.2f%% of its amplitude\n",
                    100 * wrong);
    }
    const std::vector<Body> all = gathered(m_bodies, m_comm);
    on_first_rank(m_comm, [&] {
      std::vector<double> places;
      for (const Body& body : all)
        places.insert(places.end(), body.place.begin(), body.place.end());
      examples::write_results("nbody", places, 1e-10);
      if (!m_settings.save.empty()) save(m_settings.save, all, run_settings(), m_step);
    });
    if (!m_settings.pictures.empty()) spectrum();
    return each_once && drift <= 1e-10 && wrong <= 0.02 ? 0 : 1;
  }

 private:
  /// One leapfrog step: half a kick, a drift, new forces, and half a kick.
  void advance() {
    const double n = static_cast<double>(m_settings.steps);
    const auto scale = [&](double step) {
      return m_settings.from + (m_settings.to - m_settings.from) * step / n;
    };
    const auto step = static_cast<double>(m_step);
    const double a = scale(step), middle = scale(step + 0.5), b = scale(step + 1);
    const double half = m_settings.dt / 2;
    kick(m_expands ? Expansion::kick(a, middle) : half);
    const double drift = m_expands ? Expansion::drift(a, b) : m_settings.dt;
    for (Body& body : m_bodies)
      for (std::size_t d = 0; d < 3; ++d)
        body.place[d] = wrapped(body.place[d] + drift * body.speed[d]);
    m_gravity.compute(m_bodies);
    kick(m_expands ? Expansion::kick(middle, b) : half);
    ++m_step;
  }
  void kick(double factor) {
    for (Body& body : m_bodies) add_to(body.speed, body.pull, factor);
  }

  /// What a file must agree with.
  [[nodiscard]] Run run_settings() const {
    const Splitting& s = m_settings.splitting;
    const auto number = [](auto value) { return static_cast<double>(value); };
    std::vector<std::string_view> names(starts.begin(), starts.end());
    const auto start = m_settings.read.empty()
                           ? std::ranges::find(names, m_settings.start) - names.begin()
                           : std::ranges::ssize(names);
    names.push_back("the file of --read");
    return {{"start", number(start), names},
            {"clusters", number(m_settings.clusters)},
            {"seed", number(m_settings.seed)},
            {"particles", number(m_settings.particles)},
            {"steps", number(m_settings.steps)},
            {"mesh", number(s.mesh)},
            {"rs", s.rs},
            {"cut", s.cut},
            {"theta", s.theta},
            {"order", number(s.order)},
            {"leaf", number(s.leaf_size)},
            {"meshes", number(s.meshes)},
            {"softening", m_settings.softening},
            {"dt", m_settings.dt},
            {"from", m_settings.from},
            {"to", m_settings.to}};
  }

  struct Momentum {
    Vector3 sum{};
    double lengths = 0;
  };
  /// Returns the sum of all momenta and of their lengths.
  [[nodiscard]] Momentum momentum() const {
    Momentum all;
    for (const Body& body : m_bodies) {
      add_to(all.sum, body.speed, body.mass);
      all.lengths += body.mass * std::sqrt(dot(body.speed, body.speed));
    }
    for (double& x : all.sum) x = hd::all_reduce(x, hd::Sum{}, m_comm);
    all.lengths = hd::all_reduce(all.lengths, hd::Sum{}, m_comm);
    return all;
  }
  /// Returns the largest difference of a displacement from Zel'dovich's, over the amplitude.
  [[nodiscard]] double wave_error() const {
    const double a = m_settings.from + (m_settings.to - m_settings.from) *
                                           static_cast<double>(m_step) /
                                           static_cast<double>(m_settings.steps);
    const Wave wave = plane_wave().front();
    double most = 0;
    for (const Body& body : m_bodies) {
      const Vector3 q = lattice_place(body.number, m_settings.particles);
      Vector3 expected = q;
      add_to(expected, wave(q), a);
      const Vector3 off = nearest_image(expected, body.place);
      most = std::max(most, std::sqrt(dot(off, off)));
    }
    return hd::all_reduce(most, hd::Max{}, m_comm) / (a * wave.amplitude[0]);
  }

  void frame() {
    if (m_settings.pictures.empty()) return;
    const std::string content = picture(m_bodies, m_comm);
    char name[32];
    std::snprintf(name, sizeof(name), "/frame_%05lld.png", static_cast<long long>(m_step));
    on_first_rank(m_comm, [&] { hd::write_file(m_settings.pictures + name, content); });
  }
  void spectrum() {
    Particles particles;
    for (const Body& body : m_bodies) {
      particles.places.push_back(body.place);
      particles.masses.push_back(body.mass);
    }
    const std::vector<double> power = m_gravity.mesh().power(particles);
    std::string lines = "# k / 2 pi, power of the density over its mean\n";
    for (std::size_t k = 1; k < power.size(); ++k) lines += hd::text(k, ' ', power[k], '\n');
    on_first_rank(m_comm, [&] { hd::write_file(m_settings.pictures + "/power.txt", lines); });
    if (m_comm.rank() == 0)
      std::printf("wrote frames and power.txt to %s\n", m_settings.pictures.c_str());
  }

  const Settings& m_settings;
  const hd::Communicator& m_comm;
  bool m_expands;
  FftwLines m_fftw;
  Gravity m_gravity;
  std::vector<Body> m_bodies;
  std::int64_t m_step = 0, m_total = 0;
};

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  const hd::Communicator world(MPI_COMM_WORLD);
  try {
    Settings settings;
    Splitting& splitting = settings.splitting;
    examples::Options options("Particles under gravity in a periodic box, over the ranks.");
    options.add("particles", settings.particles, "N for N^3 particles");
    options.add("start", settings.start,
                "waves or zeldovich (the box expands), random or clusters (it does not)");
    options.add("read", settings.read, "a file of your own particles instead: a position a line");
    options.add("seed", settings.seed, "the start is a function of it");
    options.add("clusters", settings.clusters, "of the start 'clusters'");
    options.add("steps", settings.steps, "steps of the whole run");
    options.add("stop", settings.stop, "stop after this step; -1: after all");
    options.add("from", settings.from, "scale of an expanding box at the start");
    options.add("to", settings.to, "scale of an expanding box at the end");
    options.add("dt", settings.dt, "length of a step if the box does not expand");
    options.add("mesh", splitting.mesh, "cells of the mesh in each dimension");
    options.add("meshes", splitting.meshes, "2: the mean of two meshes, half a cell apart");
    options.add("rs", splitting.rs, "length at which near becomes far, in cells");
    options.add("cut", splitting.cut, "pairs beyond this many rs are dropped");
    options.add("theta", splitting.theta, "opening angle of the trees; 0: pairs only");
    options.add("order", splitting.order, "degree of the expansions of the trees");
    options.add("leaf", splitting.leaf_size, "most particles of a leaf");
    options.add("softening", settings.softening, "pulls are those at sqrt(r^2 + softening^2)");
    options.add("save", settings.save, "file for the last state");
    options.add("resume", settings.resume, "go on from a file of --save");
    options.add("pictures", settings.pictures, "folder for frame_*.png and power.txt");
    options.add("frames", settings.frames, "steps from one frame to the next");
    if (!options.parse(argc, argv)) {
      if (world.rank() == 0) std::cout << options.help();
      return 0;
    }
    return Simulation(settings, world).run();
  } catch (const std::exception& error) {
    // All ranks read the same command line and the same files, so rank 0 speaks for all.
    const bool shared = dynamic_cast<const hd::contract_error*>(&error) != nullptr ||
                        dynamic_cast<const hd::format_error*>(&error) != nullptr;
    if (world.rank() == 0 || !shared) std::cerr << "nbody: " << error.what() << '\n';
    return 1;
  }
}

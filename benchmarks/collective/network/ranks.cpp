// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <mpi.h>

#include <heddle/comm.hpp>
#include <heddle/execute.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>

#include "../../support.hpp"
#include "ranks.hpp"

namespace network {
namespace {

namespace hd = heddle;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

/// An all-reduce of floats by a Schedule, in `data`.
class Ours {
 public:
  Ours(const hd::Schedule& schedule, hd::MpiTransport& transport, std::vector<float>& data)
      : m_executor(hd::slice(schedule, transport.rank(),
                             [&](hd::BufferId, const hd::Buffer& buffer) {
                               if (!buffer.transient)
                                 return reinterpret_cast<std::byte*>(data.data());
                               m_scratch.emplace_back(static_cast<std::size_t>(buffer.bytes));
                               return m_scratch.back().data();
                             }),
                   transport) {}
  void operator()() {
    m_executor.step([](const hd::Task& task) {
      task.kind() == hd::Kind::cast ? hd::cast_on_host(task) : hd::combine_on_host(task);
    });
    m_executor.drain();
  }

 private:
  std::vector<std::vector<std::byte>> m_scratch;
  hd::Executor<hd::MpiTransport> m_executor;
};

/// One rank's view of the network, and what it measures there.
class Rank {
 public:
  Rank() : m_comm(MPI_COMM_WORLD), m_transport(MPI_COMM_WORLD) {}

  [[nodiscard]] bool prints() const { return m_comm.rank() == hd::Rank{0}; }

  /// The chosen all-reduce against the library's, at sizes that the table does not have.
  void against_library() {
    hd::CollectiveMeasureOptions options;
    options.sizes = {8, 4 << 10, 32 << 10, 256 << 10, 1 << 20};
    options.budget = 1.5;
    const hd::CostTable table = hd::measure_collectives(m_comm, options);
    for (const hd::Bytes bytes : {8u, 1u << 10, 16u << 10, 128u << 10, 512u << 10}) {
      resize(bytes);
      const hd::CollectiveChoice choice = table.choose(Collective::all_reduce, bytes);
      const auto library = [&] {
        MPI_Allreduce(MPI_IN_PLACE, m_data.data(), static_cast<int>(m_data.size()), MPI_FLOAT,
                      MPI_SUM, m_comm.get());
      };
      std::vector<double> theirs, ours;
      hd::Seconds predicted = 0;
      if (choice.library) {
        alternate(library, library, theirs, ours);
      } else {
        const hd::Schedule schedule = made(choice, bytes, table.machine());
        predicted = hd::simulate(schedule, hd::MessageCosts(table.machine())).makespan();
        alternate(library, Ours(schedule, m_transport, m_data), theirs, ours);
      }
      if (!prints()) continue;
      const bench::Summary ratio = bench::ratios(theirs, ours);
      const double median = bench::summarise(ours).median;
      const hd::Seconds expected = table.best(Collective::all_reduce, bytes).time;
      std::cout << bytes << " bytes: library " << bench::summarise(theirs).median * 1e3
                << " ms, chosen " << median * 1e3 << " ms, by the table " << expected * 1e3
                << " ms, simulated " << predicted * 1e3 << " ms; ratio " << ratio.median << ", "
                << ratio.low << ".." << ratio.high << "; " << choice << '\n';
      sample("ratio", ratio.median);
      sample("ratio_low", ratio.low);
      sample("ratio_high", ratio.high);
      sample("ratio_from", ratio.from);
      sample("ratio_to", ratio.to);
      sample("table_error", 100 * std::abs(expected / median - 1));
      if (!choice.library) sample("error", 100 * std::abs(predicted / median - 1));
    }
  }

  /// The chosen all-reduce as it is, and with int8 on the links of the slowest rank: an eighth of
  /// the bandwidth of the others or less. Sums agree to what the codec may lose.
  void int8_at_the_slow_cut() {
    const hd::Machine machine = hd::measure_links(m_transport);
    const auto bandwidth = [&](int a, int b) {
      return machine.link(hd::Rank{a}, hd::Rank{b}).bandwidth;
    };
    double slowest = bandwidth(0, 1);
    for (int a = 0; a < m_comm.size(); ++a)
      for (int b = 0; b < m_comm.size(); ++b) slowest = std::min(slowest, bandwidth(a, b));
    constexpr hd::Bytes bytes = 512 << 10;
    const hd::CollectiveChoice choice =
        hd::choose(Collective::all_reduce, options_of(bytes), machine);
    const hd::Schedule wide = made(choice, bytes, machine);
    const hd::Schedule narrow = hd::schedule::in_time_order(
        hd::simulate(hd::cast_at_cut(wide, {.type = hd::Scalar::i8, .block = 64},
                                     [&](hd::Rank from, hd::Rank to) {
                                       return machine.link(from, to).bandwidth < 2 * slowest;
                                     }),
                     hd::MessageCosts(machine)));
    resize(bytes);
    std::vector<double> f32, i8;
    // What rank r adds is below 1000 + r; it is rounded once on the way, and the sum once.
    const double ranks = m_comm.size();
    const double loses = 2 * ranks * (1000 + ranks) / 127;
    alternate(Ours(wide, m_transport, m_data), Ours(narrow, m_transport, m_data), f32, i8, loses);
    if (!prints()) return;
    const bench::Summary ratio = bench::ratios(f32, i8);
    std::cout << bytes << " bytes by " << choice << ": f32 " << bench::summarise(f32).median * 1e3
              << " ms, int8 " << bench::summarise(i8).median * 1e3 << " ms\n";
    bench::print_ratio("collective/network", "int8_at_the_slow_cut", ratio);
  }

  /// Whether of star and ring the faster is chosen, well below and well above the size where they
  /// change places, a P (P - 2) / (P - 1)^2 times the bandwidth; three times that where messages
  /// wait for their receiver's answer.
  void star_or_ring() {
    const hd::Machine machine = hd::measure_links(m_transport);
    const hd::Link link = machine.link(hd::Rank{0}, hd::Rank{1});
    const double p = m_comm.size();
    const double crossover = link.latency * link.bandwidth * p * (p - 2) / ((p - 1) * (p - 1));
    for (const double share : {0.2, 15.0}) {
      const auto bytes = static_cast<hd::Bytes>(share * crossover / 4) * 4;
      resize(bytes);
      std::vector<double> times[2];
      hd::Seconds predicted[2];
      const hd::CollectiveChoice choices[] = {{.algorithm = Algorithm::star},
                                              {.algorithm = Algorithm::ring}};
      std::vector<hd::Schedule> schedules;
      for (const auto& choice : choices) {
        schedules.push_back(made(choice, bytes, machine));
        predicted[schedules.size() - 1] =
            hd::simulate(schedules.back(), hd::MessageCosts(machine)).makespan();
      }
      alternate(Ours(schedules[0], m_transport, m_data), Ours(schedules[1], m_transport, m_data),
                times[0], times[1]);
      if (!prints()) continue;
      const double star = bench::summarise(times[0]).median;
      const double ring = bench::summarise(times[1]).median;
      std::cout << bytes << " bytes: star " << star * 1e3 << " ms (simulated " << predicted[0] * 1e3
                << "), ring " << ring * 1e3 << " ms (simulated " << predicted[1] * 1e3 << ")\n";
      sample("wrong", (predicted[0] < predicted[1]) == (star < ring) ? 0 : 1);
    }
  }

  void sample(const char* what, double value) const {
    if (prints()) std::cout << "sample " << what << ' ' << value << std::endl;
  }

 private:
  void resize(hd::Bytes bytes) { m_data.resize(static_cast<std::size_t>(bytes) / sizeof(float)); }

  [[nodiscard]] hd::Schedule made(const hd::CollectiveChoice& choice, hd::Bytes bytes,
                                  const hd::Machine& machine) const {
    return hd::to_schedule(choice, Collective::all_reduce, options_of(bytes), machine);
  }
  [[nodiscard]] hd::schedule::CollectiveOptions options_of(hd::Bytes bytes) const {
    return {.ranks = m_comm.size(), .bytes = bytes, .type = hd::Scalar::f32};
  }

  /// Times of the slowest rank; 61 pairs, or fewer that take two seconds, but three at least. Both
  /// give the sum of all ranks' numbers, every time; `b` to within `loses`.
  template <class A, class B>
  void alternate(A&& a, B&& b, std::vector<double>& times_a, std::vector<double>& times_b,
                 double loses = 0) {
    double spent = 0;
    for (int pair = -1; pair < 3 || (pair < 61 && spent < 2); ++pair) {
      for (const bool is_a : {pair % 2 == 0, pair % 2 != 0}) {
        for (std::size_t i = 0; i < m_data.size(); ++i)
          m_data[i] = static_cast<float>(+m_comm.rank() + i % 1000);
        MPI_Barrier(m_comm.get());
        double time = bench::seconds_of([&] { is_a ? a() : b(); });
        MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, m_comm.get());
        require_sum(is_a ? 0 : loses);
        if (pair < 0) continue;  // connections are made, memory is touched
        (is_a ? times_a : times_b).push_back(time);
        spent += time;
      }
    }
  }

  void require_sum(double within) const {
    const auto ranks = static_cast<std::size_t>(m_comm.size());
    for (std::size_t i = 0; i < m_data.size(); ++i) {
      const auto sum = static_cast<double>(ranks * (ranks - 1) / 2 + ranks * (i % 1000));
      if (!(std::abs(m_data[i] - sum) <= within)) bench::require_equal("a sum", m_data[i], sum);
    }
  }

  hd::Communicator m_comm;
  hd::MpiTransport m_transport;
  std::vector<float> m_data;
};

}  // namespace

int run_rank(int argc, char** argv, std::string_view name) {
  heddle::Environment env(argc, argv);
  try {
    Rank rank;
    if (name == "equal") {
      rank.star_or_ring();
    } else {
      rank.against_library();
      if (name == "each_slower") rank.int8_at_the_slow_cut();
    }
    rank.sample("done", 1);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "collective/network: " << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
  }
}

}  // namespace network

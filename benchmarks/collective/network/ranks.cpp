// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <exception>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/measure_collectives.hpp>
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
using Data = Kokkos::View<float*, Kokkos::HostSpace>;

/// An all-reduce by a Schedule that no call makes, in `data`.
class Ours {
 public:
  Ours(const hd::Schedule& schedule, hd::MpiTransport& transport, const Data& data)
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
  enum class Begin { barrier, together };

 public:
  Rank() : m_comm(MPI_COMM_WORLD), m_transport(MPI_COMM_WORLD) {}

  [[nodiscard]] bool prints() const { return m_comm.rank() == hd::Rank{0}; }

  /// The chosen all-reduce against the library's, at sizes that the table does not have.
  void against_library() {
    hd::CollectiveMeasureOptions options;
    options.sizes = {8, 4 << 10, 32 << 10, 256 << 10, 1 << 20};
    options.budget = 1.5;
    const auto table =
        std::make_shared<const hd::plan::CostTable>(hd::measure_collectives(m_comm, options));
    set_clock();
    const hd::Communicator comm(MPI_COMM_WORLD);
    for (const hd::Bytes bytes : {8u, 1u << 10, 16u << 10, 128u << 10, 512u << 10}) {
      resize(bytes);
      const hd::plan::CollectiveChoice choice = table->choose(Collective::all_reduce, bytes);
      const auto library = [&] {
        MPI_Allreduce(MPI_IN_PLACE, m_data.data(), static_cast<int>(m_data.size()), MPI_FLOAT,
                      MPI_SUM, m_comm.get());
      };
      auto call = hd::all_reduce<hd::Prepared>(Kokkos::DefaultHostExecutionSpace{}, m_data,
                                               hd::Sum{}, comm, {.costs = table});
      std::vector<double> theirs, ours;
      alternate(library, call, theirs, ours);
      const bench::Summary ratio = bench::ratios(theirs, ours);
      const double median = bench::summarise(ours).median;
      if (choice.library) {  // the same call, by way of ours; nothing is simulated
        if (prints())
          std::cout << bytes << " bytes: library " << bench::summarise(theirs).median * 1e3
                    << " ms, chosen " << median * 1e3 << " ms; ratio " << ratio.median << ", "
                    << ratio.low << ".." << ratio.high << "; " << choice << '\n';
        ratio_is(ratio);
        continue;
      }
      const hd::Seconds simulated =
          hd::simulate(call.schedule(), hd::plan::MessageCosts(table->machine())).makespan();
      const double together = median_together(call);
      const hd::Seconds expected = table->best(Collective::all_reduce, bytes).time;
      if (prints())
        std::cout << bytes << " bytes: library " << bench::summarise(theirs).median * 1e3
                  << " ms, chosen " << median * 1e3 << " ms, by the table " << expected * 1e3
                  << " ms; begun together " << together * 1e3 << " ms, simulated "
                  << simulated * 1e3 << " ms; ratio " << ratio.median << ", " << ratio.low << ".."
                  << ratio.high << "; " << choice << '\n';
      ratio_is(ratio);
      sample("table_error", 100 * std::abs(expected / median - 1));
      sample("error", 100 * std::abs(simulated / together - 1));
      sample("error_after_barrier", 100 * std::abs(simulated / median - 1));
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
    const hd::plan::CollectiveChoice choice =
        hd::plan::choose(Collective::all_reduce, options_of(bytes), machine);
    const hd::Schedule wide = made(choice, bytes, machine);
    const hd::Schedule narrow = hd::schedule::in_time_order(hd::simulate(
        hd::schedule::cast_at_cut(wide, {.type = hd::Scalar::i8, .block = 64},
                                  [&](hd::Rank from, hd::Rank to) {
                                    return machine.link(from, to).bandwidth < 2 * slowest;
                                  }),
        hd::plan::MessageCosts(machine)));
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

  /// How often the selector errs well below and well above the size where star and ring change
  /// places, a P (P - 2) / (P - 1)^2 times the bandwidth; three times that where messages wait for
  /// their receiver's answer. It does where it puts the slower of the two first, or where what it
  /// chooses of all candidates is clearly slower than the faster of them. Twice: of calls that
  /// begin together, and after a barrier.
  void star_or_ring() {
    const hd::Machine machine = hd::measure_links(m_transport);
    set_clock();
    const hd::Link link = machine.link(hd::Rank{0}, hd::Rank{1});
    const double p = m_comm.size();
    const double crossover = link.latency * link.bandwidth * p * (p - 2) / ((p - 1) * (p - 1));
    for (const double share : {0.2, 15.0}) {
      const auto bytes = static_cast<hd::Bytes>(share * crossover / 4) * 4;
      resize(bytes);
      const auto all = hd::plan::predict(Collective::all_reduce, options_of(bytes), machine);
      const auto whole = [&](Algorithm algorithm) {
        return *std::ranges::find_if(all, [&](const hd::plan::CollectivePrediction& each) {
          return each.choice.algorithm == algorithm && each.choice.piece == 0;
        });
      };
      const auto ours = [&](const hd::plan::CollectiveChoice& choice) {
        return Ours(made(choice, bytes, machine), m_transport, m_data);
      };
      const hd::plan::CollectivePrediction star = whole(Algorithm::star),
                                           ring = whole(Algorithm::ring);
      for (const Begin how : {Begin::together, Begin::barrier}) {
        std::vector<double> star_times, ring_times, faster_times, chosen_times;
        alternate(ours(star.choice), ours(ring.choice), star_times, ring_times, 0, how);
        // All ranks have the same times.
        const double star_took = bench::summarise(star_times).median;
        const double ring_took = bench::summarise(ring_times).median;
        const bool star_is_faster = star_took < ring_took;
        const hd::plan::CollectiveChoice faster = star_is_faster ? star.choice : ring.choice;
        const hd::plan::CollectiveChoice chosen =
            hd::plan::choose(Collective::all_reduce, options_of(bytes), machine);
        alternate(ours(faster), ours(chosen), faster_times, chosen_times, 0, how);
        if (!prints()) continue;
        const bool together = how == Begin::together;
        const bench::Summary gain = bench::ratios(faster_times, chosen_times);
        std::cout << bytes << " bytes, begun " << (together ? "together" : "after a barrier")
                  << ": star " << star_took * 1e3 << " ms (simulated " << star.time * 1e3
                  << "), ring " << ring_took * 1e3 << " ms (simulated " << ring.time * 1e3 << "); "
                  << chosen << " is chosen, " << faster << " takes " << gain.median
                  << " times as long, " << gain.low << ".." << gain.high << '\n';
        sample(together ? "wrong" : "wrong_after_barrier",
               ((star.time < ring.time) == star_is_faster ? 0 : 1) + (gain.median >= 0.95 ? 0 : 1));
      }
    }
  }

  void sample(const char* what, double value) const {
    if (prints()) std::cout << "sample " << what << ' ' << value << std::endl;
  }

 private:
  void ratio_is(const bench::Summary& ratio) const {
    sample("ratio", ratio.median);
    sample("ratio_low", ratio.low);
    sample("ratio_high", ratio.high);
    sample("ratio_from", ratio.from);
    sample("ratio_to", ratio.to);
  }
  void resize(hd::Bytes bytes) {
    m_data = Data("data", static_cast<std::size_t>(bytes) / sizeof(float));
  }

  [[nodiscard]] hd::Schedule made(const hd::plan::CollectiveChoice& choice, hd::Bytes bytes,
                                  const hd::Machine& machine) const {
    return hd::plan::to_schedule(choice, Collective::all_reduce, options_of(bytes), machine);
  }
  [[nodiscard]] hd::schedule::CollectiveOptions options_of(hd::Bytes bytes) const {
    return {.ranks = m_comm.size(), .bytes = bytes, .type = hd::Scalar::f32};
  }

  /// Times of the slowest rank; 61 pairs, or fewer that take two seconds, but 30 at least. Both
  /// give the sum of all ranks' numbers, every time; `b` to within `loses`.
  template <class A, class B>
  void alternate(A&& a, B&& b, std::vector<double>& times_a, std::vector<double>& times_b,
                 double loses = 0, Begin how = Begin::barrier) {
    double spent = 0;
    for (int pair = -1; pair < 30 || (pair < 61 && spent < 2); ++pair) {
      for (const bool is_a : {pair % 2 == 0, pair % 2 != 0}) {
        const double time = is_a ? time_of(a, how) : time_of(b, how);
        require_sum(is_a ? 0 : loses);
        if (pair < 0) continue;  // connections are made, memory is touched
        (is_a ? times_a : times_b).push_back(time);
        spent += time;
      }
    }
  }

  /// The median time of `call`, begun together: 31 calls, or fewer that take two seconds, but 15 at
  /// least.
  template <class Call>
  [[nodiscard]] double median_together(Call& call) {
    std::vector<double> times;
    for (double spent = 0; times.size() < 15 || (times.size() < 31 && spent < 2);
         spent += times.back()) {
      times.push_back(time_of(call, Begin::together));
      require_sum(0);
    }
    return bench::summarise(times).median;
  }

  /// From the begin of `call` on all ranks to the end of the slowest. Ranks leave a barrier one
  /// after another, as far apart as the network is wide. Where their calls are to begin together,
  /// which is what a simulation foretells, they agree on a time that no clock shows yet when
  /// everyone has heard of it; once more, and further ahead, where some rank has heard too late.
  template <class Call>
  [[nodiscard]] double time_of(Call& call, Begin how) {
    // At first three times the longest way across a network.
    for (double ahead = 0.06;; ahead *= 2) {
      fill();
      MPI_Barrier(m_comm.get());
      double begin = hd::steady_seconds();
      int late = 0;
      if (how == Begin::together) {
        begin += ahead - m_clock_offset;
        MPI_Allreduce(MPI_IN_PLACE, &begin, 1, MPI_DOUBLE, MPI_MAX, m_comm.get());
        begin += m_clock_offset;
        const double left = begin - hd::steady_seconds();
        if (left < 0) late = 1;
        std::this_thread::sleep_for(std::chrono::duration<double>(left));
      }
      call();
      double time = hd::steady_seconds() - begin;
      MPI_Allreduce(MPI_IN_PLACE, &late, 1, MPI_INT, MPI_LOR, m_comm.get());
      MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, m_comm.get());
      if (late == 0) return time;
    }
  }

  /// Finds how much later this rank's clock is than rank 0's, by the fastest of ten round trips,
  /// half of which is taken for each way. measure_links() does the same: where ways differ, a clock
  /// is off by what the latencies are, and what a simulation foretells stays the same.
  void set_clock() {
    for (int peer = 1; peer < m_comm.size(); ++peer) {
      const bool asks = m_comm.rank() == hd::Rank{0};
      if (!asks && m_comm.rank() != hd::Rank{peer}) continue;
      double shortest = std::numeric_limits<double>::infinity();
      double theirs = 0, found = 0;
      for (int trip = 0; trip < 10; ++trip) {
        const double begin = hd::steady_seconds();
        if (asks) MPI_Send(&theirs, 1, MPI_DOUBLE, peer, 0, m_comm.get());
        MPI_Recv(&theirs, 1, MPI_DOUBLE, asks ? peer : 0, 0, m_comm.get(), MPI_STATUS_IGNORE);
        const double end = hd::steady_seconds();
        if (!asks) MPI_Send(&end, 1, MPI_DOUBLE, 0, 0, m_comm.get());
        if (asks && end - begin < shortest) {
          shortest = end - begin;
          found = theirs - (begin + end) / 2;
        }
      }
      if (asks)
        MPI_Send(&found, 1, MPI_DOUBLE, peer, 0, m_comm.get());
      else
        MPI_Recv(&m_clock_offset, 1, MPI_DOUBLE, 0, 0, m_comm.get(), MPI_STATUS_IGNORE);
    }
  }

  /// Numbers of this rank, whose sums floats hold exactly.
  void fill() const {
    for (std::size_t i = 0; i < m_data.size(); ++i)
      m_data[i] = static_cast<float>(+m_comm.rank() + i % 1000);
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
  Data m_data;
  double m_clock_offset = 0;
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

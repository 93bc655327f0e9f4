// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// program stop|kill RUN WATCHDOG: runs a schedule over MPI, and one rank sends itself SIGSTOP or
/// SIGKILL at one of its actions: before or after it, or while its messages are under way. RUN
/// draws the schedule, the rank and the moment. Every other rank prints one line, with its error
/// and the seconds since that moment. A program of its own, because the job ends with it.

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/environment.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

namespace {

namespace hd = heddle;

/// One write, so that the lines of several ranks do not mix.
void say(std::string line) {
  line += '\n';
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
}

/// When and how this rank leaves, if it does.
class Doom {
 public:
  /// At the `call`-th call of act(), counted from 0, after `looks` calls of look().
  Doom(hd::Rank rank, int signal, std::uint64_t call, std::uint64_t looks)
      : m_rank(rank), m_signal(signal), m_calls(call), m_looks(looks) {}
  Doom() = default;

  void act() {
    if (m_signal == 0 || m_over) return;
    if (m_calls-- == 0) m_over = true;
    look();
  }
  void look() {
    if (m_over && m_looks-- == 0) {
      say(hd::text("rank ", m_rank, " leaves at ", hd::steady_seconds()));
      std::raise(m_signal);
    }
  }

 private:
  hd::Rank m_rank;
  int m_signal = 0;
  std::uint64_t m_calls = 0;
  std::uint64_t m_looks = 0;
  bool m_over = false;
};

/// MPI's transport on a rank that may leave at any of its calls.
class DoomedTransport {
 public:
  using Request = hd::MpiTransport::Request;

  DoomedTransport(hd::MpiTransport& inner, Doom& doom) : m_inner(&inner), m_doom(&doom) {}

  [[nodiscard]] hd::Rank rank() const { return m_inner->rank(); }
  [[nodiscard]] int size() const { return m_inner->size(); }
  [[nodiscard]] Request send(hd::Rank peer, hd::Lane lane, const std::byte* data, hd::Bytes bytes) {
    m_doom->act();
    return m_inner->send(peer, lane, data, bytes);
  }
  [[nodiscard]] Request receive(hd::Rank peer, hd::Lane lane, std::byte* data, hd::Bytes bytes) {
    m_doom->act();
    return m_inner->receive(peer, lane, data, bytes);
  }
  [[nodiscard]] bool test(Request& request) {
    const bool done = m_inner->test(request);
    m_doom->look();
    return done;
  }
  void cancel(Request& request) { m_inner->cancel(request); }
  void abort(const hd::Abort& abort) { m_inner->abort(abort); }
  [[nodiscard]] std::optional<hd::Abort> aborted() { return m_inner->aborted(); }

 private:
  hd::MpiTransport* m_inner;
  Doom* m_doom;
};
static_assert(hd::Transport<DoomedTransport>);

/// Pipelines and sums, of messages that MPI sends at once and of those that wait for the receiver.
hd::Schedule schedule_of(std::uint64_t kind, int ranks) {
  const hd::Bytes bytes = kind % 2 == 0 ? 512 : 400'000;
  if (kind / 2 == 0)
    return hd::schedule::one_f_one_b(
        {.stages = ranks, .microbatches = 6, .sizes = {.activation = bytes, .saved = bytes}});
  return hd::schedule::ring_all_reduce({.ranks = ranks, .bytes = bytes * 8, .chunks = 2});
}

void run(int signal, std::uint64_t number, double watchdog) {
  hd::MpiTransport transport(MPI_COMM_WORLD, {.patience = 1});
  const auto ranks = static_cast<std::uint64_t>(transport.size());
  const hd::Random random(5, "kill");
  const hd::Schedule schedule = schedule_of(random.below(4 * number, 4), transport.size());
  const hd::Rank victim{random.below(4 * number + 1, ranks)};

  std::vector<std::vector<std::byte>> memory;
  hd::Program program =
      hd::slice(schedule, transport.rank(), [&](hd::BufferId, const hd::Buffer& buffer) {
        return memory.emplace_back(buffer.bytes + 1).data();
      });
  constexpr std::uint64_t steps = 3;  // the last one misses the rank that left, whoever it is
  // Every step of the Program is one call of act(): a message or an action.
  Doom doom = transport.rank() == victim
                  ? Doom(victim, signal, random.below(4 * number + 2, (steps - 1) * program.size()),
                         random.below(4 * number + 3, 3))
                  : Doom();
  DoomedTransport doomed(transport, doom);
  hd::ExecuteOptions options{.watchdog = watchdog};
  options.log = [&](std::string_view reason) {
    say(hd::text("rank ", transport.rank(), " named at ", hd::steady_seconds(), ": ", reason));
  };
  try {
    hd::Executor executor(std::move(program), doomed, std::move(options));
    for (std::uint64_t step = 0; step < steps; ++step)
      executor.step([&](const hd::Task&) { doom.act(); });
    executor.drain();
  } catch (const std::exception&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the job ends with the first
    throw;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    const hd::Environment environment(argc, argv);
    run(std::string_view(argv[1]) == "stop" ? SIGSTOP : SIGKILL,
        static_cast<std::uint64_t>(std::atoll(argv[2])), std::atof(argv[3]));
  } catch (const std::exception&) {  // it has been said
    return 1;
  }
  return 0;
}

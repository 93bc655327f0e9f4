// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// A program that brings MPI and Kokkos up by an Environment, as its argument says, and prints what
/// it sees. A program of its own, because MPI and Kokkos come up only once in a process.

#include <csignal>
#include <cstddef>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/all_reduce.hpp>
#include <heddle/collective/barrier.hpp>
#include <heddle/comm/agreement.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/mailbox.hpp>
#include <heddle/execute/shaped_transport.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/schedule/generator/pipeline.hpp>

namespace {

void say(bool ok, std::string_view what) {
  std::cout << (ok ? "yes: " : "NO: ") << what << '\n';
  if (!ok) throw std::runtime_error("that was not to be");
}

bool mpi_finalized() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// Comes up, goes down, and does not come up again.
void once(int argc, char** argv) {
  {
    const heddle::Environment environment(argc, argv);
    say(environment.owns_mpi() && environment.owns_kokkos(), "both were brought up");
    say(Kokkos::is_initialized() && !mpi_finalized(), "both are up");
    say(environment.thread_level() >= heddle::ThreadLevel::funneled, "funneled by default");
    say(argc == 3 && argv[2] == std::string_view("--help"),
        "the arguments of Kokkos are taken out, --help is the program's");
    const heddle::Environment inner(argc, argv);
    say(!inner.owns_mpi() && !inner.owns_kokkos(), "an inner one owns nothing");
  }
  say(Kokkos::is_finalized() && mpi_finalized(), "both are down");
  try {
    const heddle::Environment again(argc, argv);
    say(false, "a second one is refused");
  } catch (const heddle::contract_error& error) {
    say(true, error.what());
  }
}

/// What the program brought up itself stays up.
void borrowed(int argc, char** argv) {
  Kokkos::initialize(argc, argv);
  {
    const heddle::Environment environment(argc, argv);
    say(environment.owns_mpi() && !environment.owns_kokkos(), "only MPI was brought up");
  }
  say(mpi_finalized() && !Kokkos::is_finalized(), "only MPI is down");
  Kokkos::finalize();
  try {
    const heddle::Environment again(argc, argv);
  } catch (const heddle::contract_error& error) {
    say(true, error.what());
  }
}

/// Rank 1 fails while the others wait for it.
void fail(int argc, char** argv) {
  const heddle::Environment environment(argc, argv);
  const Kokkos::View<double*> view("heddle::tests::view", 17);
  if (world_rank() == 1) throw std::runtime_error("rank 1 has no more thread");
  MPI_Barrier(MPI_COMM_WORLD);
}

constexpr double watchdog = 0.5;

/// A step in which each rank waits for messages of its neighbours; `handler` performs the actions.
template <class T>
void step(T& transport, const heddle::Handler& handler) {
  std::vector<std::byte> memory(1 << 20);
  const heddle::Schedule schedule = heddle::schedule::one_f_one_b(
      {.stages = transport.size(), .microbatches = 2, .sizes = {.activation = 8, .saved = 8}});
  heddle::execute(
      heddle::slice(schedule, transport.rank(),
                    [&](heddle::BufferId, const heddle::Buffer&) { return memory.data(); }),
      handler, transport, {.watchdog = watchdog});
}

void gather(auto& transport) {
  (void)heddle::all_gather(transport, std::as_bytes(std::span("x", 1)), {.watchdog = watchdog});
}

/// All ranks but the last, which has been stopped, wait for it in one of these ways.
const std::map<std::string_view, std::function<void(heddle::MpiTransport&, heddle::Communicator&)>>
    ways = {
        {"executor", [](auto& transport, auto&) { step(transport, [](const heddle::Task&) {}); }},
        {"exchange", [](auto& transport, auto&) { gather(transport); }},
        {"shaped",
         [](auto& transport, auto&) {
           heddle::DeviceTransport<heddle::MpiTransport, Kokkos::HostSpace> device(transport);
           heddle::ShapedTransport shaped(device,
                                          {.link = [](heddle::Rank, heddle::Rank, heddle::Seconds) {
                                            return heddle::Link{};
                                          }});
           gather(shaped);
         }},
        {"large",  // the message waits in MPI for its receiver
         [](auto& transport, auto&) {
           const std::vector<std::byte> data(4 << 20);
           auto request = transport.send(heddle::Rank{transport.size() - 1}, heddle::Lane{0},
                                         data.data(), data.size());
           try {
             heddle::impl::finish(transport, request, "large", {.watchdog = watchdog});
           } catch (const std::exception& error) {
             transport.abort({transport.rank(), "large", error.what()});
             transport.cancel(request);
             throw;
           }
         }},
        {"mailbox",
         [](auto& transport, auto&) {
           const heddle::Rank peers[] = {heddle::Rank{transport.size() - 1}};
           heddle::Mailbox letters(transport, peers, {.wait = {.watchdog = watchdog}});
           (void)letters.receive();
         }},
        {"library",
         [](auto&, auto& comm) {
           heddle::barrier(comm, {.watch_library = true, .wait = {.watchdog = watchdog}});
         }},
        {"schedule",
         [](auto&, auto& comm) {
           heddle::barrier(comm, {.algorithm = heddle::schedule::Algorithm::bruck,
                                  .wait = {.watchdog = watchdog}});
         }},
        {"agreement",
         [](auto&, auto& comm) {
           heddle::impl::check_agreement(
               comm,
               [] {
                 return heddle::impl::CollectiveCall{"call", {}};
               },
               heddle::ContractLevel::communication, watchdog);
         }},
};

/// Stops for good, also when the launcher wakes this process to end it.
[[noreturn]] void stop() {
  std::raise(SIGSTOP);
  for (;;) pause();
}

/// The last rank waits in a call of the MPI library that the others do not make. They catch the
/// error of the exchange in which they wait for it.
void blocking(int argc, char** argv) {
  const heddle::Environment environment(argc, argv);
  heddle::Communicator comm(MPI_COMM_WORLD);
  heddle::MpiTransport transport(MPI_COMM_WORLD);
  try {
    if (world_rank() + 1 == comm.size()) heddle::barrier(comm);
    gather(transport);
  } catch (const heddle::communication_error& error) {
    std::cout << "caught: " << error.what() << '\n';
  }
}

/// The last rank stops, and the others catch the error in the scope of the Environment.
void silent(int argc, char** argv) {
  const heddle::Environment environment(argc, argv);
  heddle::Communicator comm(MPI_COMM_WORLD);
  heddle::MpiTransport transport(MPI_COMM_WORLD);
  try {
    if (argc > 2 && std::string_view(argv[2]) == "share") {
      heddle::SharedTransport shared(MPI_COMM_WORLD, {.watchdog = watchdog});
      if (world_rank() + 1 == comm.size()) stop();
      (void)shared.share(8);
    } else {
      const auto& way = ways.at(argc > 2 ? argv[2] : "");
      if (world_rank() + 1 == comm.size()) stop();
      way(transport, comm);
    }
    std::cout << "NO: that was not to be\n";
  } catch (const heddle::communication_error& error) {
    std::cout << "caught: " << error.what() << '\n';
  }
}

/// Rank 0 fails, the others hear of it, and all catch the error in the scope of the Environment.
void told(int argc, char** argv) {
  const heddle::Environment environment(argc, argv);
  heddle::MpiTransport transport(MPI_COMM_WORLD);
  try {
    step(transport, [&](const heddle::Task&) {
      if (world_rank() == 0) throw std::runtime_error("rank 0 has no more memory");
    });
  } catch (const std::exception& error) {
    std::cout << "caught: " << error.what() << '\n';
  }
}

/// A rank that is a thread is silent, and MPI is as it was.
void threads(int argc, char** argv) {
  const heddle::Environment environment(argc, argv);
  try {
    heddle::run_threads(2, [](heddle::ThreadTransport& transport) {
      if (transport.rank() == heddle::Rank{0}) gather(transport);
      while (!transport.aborted()) continue;
    });
  } catch (const heddle::communication_error& error) {
    std::cout << "caught: " << error.what() << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "uncaught") fail(argc, argv);
  try {
    if (mode == "once") once(argc, argv);
    if (mode == "borrowed") borrowed(argc, argv);
    if (mode == "caught") fail(argc, argv);
    if (mode == "silent") silent(argc, argv);
    if (mode == "blocking") blocking(argc, argv);
    if (mode == "told") told(argc, argv);
    if (mode == "threads") threads(argc, argv);
  } catch (const std::exception& error) {
    std::cout << "caught: " << error.what();  // not flushed: what is in buffers must not be lost
    return mode == "caught" ? 0 : 1;
  }
  std::cout << mode << ": done\n";
  return 0;
}

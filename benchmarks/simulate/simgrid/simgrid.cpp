// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// links: heddle::core
// optional: simgrid simgrid/s4u.hpp
// test: yes

// A referee for the simulator: SimGrid runs every schedule of the catalogue and FlexPipe, one actor
// per rank, on platforms of latency and bandwidth. Shared with simulate() are the schedule,
// with the dependencies derived from it, and the costs; nothing else: the actors walk the ranks'
// programs, SimGrid keeps the time and carries the messages. A channel of ours carries one message
// after another. Where messages queue up for a link, SimGrid lets them share it unless the sender
// holds them back: both are measured, the latter has a bar.

#include <iostream>

#include "../../support.hpp"

#ifdef HEDDLE_HAS_SIMGRID

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <simgrid/s4u.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>
#include <heddle/schedule/catalogue.hpp>
#include <heddle/simulate.hpp>

namespace {

using namespace heddle;
namespace sg = simgrid::s4u;

/// Uneven stages and microbatches, so that a wrong order shows in the time. Updates and sums of
/// gradients are free: where they take place on a rank is for the executor to say.
struct UnevenCosts {
  using Time = Seconds;
  StageCosts even;

  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const Action& action = schedule[id];
    const auto uneven = static_cast<double>((7 * +action.stage + 3 * +action.item) % 5);
    return even.time(schedule, id) * (1 + 0.05 * uneven);
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    return even.transfer(schedule, id);
  }
};
static_assert(Costs<UnevenCosts>);

/// One schedule on one platform: what simulate() says, and what SimGrid will have said.
struct Case {
  std::string schedule;  ///< its name in the catalogue
  std::string platform;  ///< for people to read
  Schedule list;
  UnevenCosts costs;
  bool in_turn = false;  ///< senders hold a message back until the one before has left
  Seconds ours = 0;
  Seconds theirs = 0;
  std::vector<sg::Host*> hosts;
  std::map<std::uint32_t, sg::BarrierPtr> barriers;  ///< of group actions
  std::string prefix;                                ///< of its names in SimGrid
};

/// What the actor of `rank` does: the rank's program, step by step.
void walk(Case& one, Rank rank) {
  const Program program = slice(
      one.list, rank, [](BufferId, const Buffer&) { return static_cast<std::byte*>(nullptr); });
  const auto mailbox = [&](const Port& port) {
    const Rank from = port.sends ? rank : port.peer;
    const Rank to = port.sends ? port.peer : rank;
    return sg::Mailbox::by_name(text(one.prefix, from, "-", to, "-", port.lane));
  };
  // Messages travel as soon as they are sent, whether their receiver is there or not.
  for (const Port& port : program.ports)
    if (!port.sends) mailbox(port)->set_receiver(sg::Actor::self());
  struct Message {
    sg::CommPtr itself;
    sg::ActorPtr carrier = {};  ///< who sends it in its turn
    std::unique_ptr<void*> landed = {};
  };
  struct Messages {
    std::vector<Message> posted;
    std::size_t complete = 0;
    sg::SemaphorePtr turn = sg::Semaphore::create(1);
  };
  std::vector<Messages> messages(program.ports.size());
  const auto wait = [&](std::uint32_t port, std::size_t count) {
    for (Messages& of = messages[port]; of.complete < count; ++of.complete) {
      Message& message = of.posted[of.complete];
      message.carrier ? message.carrier->join() : void(message.itself->wait());
    }
  };
  static char payload = 0;
  for (std::size_t s = 0; s < program.size(); ++s) {
    const Step& step = program.steps[s];
    const bool fused = (one.list[step.action].flags & flag::with_next) != 0;
    for (std::size_t each = s; each <= s + fused; ++each)
      for (const Wait& needed : program.waits_of(each))
        if (!needed.carried) wait(needed.port, needed.messages);
    if (step.does != Step::Does::run) {
      sg::Mailbox* const box = mailbox(program.ports[step.port]);
      Messages& of = messages[step.port];
      Message& message = of.posted.emplace_back();
      const Bytes bytes = one.list.bytes(one.list.uses(step.action)[0]);
      if (step.does == Step::Does::receive) {
        message.landed = std::make_unique<void*>(nullptr);
        message.itself = box->get_async(message.landed.get());
      } else if (!one.in_turn) {
        message.itself = box->put_async(&payload, bytes);
      } else {
        const Seconds occupancy = one.costs.transfer(one.list, step.action).occupancy;
        message.carrier =
            sg::Actor::create("carrier", sg::this_actor::get_host(), [=, turn = of.turn] {
              turn->acquire();
              const sg::CommPtr comm = box->put_async(&payload, bytes);
              sg::this_actor::sleep_for(occupancy);
              turn->release();
              comm->wait();
            });
      }
    } else {
      if (const auto barrier = one.barriers.find(step.action.value); barrier != one.barriers.end())
        barrier->second->wait();
      Seconds cost = one.costs.time(one.list, step.action);
      if (fused) cost += one.costs.time(one.list, program.steps[++s].action);
      sg::this_actor::execute(cost);  // on a host of one flop per second
    }
  }
  for (std::uint32_t port = 0; port < messages.size(); ++port)
    wait(port, messages[port].posted.size());
  one.theirs = std::max(one.theirs, sg::Engine::get_clock());
}

/// Hosts and links of its own for every case, so that one run of SimGrid serves them all.
void place(Case& one, sg::NetZone& zone, double latency, double bandwidth) {
  const auto ranks = static_cast<std::size_t>(one.list.ranks());
  for (std::size_t r = 0; r < ranks; ++r)
    one.hosts.push_back(zone.create_host(text(one.prefix, r), 1.0)->seal());
  std::set<std::pair<Rank, Rank>> joined;
  for (const Queue& queue : one.list.queues()) {
    if (queue.local() || !joined.emplace(queue.from, queue.to).second) continue;
    sg::Link* const link = zone.create_link(text(one.prefix, queue.from, ">", queue.to), bandwidth)
                               ->set_latency(latency)
                               ->seal();
    zone.add_route(one.hosts[+queue.from]->get_netpoint(), one.hosts[+queue.to]->get_netpoint(),
                   nullptr, nullptr, std::vector<sg::LinkInRoute>{sg::LinkInRoute(link)}, false);
  }
  for (std::size_t i = 0; i < one.list.size(); ++i) {
    const ActionId id{i};
    if (one.list[id].kind != Kind::group) continue;
    std::set<Rank> members;
    for (const Use& use : one.list.uses(id)) members.insert(one.list[use.buffer].rank);
    one.barriers[id.value] = sg::Barrier::create(static_cast<unsigned>(members.size()));
  }
}

constexpr Bytes message = 1'000'000;

/// Every schedule of the catalogue in the shapes that it exists for, and two branches by FlexPipe
/// that exchange activations on their way.
std::vector<std::pair<std::string, Schedule>> schedules() {
  std::vector<std::pair<std::string, Schedule>> all;
  for (const auto& [ranks, microbatches, stages_per_rank] :
       {std::tuple{2, 4, 2}, {4, 8, 2}, {4, 12, 3}, {8, 16, 2}}) {
    for (const auto& entry : schedule::catalogue()) {
      try {
        all.emplace_back(entry.name, weave(entry.orders({ranks, microbatches, stages_per_rank}),
                                           {.activation = message}));
      } catch (const infeasible&) {  // not for this shape
      }
    }
    all.emplace_back("flexpipe", schedule::flexpipe({.ranks = ranks,
                                                     .microbatches = microbatches,
                                                     .interactions = {{0, 0, 1, 1}},
                                                     .sizes = {.activation = message}}));
  }
  return all;
}

/// The worst difference of any schedule, in percent.
double run(char* program) {
  std::vector<std::string> words{program, "--log=root.thresh:warning",
                                 "--cfg=network/model:CM02",  // latency and bandwidth, no factors
                                 "--cfg=network/TCP-gamma:0", "--cfg=network/crosstraffic:0"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  sg::Engine engine(&count, arguments.data());
  sg::NetZone* const zone = sg::create_full_zone("cases");

  struct Platform {
    const char* name;
    double latency;   ///< seconds; a forward takes 1
    double transfer;  ///< of one message, seconds
    bool in_turn = false;
  };
  std::vector<std::unique_ptr<Case>> cases;
  for (const auto& [name, list] : schedules()) {
    for (const Platform& platform :
         {Platform{"near", 1e-4, 1e-3}, Platform{"latency", 0.3, 0.01},
          Platform{"bandwidth", 0.01, 0.4}, Platform{"full", 0.01, 1.3, true},
          Platform{"shared", 0.01, 1.3}}) {
      const double bandwidth = message / platform.transfer;
      auto one = std::make_unique<Case>();
      one->schedule = name;
      one->platform = text(platform.name, " P=", list.ranks());
      one->list = list;
      one->costs.even = {
          .F = 1, .I = 0.9, .W = 0.8, .latency = platform.latency, .per_byte = 1 / bandwidth};
      one->in_turn = platform.in_turn;
      one->ours = simulate(one->list, one->costs).makespan();
      one->prefix = text("c", cases.size(), ".");
      place(*one, *zone, platform.latency, bandwidth);
      cases.push_back(std::move(one));
    }
  }
  zone->seal();
  for (const auto& one : cases)
    for (std::size_t r = 0; r < one->hosts.size(); ++r)
      sg::Actor::create(text(one->prefix, r), one->hosts[r], [&one, r] { walk(*one, Rank{r}); });
  engine.run();

  std::map<std::string, std::vector<double>> errors;
  for (const auto& one : cases) {
    const double error = std::abs(one->ours / one->theirs - 1) * 100;
    if (error > 0.1)
      std::cout << one->schedule << ' ' << one->platform << ": ours " << one->ours << " s, SimGrid "
                << one->theirs << " s\n";
    if (one->platform.starts_with("shared")) {
      errors["shared_links"].push_back(error);
      continue;
    }
    errors[one->schedule].push_back(error);
    errors["every_schedule"].push_back(error);
  }
  for (const auto& [name, all] : errors) {
    const auto worst = std::max_element(all.begin(), all.end());
    bench::print_value("simulate/simgrid", name, bench::summarise({*worst}), "%");
  }
  std::cout << cases.size() << " cases\n";
  return std::ranges::max(errors["every_schedule"]);
}

}  // namespace

int main(int, char** argv) { return run(argv[0]) <= 1 ? 0 : 1; }

#else

int main() { std::cout << "skip simulate/simgrid SimGrid was not found (libsimgrid-dev)\n"; }

#endif

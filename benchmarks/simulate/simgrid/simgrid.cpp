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
//
// On machines whose ranks have one port in each direction, and where all pass one line besides, we
// serve whole messages, first come, first served, and SimGrid's links are shared fluidly. So there
// SimGrid's semaphores, one for each port, say who comes first, and its clock when. Its own network
// judges the exchanges that take as long either way: those in which all messages start at once and
// every port is busy until the end.

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

#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/simulate.hpp>

namespace {

using namespace heddle;
namespace sg = simgrid::s4u;

constexpr double unlimited = 1e30;  // bytes per second, for SimGrid a number

/// Uneven stages and microbatches, so that a wrong order shows in the time. Updates and sums of
/// gradients are free: where they take place on a rank is for the executor to say.
struct UnevenCosts {
  using Time = Seconds;
  StageCosts even;
  Machine on = Machine::uniform(1, {}, {});

  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const Action& action = schedule[id];
    const auto uneven = static_cast<double>((7 * +action.stage + 3 * +action.item) % 5);
    return even.time(schedule, id) * (1 + 0.05 * uneven + little(id));
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    if (schedule[schedule[id].queue].local()) return {};
    return even.transfer(schedule, id);
  }
  [[nodiscard]] const Machine& machine() const { return on; }
  [[nodiscard]] Seconds occupancy(const Schedule& schedule, ActionId id,
                                  const Shared& shared) const {
    return shared.occupancy(schedule.bytes(schedule.uses(id)[0])) * (1 + jitter * little(id));
  }
  /// Keeps messages from coming to a port at the same time: who is first then is anybody's choice.
  [[nodiscard]] static double little(ActionId id) {
    return 1e-5 * static_cast<double>((37 * +id) % 1009);
  }
  double jitter = 1;  ///< 0: messages of one size take one time
};
static_assert(SharingCosts<UnevenCosts>);

/// One schedule on one platform: what simulate() says, and what SimGrid will have said.
struct Case {
  std::string schedule;  ///< its name in the catalogue
  std::string platform;  ///< for people to read
  Schedule list;
  UnevenCosts costs;
  bool in_turn = false;  ///< senders hold a message back until the one before has left
  bool fluid = false;    ///< what the machine says is shared SimGrid's network shares
  Seconds ours = 0;
  Seconds theirs = 0;
  Seconds begin = 0;  ///< when SimGrid begins it
  std::vector<sg::Host*> hosts;
  std::map<std::uint32_t, sg::BarrierPtr> barriers;  ///< of group actions
  std::vector<sg::SemaphorePtr> shared;              ///< the turns at what the machine shares
  std::string prefix;                                ///< of its names in SimGrid
};

/// Carries a message past everything that it shares, as a semaphore for each lets it, and ends when
/// it is there. `turn` is that of its channel.
void carry(const Case& one, ActionId id, const sg::SemaphorePtr& turn, sg::Mailbox* box,
           void* payload) {
  const Queue& queue = one.list[one.list[id].queue];
  const Machine::Route route = one.costs.on.route(queue.from, queue.to, queue.lane);
  const Transfer<Seconds> transfer = one.costs.transfer(one.list, id);
  const auto release_at = [](Seconds end, const sg::SemaphorePtr& what) {
    sg::Actor::create("holder", sg::this_actor::get_host(), [=] {
      sg::this_actor::sleep_until(end);
      what->release();
    });
  };
  const auto pass = [&](SharedId shared) {
    const sg::SemaphorePtr& port = one.shared[+shared];
    port->acquire();
    const Seconds end =
        sg::Engine::get_clock() + one.costs.occupancy(one.list, id, one.costs.on.shared()[+shared]);
    release_at(end, port);
    return end;
  };
  turn->acquire();
  Seconds end = 0;
  for (const SharedId shared : route.out) end = std::max(end, pass(shared));
  end = std::max(end, sg::Engine::get_clock() + transfer.occupancy);
  release_at(end, turn);
  Seconds arrival = end + transfer.latency;
  if (!route.in.empty()) sg::this_actor::sleep_for(transfer.latency);
  for (const SharedId shared : route.in) arrival = std::max(arrival, pass(shared));
  sg::this_actor::sleep_until(arrival);
  box->put(payload, 1);
}

/// What the actor of `rank` does: the rank's program, step by step.
void walk(Case& one, Rank rank) {
  const Program program = slice(
      one.list, rank, [](BufferId, const Buffer&) { return static_cast<std::byte*>(nullptr); });
  const auto mailbox = [&](const Program::Port& port) {
    const Rank from = port.sends ? rank : port.peer;
    const Rank to = port.sends ? port.peer : rank;
    return sg::Mailbox::by_name(text(one.prefix, from, "-", to, "-", port.lane));
  };
  // Messages travel as soon as they are sent, whether their receiver is there or not.
  for (const Program::Port& port : program.ports)
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
    const Program::Step& step = program.steps[s];
    const bool fused = (one.list[step.action].flags & flag::with_next) != 0;
    for (std::size_t each = s; each <= s + fused; ++each)
      for (const Program::Wait& needed : program.waits_of(each))
        if (!needed.carried) wait(needed.port, needed.messages);
    if (step.does != Program::Step::Does::run) {
      sg::Mailbox* const box = mailbox(program.ports[step.port]);
      Messages& of = messages[step.port];
      Message& message = of.posted.emplace_back();
      const Bytes bytes = one.list.bytes(one.list.uses(step.action)[0]);
      if (step.does == Program::Step::Does::receive) {
        message.landed = std::make_unique<void*>(nullptr);
        message.itself = box->get_async(message.landed.get());
      } else if (!one.shared.empty()) {
        message.carrier = sg::Actor::create(
            "carrier", sg::this_actor::get_host(),
            [=, &one, id = step.action, turn = of.turn] { carry(one, id, turn, box, &payload); });
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
  one.theirs = std::max(one.theirs, sg::Engine::get_clock() - one.begin);
}

/// Hosts and links of its own for every case, so that one run of SimGrid serves them all.
void place(Case& one, sg::NetZone& zone, double latency, double bandwidth) {
  const auto ranks = static_cast<std::size_t>(one.list.ranks());
  for (std::size_t r = 0; r < ranks; ++r)
    one.hosts.push_back(zone.create_host(text(one.prefix, r), 1.0)->seal());
  std::vector<sg::Link*> fluid_links;
  for (const Shared& shared : one.costs.on.shared()) {
    if (one.fluid)
      fluid_links.push_back(
          zone.create_link(text(one.prefix, shared.name), shared.bandwidth)->seal());
    else
      one.shared.push_back(sg::Semaphore::create(1));
  }
  if (!one.shared.empty()) {  // then carry() says how long a message takes
    latency = 0;
    bandwidth = unlimited;
  }
  std::set<std::pair<Rank, Rank>> joined;
  for (const Queue& queue : one.list.queues()) {
    if (queue.local() || !joined.emplace(queue.from, queue.to).second) continue;
    std::vector<sg::LinkInRoute> links;
    if (one.fluid) {
      const Machine::Route route = one.costs.on.route(queue.from, queue.to, queue.lane);
      for (const SharedId shared : route.out) links.emplace_back(fluid_links[+shared]);
      for (const SharedId shared : route.in) links.emplace_back(fluid_links[+shared]);
    }
    links.emplace_back(zone.create_link(text(one.prefix, queue.from, ">", queue.to), bandwidth)
                           ->set_latency(latency)
                           ->seal());
    zone.add_route(one.hosts[+queue.from]->get_netpoint(), one.hosts[+queue.to]->get_netpoint(),
                   nullptr, nullptr, links, false);
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

/// A machine whose ranks have one port in each direction, and messages one line for all of them.
Machine with_ports(int ranks, double port, double line = unlimited) {
  const Ports ports{.out = port, .in = port};
  Machine machine = Machine::hierarchical(
      std::vector<Device>(static_cast<std::size_t>(ranks)),
      {{.name = "rank", .ports = ports}, {.name = "machine", .ranks = ranks}});
  if (line == unlimited) return machine;
  std::vector<std::pair<Rank, Rank>> all;
  for (int a = 0; a < ranks; ++a)
    for (int b = 0; b < ranks; ++b)
      if (a != b) all.emplace_back(a, b);
  machine.share("line", line, std::move(all));
  return machine;
}

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

/// Exchanges in which all messages start at once, or all of a half do, and some port is busy from
/// the first to the last of them.
std::vector<std::pair<std::string, Schedule>> exchanges() {
  using schedule::Algorithm;
  using schedule::Collective;
  std::vector<std::pair<std::string, Schedule>> all;
  for (const int p : {2, 3, 4, 7, 8})
    for (const auto& [collective, algorithm] :
         {std::pair{Collective::all_to_all, Algorithm::direct},
          std::pair{Collective::all_gather, Algorithm::direct},
          std::pair{Collective::all_reduce, Algorithm::star}})
      all.emplace_back(
          text(collective, ' ', algorithm),
          schedule::collective(collective, algorithm,
                               {.ranks = p, .bytes = 8 * static_cast<Bytes>(p) * (message / 8)}));
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
    double port = 0;  ///< that of a rank takes so long for a message, seconds; 0: there is none
    double line = 0;  ///< one for all the same
  };
  std::vector<std::unique_ptr<Case>> cases;
  for (const auto& [name, list] : schedules()) {
    for (const Platform& platform :
         {Platform{"near", 1e-4, 1e-3}, Platform{"latency", 0.3, 0.01},
          Platform{"bandwidth", 0.01, 0.4}, Platform{"full", 0.01, 1.3, true},
          Platform{"shared", 0.01, 1.3}, Platform{"ports", 0.01, 0, false, 0.9},
          Platform{"ports far", 2.3, 0, false, 0.6},
          Platform{"ports and line", 0.05, 0.2, false, 0.3, 0.07}}) {
      const double bandwidth = platform.transfer == 0 ? unlimited : message / platform.transfer;
      auto one = std::make_unique<Case>();
      one->schedule = name;
      one->platform = text(platform.name, " P=", list.ranks());
      one->list = list;
      one->costs.even = {.forward = 1,
                         .backward_input = 0.9,
                         .backward_weight = 0.8,
                         .latency = platform.latency,
                         .per_byte = 1 / bandwidth};
      one->in_turn = platform.in_turn;
      one->costs.on = platform.port == 0
                          ? Machine::uniform(list.ranks(), {}, {})
                          : with_ports(list.ranks(), message / platform.port,
                                       platform.line == 0 ? unlimited : message / platform.line);
      one->ours = simulate(one->list, one->costs).makespan();
      one->prefix = text("c", cases.size(), ".");
      place(*one, *zone, platform.latency, bandwidth);
      cases.push_back(std::move(one));
    }
  }
  for (const auto& [name, list] : exchanges()) {
    auto one = std::make_unique<Case>();
    one->schedule = name;
    one->platform = text("fluid P=", list.ranks());
    one->list = list;
    one->costs.even = {.latency = 0.01};
    one->costs.on = with_ports(list.ranks(), message);
    one->fluid = true;
    one->costs.jitter = 0;
    one->ours = simulate(one->list, one->costs).makespan();
    one->prefix = text("c", cases.size(), ".");
    place(*one, *zone, 0.01, unlimited);
    cases.push_back(std::move(one));
  }
  zone->seal();
  // One case after the other: the stacks of the actors of all cases are more than a process may
  // map.
  sg::Actor::create("all cases", cases.front()->hosts.front(), [&] {
    for (const auto& one : cases) {
      one->begin = sg::Engine::get_clock();
      std::vector<sg::ActorPtr> ranks;
      for (std::size_t r = 0; r < one->hosts.size(); ++r)
        ranks.push_back(sg::Actor::create(text(one->prefix, r), one->hosts[r],
                                          [&one, r] { walk(*one, Rank{r}); }));
      for (const sg::ActorPtr& rank : ranks) rank->join();
    }
  });
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
    if (one->platform.starts_with("ports")) {
      errors["ports_in_time_order"].push_back(error);
      continue;
    }
    if (one->fluid) {
      errors["fluid_ports"].push_back(error);
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
  return std::max({std::ranges::max(errors["every_schedule"]),
                   std::ranges::max(errors["ports_in_time_order"]),
                   std::ranges::max(errors["fluid_ports"])});
}

}  // namespace

int main(int, char** argv) { return run(argv[0]) <= 1 ? 0 : 1; }

#else

int main() { std::cout << "skip simulate/simgrid SimGrid was not found (libsimgrid-dev)\n"; }

#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// SambaNova SN40L: experts that are switched between memory tiers, and what is spilled.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/tier/cache.hpp>
#include <heddle/tier/replay.hpp>
#include <heddle/tier/spill.hpp>
#include <heddle/tier/store.hpp>

#include "comparison.hpp"
#include "support/expert_requests.hpp"
#include "support/expert_tiers.hpp"
#include "support/random_symbols.hpp"
#include "support/small_store.hpp"

namespace hd = heddle;
namespace tier = heddle::tier;

namespace report {

namespace {

constexpr hd::Bytes expert_bytes = 14'000'000'000;  // 7B parameters in 16 bits

hd::Seconds simulated_switch(hd::Tier slower) {
  const std::vector<tier::Object> objects{{"expert", expert_bytes, hd::Scalar::f16}};
  const std::vector<tier::CacheEvent> load{{tier::CacheEvent::What::load, 0}};
  return hd::test::switching_time(objects, load, slower);
}

/// Adds the ratios of two tiers to the fastest one, simulated and executed.
void add_switches(std::vector<Comparison>& lines) {
  const hd::test::TestFolder folder("sn40l");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {50'000, 50'000});
  const hd::Seconds simulated = simulated_switch(hd::Tier{1});
  const hd::Seconds executed = hd::test::measured_switch(file, hd::Tier{1}, 25);
  const hd::Machine machine = hd::test::three_tiers();
  const std::vector<hd::Memory>& tiers = machine.device(0).memories;
  for (const hd::Tier slower : {hd::Tier{2}, hd::Tier{3}}) {
    const double ratio = simulated_switch(slower) / simulated;
    const std::string what = hd::text("14 GB at ", tiers[+slower].link.bandwidth / 1e9, " and at ",
                                      tiers[1].link.bandwidth / 1e9, " GB/s: ratio of the times");
    lines.push_back({what + ", simulated", "15-31x", hd::text(ratio, 'x'), "none",
                     not_judged("it is the quotient of the described bandwidths")});
    const double measured = hd::test::measured_switch(file, slower, 2) / executed;
    lines.push_back({what + ", executed with 200 kB on tiers that are shaped like these", "15-31x",
                     hd::text(measured, 'x'), "none",
                     not_judged("the run itself slows the tiers down by these ratios")});
  }
}

/// Adds the hits of 100,000 requests.
void add_requests(std::vector<Comparison>& lines) {
  std::vector<tier::Object> objects;
  for (int e = 0; e < 150; ++e)
    objects.push_back({hd::text("expert ", e), expert_bytes, hd::Scalar::f16});
  const auto requests = hd::test::expert_requests(100'000, 150);
  for (const std::size_t room : {4u, 37u}) {
    const hd::Bytes capacity = room * expert_bytes;
    const auto hits = tier::replay(objects, requests, capacity, tier::Lru{}).counters.hits;
    const std::uint64_t oracle = hd::test::oracle_lru_hits(requests, room);
    const tier::HitsBound bound = tier::hits_bound(objects, requests, capacity);
    lines.push_back({hd::text("100,000 requests over 150 experts, room for ", room, ": LRU hits"),
                     "", hd::text(hits),
                     hd::text("an oracle's ", oracle, ", at most Belady's ", bound.hits),
                     verdict(hits == oracle && bound.exact && hits <= bound.hits)});
  }
}

/// Adds the bytes that a cache writes back if experts are read, and if one of them is changed.
void add_write_backs(std::vector<Comparison>& lines) {
  const hd::test::TestFolder folder("sn40l_written");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, std::vector<std::size_t>(8, 256));
  tier::Store store({.file = file, .writable = true});
  tier::Cache cache(store, {.capacity = 3 * 1024});
  for (int pass = 0; pass < 3; ++pass)
    for (int e = 0; e < 8; ++e) static_cast<void>(cache.get(hd::text("expert ", e)));
  const hd::Bytes read_only = store.counters().bytes_written;
  static_cast<void>(cache.get("expert 1", hd::Access::update));
  cache.flush();
  const hd::Bytes changed = store.counters().bytes_written;
  lines.push_back(
      {"bytes written back: 24 requests that read, then one that changes an expert of "
       "1024 B",
       "0", hd::text(read_only, " B, then ", changed, " B"), "0 B, then 1024 B",
       verdict(read_only == 0 && changed == 1024)});
}

/// Adds the choice of spilled symbols, against all choices.
void add_spills(std::vector<Comparison>& lines) {
  constexpr std::uint64_t cases = 300;
  std::uint64_t equal = 0, greedy_equal = 0;
  double greedy = 0, best = 0;
  for (std::uint64_t c = 0; c < cases; ++c) {
    const hd::Random random(c, "spilled symbols");
    const std::vector<tier::Symbol> symbols = hd::test::random_symbols(random);
    const hd::Bytes capacity = 5 + random.below(500, 35);
    const hd::Bytes fewest = hd::test::fewest_transfers(symbols, capacity);
    const hd::Bytes fast = tier::spill_fewest_transfers(symbols, capacity).transferred;
    equal += tier::spill(symbols, capacity).transferred == fewest;
    greedy_equal += fast == fewest;
    greedy += static_cast<double>(fast);
    best += static_cast<double>(fewest);
  }
  lines.push_back({hd::text(cases, " programs of up to 12 symbols: transfers of the spilled ones"),
                   "", hd::text(equal, " of ", cases, " as brute force"), "all",
                   verdict(equal == cases)});
  lines.push_back({"the published rule, the fewest transfers first, for the same programs", "",
                   hd::text(greedy_equal, " of ", cases, " as brute force, ", greedy / best,
                            " of the transfers"),
                   "none", not_judged("no choice transfers less than the least of all")});
}

}  // namespace

std::vector<Comparison> sn40l() {
  std::vector<Comparison> lines;
  add_switches(lines);
  add_requests(lines);
  add_write_backs(lines);
  add_spills(lines);
  lines.push_back({"texts of a router over 10 GPTs in a file behind two caches", "", "",
                   "those of the GPTs in memory; hits of serial oracles",
                   "skipped: scripts/test -R kernel.expert_texts"});
  lines.push_back({"15-31x as measured against two hosts with GPUs", "15-31x", "", "none",
                   "not reproducible: it needs the SN40L and both hosts"});
  return lines;
}

}  // namespace report

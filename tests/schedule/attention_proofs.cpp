// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Attention Schedules are proved to compute every visible pair once. Of lists with one change, the
// proof and a run with integer weights agree which ones still do.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "support/attention_meaning.hpp"
#include "support/cases.hpp"
#include "support/changed_list.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"

namespace test_attention_proofs {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::AttentionForm;
using schedule::why_not_equivalent;

namespace {

/// A random form, and one of its lists: as generated, without useless moves, or folded.
class Draw {
 public:
  explicit Draw(const char* name) : m_random(48, name) {}
  std::uint64_t below(std::uint64_t bound) { return m_random.below(m_next++, bound); }
  Random& random() { return m_random; }
  std::uint64_t& next() { return m_next; }

  AttentionForm form(int most_ranks) {
    AttentionForm form{.ranks =
                           1 + static_cast<int>(below(static_cast<std::uint64_t>(most_ranks)))};
    const std::uint64_t order = below(5);
    form.order = order == 0   ? ShardOrder::even()
                 : order <= 2 ? ShardOrder::zigzag()
                 : order == 3 ? ShardOrder::cyclic()
                              : ShardOrder::strided(1 + static_cast<std::int64_t>(below(3)));
    form.ways = 1 + static_cast<int>(below(2));
    form.mask.causal = below(4) != 0;
    form.tokens = 1 + static_cast<std::int64_t>(below(33));
    form.backward = below(2) == 0;
    if (below(3) == 0) form.mask.segments = {0, 1 + static_cast<std::int64_t>(below(9))};
    return form;
  }

  Schedule list(const AttentionForm& form, test::Coverage& coverage) {
    const std::uint64_t kind = form.ways == 2 ? 0 : below(form.backward ? 2 : 3);
    const Schedule made = kind == 0   ? schedule::ring_attention(form)
                          : kind == 1 ? schedule::rsa(form)
                                      : schedule::token_ring(form);
    coverage.count(text(form.backward ? "backward " : "forward ", kind), true);
    coverage.count("two ways", form.ways == 2);
    coverage.count(text("order ", form.order == ShardOrder::zigzag() ? "zigzag" : "other"), true);
    const std::uint64_t pass = below(4);
    coverage.count(text("pass ", pass), true);
    if (pass == 0) return made;
    const Schedule needed = schedule::drop_unread(made);
    if (pass == 1) return needed;
    const Schedule folded = schedule::fold_attention(needed, form);
    return pass == 2 ? folded : schedule::reuse_own_block(folded, form);
  }

 private:
  Random m_random;
  std::uint64_t m_next = 0;
};

}  // namespace

TEST_CASE("every attention Schedule is proved to compute each visible pair once") {
  Draw draw("proved attentions");
  test::Coverage coverage("proved attentions");
  for (std::uint64_t n = 0; n < test::cases(600, 100'000); ++n) {
    const AttentionForm form = draw.form(8);
    const Schedule list = draw.list(form, coverage);
    const std::string why = why_not_equivalent(list, form);
    INFO("case " << n << ", " << list.name() << ", " << form.tokens << " tokens: " << why);
    REQUIRE(why.empty());
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(20) == "");
}

TEST_CASE("changes of an attention Schedule are found, or do not change the pairs") {
  Draw draw("changed attentions");
  test::Coverage coverage("changed attentions");
  for (std::uint64_t n = 0; n < test::cases(2'000, 100'000); ++n) {
    AttentionForm form = draw.form(4);
    form.ranks += 1;
    form.tokens += 6 * form.ranks;  // no block is empty, so that every result counts
    const Schedule whole = draw.list(form, coverage);
    const auto change = static_cast<test::Change>(draw.below(test::changes));
    const std::optional<Schedule> made = test::changed(whole, change, draw.random(), draw.next());
    coverage.count("rejected by the Builder", !made);
    if (!made) continue;
    const std::string why = why_not_equivalent(*made, form);
    const std::string fault = test::attention_fault(*made, form);
    INFO("case " << n << ", change " << static_cast<int>(change) << ", " << form.tokens
                 << " tokens: " << why << "; " << fault);
    REQUIRE(why.empty() == fault.empty());
    coverage.count("harmless", fault.empty());
    coverage.count(text("found, change ", static_cast<int>(change)), !fault.empty());
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(20) == "");
}

TEST_CASE("a difference of an attention is named") {
  const AttentionForm form{.ranks = 4, .order = ShardOrder::zigzag(), .tokens = 16};
  const Schedule good = schedule::ring_attention(form);
  const auto complaint = [&](const std::string& action, int times) {
    Builder builder = Builder::like(good, [](const Buffer& buffer) { return buffer; });
    bool found = false;
    for (std::size_t i = 0; i < good.size(); ++i) {
      const bool is = schedule::action_text(good, ActionId{i}) == action;
      found = found || is;
      for (int n = is ? times : 1; n > 0; --n)
        builder.add(good, ActionId{i}, good.uses(ActionId{i}));
    }
    REQUIRE(found);
    return why_not_equivalent(std::move(builder).build(), form);
  };
  CHECK(complaint("2F1", 1) == "");
  CHECK(complaint("2F1", 0) == "'state' of rank 2, piece 0 lacks keys 1.0");
  CHECK(complaint("2F1", 2) == "'state' of rank 2, piece 0 has keys 1.0 twice");
  AttentionForm backward = form;
  backward.backward = true;
  CHECK_THAT(test::message_of<contract_error>([&] { (void)why_not_equivalent(good, backward); }),
             ContainsSubstring("the schedule is not one of this form") &&
                 ContainsSubstring("has 4 ranks and lacks buffers, the form 4 ranks, backward") &&
                 ContainsSubstring("give the form of which the schedule was made"));
  // A list of another mask lacks pairs, and one of another order reads other pieces.
  AttentionForm full = form;
  full.mask.causal = false;
  CHECK_THAT(why_not_equivalent(good, full), ContainsSubstring(" lacks keys "));
  CHECK(why_not_equivalent(schedule::ring_attention(full), form) == "");  // more pairs, all masked
}

TEST_CASE("a pass of an attention without uses is a fault") {
  for (const bool backward : {false, true})
    for (const bool blocks : {false, true}) {
      AttentionForm form{.ranks = 2, .tokens = 8};
      form.backward = backward;
      const Schedule good = blocks ? schedule::rsa(form) : schedule::ring_attention(form);
      const Kind pass = backward ? Kind::backward : Kind::forward;
      Builder builder = Builder::like(good, [](Buffer buffer) {
        buffer.transient = false;
        return buffer;
      });
      for (std::size_t i = 0; i < good.size(); ++i) {
        const ActionId id{i};
        if (good[id].kind == pass)
          builder.add(good, id, {});
        else
          builder.add(good, id, good.uses(id));
      }
      INFO((blocks ? "rsa" : "ring") << (backward ? ", backward" : ", forward"));
      CHECK_THAT(why_not_equivalent(std::move(builder).build(), form),
                 ContainsSubstring(blocks ? "has no uses" : "has 0 uses; expected "));
    }
}

}  // namespace test_attention_proofs

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Stores: objects come back as they were written, from each medium, or with an error that names the
// object and the byte, whatever happens to the file.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/checkpoint.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/tier/source.hpp>
#include <heddle/tier/store.hpp>
#include <heddle/tier/store_writer.hpp>

#include "support/complaint.hpp"
#include "support/small_store.hpp"

namespace test_store {

namespace hd = heddle;
namespace tier = heddle::tier;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;
using tier::ObjectId;

namespace {

std::vector<std::byte> content_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<std::byte> content;
  for (std::istreambuf_iterator<char> byte(in), end; byte != end; ++byte)
    content.push_back(static_cast<std::byte>(*byte));
  return content;
}

std::vector<float> read_expert(tier::Store& store, std::size_t e) {
  const ObjectId id = store.find(hd::text("expert ", e));
  std::vector<float> weights(store.object(id).bytes / sizeof(float));
  store.read(id, std::as_writable_bytes(std::span(weights)));
  return weights;
}

/// A source whose disk fails from some byte on.
class FailingSource final : public tier::Source {
 public:
  FailingSource(std::vector<std::byte> content, hd::Bytes from)
      : m_memory("disk", std::move(content)), m_from(from) {}
  [[nodiscard]] const std::string& name() const noexcept override { return m_memory.name(); }
  [[nodiscard]] hd::Bytes bytes() const noexcept override { return m_memory.bytes(); }
  void read(hd::Bytes offset, std::span<std::byte> to) override {
    if (offset + to.size() > m_from) throw hd::format_error({"disk", "input/output error"});
    m_memory.read(offset, to);
  }
  void write(hd::Bytes offset, std::span<const std::byte> from) override {
    if (offset + from.size() > m_from) throw hd::format_error({"disk", "input/output error"});
    m_memory.write(offset, from);
  }
  void fail_from(hd::Bytes from) { m_from = from; }

 private:
  tier::MemorySource m_memory;
  hd::Bytes m_from;
};

}  // namespace

TEST_CASE("a store has one writer at a time, and a killed writer's part is overwritten") {
  const hd::test::TestFolder folder("store-writers");
  const std::string file = folder.file("weights.tier");
  std::ofstream(file + ".part") << std::string(5000, 'x');
  const std::vector<float> weights{1, 2, 3};
  {
    tier::StoreWriter writer(file);
    writer.add("first", weights);
    CHECK_THAT(message_of<hd::format_error>([&] { tier::StoreWriter other(file); }),
               ContainsSubstring("'" + file + ".part' is in use"));
    writer.finish();
    tier::StoreWriter next(file);  // it does not finish
    next.add("second", weights);
  }
  CHECK_FALSE(std::filesystem::exists(file + ".part"));
  CHECK(hd::Checkpoint::load(file).get<float>("first") == weights);
  CHECK_FALSE(hd::Checkpoint::load(file).has("second"));
}

TEST_CASE("objects come back as they were written, from each medium") {
  const hd::test::TestFolder folder("store");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {100, 0, 7});
  for (const tier::StoreOptions::Medium medium :
       {tier::StoreOptions::Medium::file, tier::StoreOptions::Medium::mapped,
        tier::StoreOptions::Medium::memory}) {
    tier::Store store({.file = file, .model = "experts 1", .medium = medium});
    CHECK(store.model() == "experts 1");
    REQUIRE(store.objects().size() == 3);
    CHECK(store.object(0).type == hd::Scalar::f32);
    CHECK(store.object(0).bytes == 400);
    CHECK(store.has("expert 1"));
    CHECK_FALSE(store.has("expert 3"));
    for (const std::size_t e : {2u, 0u, 1u})
      CHECK(read_expert(store, e) == hd::test::expert_weights(e, store.objects()[e].bytes / 4));
    const tier::Store::Counters counters = store.counters();
    CHECK(counters.reads == 3);
    CHECK(counters.bytes_read == 428);
    CHECK(counters.writes == 0);
  }
  CHECK_FALSE(std::filesystem::exists(file + ".part"));
}

TEST_CASE("a store is a checkpoint, and a checkpoint is a store") {
  const hd::test::TestFolder folder("store_checkpoint");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {5, 3});
  const hd::Checkpoint loaded = hd::Checkpoint::load(file);
  CHECK(loaded.get<float>("expert 1") == hd::test::expert_weights(1, 3));
  loaded.save(folder.file("copy"));
  CHECK(content_of(folder.file("copy")) == content_of(file));
  hd::Checkpoint other;
  other.set("steps", std::vector<std::int64_t>{4, 5});
  other.save(folder.file("other"));
  tier::Store store({.file = folder.file("other")});
  CHECK(store.model().empty());
  CHECK(store.objects().size() == 1);
  CHECK(store.object(0).type == hd::Scalar::i64);
}

TEST_CASE("written objects are in the file, the others are as they were") {
  const hd::test::TestFolder folder("store_written");
  const std::string file = folder.file("weights.tier");
  for (const tier::StoreOptions::Medium medium :
       {tier::StoreOptions::Medium::file, tier::StoreOptions::Medium::mapped}) {
    hd::test::write_experts(file, {50, 40, 30});
    const std::vector<float> changed(40, -1.5f);
    std::uint32_t before = 0, after = 0;
    {
      tier::Store store({.file = file, .medium = medium, .writable = true});
      before = store.checksum();
      store.write(1, std::as_bytes(std::span(changed)));
      store.sync();
      after = store.checksum();
      CHECK(read_expert(store, 1) == changed);
      CHECK(store.counters().bytes_written == 160);
    }
    CHECK(before != after);
    tier::Store store({.file = file});
    CHECK(store.checksum() == after);
    CHECK(read_expert(store, 0) == hd::test::expert_weights(0, 50));
    CHECK(read_expert(store, 1) == changed);
    CHECK(read_expert(store, 2) == hd::test::expert_weights(2, 30));
    CHECK_THAT(
        message_of<hd::contract_error>([&] { store.write(1, std::as_bytes(std::span(changed))); }),
        ContainsSubstring("object 'expert 1' is read-only") &&
            ContainsSubstring("set StoreOptions::writable"));
  }
}

TEST_CASE("a store that is cut short or longer is refused with the byte") {
  const hd::test::TestFolder folder("store_short");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {4, 2});
  const std::vector<std::byte> content = content_of(file);
  for (std::size_t bytes = 0; bytes < content.size(); ++bytes) {
    auto cut = std::make_unique<tier::MemorySource>(
        "cut", std::vector<std::byte>(content.begin(),
                                      content.begin() + static_cast<std::ptrdiff_t>(bytes)));
    const std::string said =
        message_of<hd::format_error>([&] { tier::Store store(std::move(cut), {}); });
    // Within the header nothing is read of it; behind it, the header says how much there was.
    CHECK_THAT(
        said,
        ContainsSubstring(bytes < 28 ? std::string("at byte 0") : hd::text("at byte ", bytes)) &&
            ContainsSubstring("cut short") && ContainsSubstring("write the store again"));
  }
  std::vector<std::byte> longer = content;
  longer.emplace_back();
  CHECK_THAT(message_of<hd::format_error>([&] {
               tier::Store store(std::make_unique<tier::MemorySource>("long", longer), {});
             }),
             ContainsSubstring(hd::text("at byte ", content.size())));
}

TEST_CASE("every damaged byte is found, when the store is opened or its object is read") {
  const hd::test::TestFolder folder("store_damaged");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {4, 2});
  const std::vector<std::byte> content = content_of(file);
  for (std::size_t byte = 0; byte < content.size(); ++byte) {
    std::vector<std::byte> damaged = content;
    damaged[byte] ^= std::byte{4};
    bool found = false;
    try {
      tier::Store store(std::make_unique<tier::MemorySource>("damaged", damaged), {});
      for (const std::size_t e : {0u, 1u}) static_cast<void>(read_expert(store, e));
    } catch (const hd::format_error& error) {
      found = std::string(error.what()).find("byte") != std::string::npos;
    }
    CHECK(found);
  }
}

TEST_CASE("a store of another model, or of none, is refused") {
  const hd::test::TestFolder folder("store_model");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {4});
  const std::string said =
      message_of<hd::format_error>([&] { tier::Store({.file = file, .model = "experts 2"}); });
  CHECK_THAT(said, ContainsSubstring("is of another model: 'experts 1' at byte 64") &&
                       ContainsSubstring("expected 'experts 2'"));
  CHECK_THROWS_AS(tier::Store({.file = file, .model = "experts 2"}), hd::format_error);
  CHECK_THROWS_AS(tier::Store({.file = folder.file("nothing")}), hd::format_error);
  CHECK_THROWS_AS(tier::Store({.file = "/"}), hd::format_error);
  CHECK_THROWS_AS(tier::Store({.file = "/dev/null", .medium = tier::StoreOptions::Medium::mapped}),
                  hd::format_error);
}

TEST_CASE("a disk that fails in mid-read names the object, and the others can be read") {
  const hd::test::TestFolder folder("store_failing");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {2000, 2000});
  for (const tier::StoreOptions::Medium medium :
       {tier::StoreOptions::Medium::file, tier::StoreOptions::Medium::mapped}) {
    hd::test::write_experts(file, {2000, 2000});
    tier::Store store({.file = file, .medium = medium});
    std::filesystem::resize_file(file, 9000);  // the first object is whole, the second one is cut
    CHECK(read_expert(store, 0) == hd::test::expert_weights(0, 2000));
    const std::string said =
        message_of<hd::format_error>([&] { static_cast<void>(read_expert(store, 1)); });
    CHECK_THAT(said, ContainsSubstring("object 'expert 1' of '" + file + "' cannot be read") &&
                         ContainsSubstring("ends too early, at byte 9000"));
    CHECK_THROWS_AS(read_expert(store, 1), hd::format_error);
  }
  hd::test::write_experts(file, {2000, 2000});
  auto source = std::make_unique<FailingSource>(content_of(file), 1u << 20);
  FailingSource& disk = *source;
  tier::Store store(std::move(source), {.writable = true});
  disk.fail_from(9000);
  CHECK_THAT(message_of<hd::format_error>([&] { static_cast<void>(read_expert(store, 1)); }),
             ContainsSubstring("object 'expert 1' of 'disk' cannot be read") &&
                 ContainsSubstring("input/output error"));
  const std::vector<float> changed(2000, 1);
  CHECK_THAT(
      message_of<hd::format_error>([&] { store.write(1, std::as_bytes(std::span(changed))); }),
      ContainsSubstring("object 'expert 1' of 'disk' cannot be written"));
  disk.fail_from(1u << 20);
  CHECK(read_expert(store, 1) == hd::test::expert_weights(1, 2000));
}

TEST_CASE("a shape delays accesses as a link does: one after another, and by its latency") {
  const hd::test::TestFolder folder("store_shape");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {50, 50, 50});
  // 200 bytes occupy the link for 10 ms.
  tier::Store store(
      {.file = file, .writable = true, .shape = {.latency = 0.002, .bandwidth = 20e3}});
  const auto seconds_of = [](auto&& call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const std::vector<float> weights = hd::test::expert_weights(2, 50);
  CHECK(seconds_of([&] {
          for (const std::size_t e : {0u, 1u}) static_cast<void>(read_expert(store, e));
          store.write(2, std::as_bytes(std::span(weights)));
        }) >= 0.036);
  std::vector<std::vector<float>> read(3);
  CHECK(seconds_of([&] {
          std::vector<std::jthread> threads;
          for (std::size_t e = 0; e < 3; ++e)
            threads.emplace_back([&, e] { read[e] = read_expert(store, e); });
        }) >= 0.032);
  for (std::size_t e = 0; e < 3; ++e) CHECK(read[e] == hd::test::expert_weights(e, 50));
}

TEST_CASE("wrong calls are refused with what to do") {
  const hd::test::TestFolder folder("store_calls");
  const std::string file = folder.file("weights.tier");
  hd::test::write_experts(file, {4, 2});
  tier::Store store({.file = file});
  CHECK_THAT(message_of<hd::contract_error>([&] { static_cast<void>(store.find("expart 1")); }),
             ContainsSubstring("there is no object 'expart 1'") &&
                 ContainsSubstring("did you mean 'expert 1'?"));
  std::vector<std::byte> small(3);
  CHECK_THAT(message_of<hd::contract_error>([&] { store.read(0, small); }),
             ContainsSubstring("3 bytes, the object has 16"));
  CHECK_THROWS_AS(store.object(ObjectId{2}), hd::contract_error);
  CHECK_THROWS_AS(tier::Store({.file = file, .shape = {0, 0}}), hd::contract_error);
  CHECK_THROWS_AS(tier::Store({.file = file, .shape = {-1, 1}}), hd::contract_error);
  tier::StoreWriter writer(folder.file("twice"));
  writer.add("a", std::vector<double>{1, 2});
  CHECK_THAT(message_of<hd::contract_error>([&] { writer.add("a", std::vector<double>{1}); }),
             ContainsSubstring("the store has one of this name"));
  CHECK_THROWS_AS(writer.add("b", hd::Scalar::f64, std::span<const std::byte>(small)),
                  hd::contract_error);
  writer.finish();
  CHECK_THROWS_AS(writer.finish(), hd::contract_error);
  CHECK(tier::Store({.file = folder.file("twice")}).objects().size() == 1);
  CHECK_THROWS_AS(tier::StoreWriter(folder.file("none/weights")), hd::format_error);
}

}  // namespace test_store

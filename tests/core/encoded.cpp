// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Codecs, against their definition: the least power of two that fits, then the nearest value.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core.hpp>

#include "support/complaint.hpp"

namespace test_encoded {

using namespace heddle;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

double largest_of(Scalar type) {
  return type == Scalar::i8 ? 127 : type == Scalar::f8e4m3 ? 448 : 57344;
}

/// What arrives of `x` in a block whose largest magnitude is `most`, both finite.
double expected(double x, double most, Scalar type) {
  int exponent = -126;
  while (most > std::ldexp(largest_of(type), exponent)) ++exponent;
  const double scaled = std::ldexp(x, -exponent);
  const double value = type == Scalar::i8       ? std::nearbyint(scaled)
                       : type == Scalar::f8e4m3 ? static_cast<double>(f8e4m3(scaled))
                                                : static_cast<double>(f8e5m2(scaled));
  return std::ldexp(value, exponent);
}

template <class Wide>
struct Message {
  std::vector<std::byte> memory;
  Encoded encoded;

  explicit Message(Codec codec, std::size_t count, std::size_t together = 4096)
      : memory(heddle::impl::encoded_bytes(codec.type, codec.block, count)),
        encoded{memory.data(), codec.type, codec.block, count, together} {}

  void encode(const std::vector<Wide>& from, Wide* lost = nullptr, Wide* kept = nullptr) {
    const heddle::impl::Encode<Wide> body{encoded, from.data(), lost, kept};
    for (std::size_t call = 0; call < encoded.calls(); ++call) body(call);
  }
  std::vector<Wide> decode() {
    std::vector<Wide> into(encoded.count, Wide(-1));
    const heddle::impl::Decode<Wide> body{encoded, into.data()};
    for (std::size_t call = 0; call < encoded.calls(); ++call) body(call);
    return into;
  }
};

/// Numbers of very different size, so that blocks differ; the first ones are exact zeros.
template <class Wide>
std::vector<Wide> numbers(std::size_t count, int spread, int centre = 0) {
  const Random random(7, "codec");
  std::vector<Wide> result(count);
  for (std::size_t i = 3; i < count; ++i)
    result[i] = static_cast<Wide>(
        std::ldexp(random.uniform(2 * i) - 0.5,
                   static_cast<int>(random.below(2 * i + 1, 2 * spread + 1)) - spread + centre));
  return result;
}

const std::vector<Codec> with_scales = {
    {.type = Scalar::i8, .block = 1},      {.type = Scalar::i8, .block = 3},
    {.type = Scalar::i8, .block = 64},     {.type = Scalar::f8e4m3, .block = 32},
    {.type = Scalar::f8e5m2, .block = 65},
};

}  // namespace

static_assert(heddle::impl::encoded_bytes(Scalar::f16, 0, 7) == 14 &&
              heddle::impl::encoded_bytes(Scalar::i8, 0, 7) == 7);
static_assert(heddle::impl::encoded_bytes(Scalar::i8, 64, 0) == 0 &&
              heddle::impl::encoded_bytes(Scalar::i8, 64, 1) == 2);
static_assert(heddle::impl::encoded_bytes(Scalar::i8, 64, 64) == 65 &&
              heddle::impl::encoded_bytes(Scalar::i8, 64, 65) == 67);

TEMPLATE_TEST_CASE("a block arrives as its definition says, of any size and at any place", "",
                   float, double) {
  for (const Codec& codec : with_scales) {
    for (const std::size_t count : {0, 1, 2, 7, 63, 64, 65, 131, 1009}) {
      for (const auto& [spread, centre] : {std::pair{0, 0}, {3, 0}, {120, 0}, {20, -130}}) {
        const auto from = numbers<TestType>(count, spread, centre);
        Message<TestType> message(codec, count);
        message.encode(from);
        const auto into = message.decode();
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t first = i / codec.block * codec.block;
          double most = 0;
          for (std::size_t j = first; j < std::min(first + codec.block, count); ++j)
            most = std::max(most, std::abs(static_cast<double>(static_cast<float>(from[j]))));
          if (!(static_cast<double>(into[i]) == expected(from[i], most, codec.type)))
            FAIL(codec.type << '/' << codec.block << ", " << from[i] << " of " << most << ": "
                            << into[i] << ", " << expected(from[i], most, codec.type));
          // The bounds that Codec states.
          const double x = std::abs(static_cast<double>(from[i]));
          const double bound = codec.type == Scalar::i8 ? most / 127
                               : codec.type == Scalar::f8e4m3
                                   ? std::max(x / 16, most * std::exp2(-17.8))
                                   : std::max(x / 8, most * std::exp2(-31.8));
          if (most > std::ldexp(1, -110))
            REQUIRE(std::abs(static_cast<double>(into[i]) - from[i]) <= bound * (1 + 1e-7));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("what was decoded is encoded without a loss", "", float, double) {
  std::vector<Codec> codecs = with_scales;
  for (const Scalar plain : {Scalar::f16, Scalar::bf16, Scalar::f8e4m3, Scalar::f8e5m2, Scalar::i8})
    codecs.push_back({plain});
  for (const Codec& codec : codecs) {
    for (const int spread : {0, 3, 40, 120}) {
      Message<TestType> message(codec, 1009);
      message.encode(numbers<TestType>(1009, spread));
      const auto once = message.decode();
      message.encode(once);
      REQUIRE(message.decode() == once);
    }
  }
}

TEST_CASE("a block that just fits keeps its scale, one beyond takes the next") {
  for (const Scalar type : {Scalar::i8, Scalar::f8e4m3, Scalar::f8e5m2}) {
    const auto top = static_cast<float>(largest_of(type));
    const auto scale = [&](float most) {
      Message<float> message({.type = type, .block = 2}, 2);
      message.encode({most, -most});
      const auto into = message.decode();
      CHECK(into[0] == -into[1]);
      return std::to_integer<int>(message.memory[0]);
    };
    CHECK(scale(top) == 127);
    CHECK(scale(std::nextafter(top, infinity)) == 128);
    CHECK(scale(top / 2) == 126);
    CHECK(scale(0) == 1);
    CHECK(scale(std::numeric_limits<float>::denorm_min()) == 1);
    CHECK(scale(std::numeric_limits<float>::min()) == 1);
    CHECK(scale(std::numeric_limits<float>::max()) > 230);
  }
}

TEST_CASE("an infinity or a NaN spoils its own block and no other") {
  for (const Codec& codec : with_scales) {
    for (const float spoilt : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
      auto from = numbers<float>(200, 3);
      from[100] = spoilt;
      Message<float> message(codec, from.size());
      std::vector<float> lost(from.size()), kept(from.size());
      message.encode(from, lost.data(), kept.data());
      const auto into = message.decode();
      for (std::size_t i = 0; i < from.size(); ++i) {
        const bool same = i / codec.block == 100 / codec.block;
        CHECK(std::isnan(into[i]) == same);
        CHECK(std::isnan(kept[i]) == same);
        CHECK(std::isfinite(lost[i]));
        if (same) CHECK(lost[i] == 0);
      }
    }
  }
}

TEST_CASE("a double beyond the floats is an infinity") {
  Message<double> message({.type = Scalar::i8, .block = 4}, 8);
  message.encode({1, 2, 1e300, 3, 1, 2, 3, 4});
  const auto into = message.decode();
  CHECK((std::isnan(into[0]) && std::isnan(into[2])));
  CHECK((into[4] == 1 && into[7] == 4));
}

TEST_CASE("without blocks every element is cast on its own, however many at a time") {
  const std::vector<float> from = {0,
                                   1,
                                   -2.5F,
                                   3.5F,
                                   126.5F,
                                   127.4F,
                                   1000,
                                   -1000,
                                   infinity,
                                   -infinity,
                                   std::numeric_limits<float>::quiet_NaN()};
  for (const std::size_t together : {1, 2, 3, 4096}) {
    Message<float> whole({Scalar::i8}, from.size(), together);
    whole.encode(from);
    CHECK(whole.decode() == std::vector<float>{0, 1, -2, 4, 126, 127, 127, -127, 127, -127, 0});
    Message<float> half({Scalar::f16}, from.size(), together);
    half.encode(from);
    const auto into = half.decode();
    for (std::size_t i = 0; i + 1 < from.size(); ++i)
      CHECK(into[i] == static_cast<float>(f16(from[i])));
    CHECK(std::isnan(into.back()));
  }
  Message<double> wide({Scalar::f32}, 2);
  wide.encode({1.0 / 3, 1e300});
  CHECK(wide.decode() == std::vector<double>{static_cast<double>(1.0F / 3), HUGE_VAL});
}

TEST_CASE("with feedback nothing is lost but what the last message lost") {
  std::vector<Codec> codecs = with_scales;
  codecs.push_back({Scalar::bf16});
  for (const Codec& codec : codecs) {
    const std::size_t count = 131;
    Message<double> message(codec, count);
    std::vector<double> lost(count), sent(count), arrived(count);
    for (std::size_t step = 0; step < 50; ++step) {
      auto from = numbers<double>(count, 3);
      std::rotate(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(step), from.end());
      message.encode(from, lost.data());
      const auto into = message.decode();
      for (std::size_t i = 0; i < count; ++i) {
        sent[i] += from[i];
        arrived[i] += into[i];
        // Sums of 100 terms below 2^3 in double.
        REQUIRE(std::abs(arrived[i] + lost[i] - sent[i]) < 100 * 8 * 1e-15);
      }
    }
  }
}

TEST_CASE("what the sender keeps is what arrives, and messages are merged as they come") {
  for (const Codec& codec : with_scales) {
    auto from = numbers<float>(131, 3);
    const std::vector<float> before = from;
    Message<float> message(codec, from.size());
    message.encode(from, nullptr, from.data());
    CHECK(from == message.decode());
    CHECK(from != before);
    std::vector<float> sums(from.size(), 2);
    const heddle::impl::CombineDecoded<float, heddle::impl::AddNumber> body{
        message.encoded, sums.data(), {}};
    for (std::size_t call = 0; call < message.encoded.calls(); ++call) body(call);
    for (std::size_t i = 0; i < sums.size(); ++i) CHECK(sums[i] == 2 + from[i]);
  }
}

TEST_CASE("a codec that cannot be is refused") {
  const auto why = [](Codec codec) {
    return test::message_of<contract_error>([&] { check(codec); });
  };
  CHECK(why({Scalar::byte}).find("elements of Scalar::byte have no numeric value to encode") !=
        std::string::npos);
  CHECK(why({.type = Scalar::f16, .block = 8})
            .find("only one-byte types can have a scale per block of elements (type f16, "
                  "blocks of 8)") != std::string::npos);
  for (const Scalar type : {Scalar::i8, Scalar::f8e4m3, Scalar::f8e5m2}) check({type, 64});
  check(Codec{});
}

}  // namespace test_encoded

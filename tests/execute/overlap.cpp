// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Products beside collectives, executed over threads: the same bits whole and in parts, over links
// that take their time too. Over MPI: examples/15_overlap.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

namespace test_overlap {

using namespace heddle;
using schedule::Algorithm;
using schedule::Collective;
using schedule::overlap;
using schedule::PartOrder;

namespace {

/// Of the product on every rank: rows of all ranks x depth x columns.
struct Shape3 {
  std::size_t rows, depth, columns;
};

double operand(std::size_t rank, std::size_t i) { return Random(rank, "operand").uniform(i) - 0.5; }
double weight(std::size_t rank, std::size_t i) { return Random(rank, "weight").uniform(i) - 0.5; }

/// A row times a column of the weights of a rank. One function, that the compiler rounds in one
/// way.
[[gnu::noinline]] double dot(std::span<const double> row, std::size_t rank, std::size_t column,
                             std::size_t columns) {
  double sum = 0;
  for (std::size_t k = 0; k < row.size(); ++k) sum += row[k] * weight(rank, k * columns + column);
  return sum;
}

/// One rank of the pair: rows times its weights.
struct Product {
  std::size_t rank;
  std::size_t depth, columns;
  int parts = 0;  ///< that it did the product in

  void operator()(const Task& task) {
    if (task.kind() == Kind::combine) return combine_on_host(task);
    if (task.kind() == Kind::move) {  // within the rank
      const std::span<double> from = task.get<double>("input"), to = task.get<double>("output");
      for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i];
      return;
    }
    ++parts;
    const auto side = [&](std::string_view label, std::string_view other) {
      return task.get<double>(task.has(label) ? label : other);
    };
    const bool makes = task.has("operand");
    const std::span<double> a = makes ? task.get<double>("operand") : side("data", "output");
    const std::span<double> c = makes ? task.get<double>("data") : task.get<double>("result");
    expects(a.size() * columns == c.size() * depth, [] {
      return ErrorInfo{"Product", "rows and results do not match"};
    });
    for (std::size_t i = 0; i < c.size(); ++i)
      c[i] = dot(a.subspan(i / columns * depth, depth), rank, i % columns, columns);
  }
};

/// The persistent storage of a rank, and how the run went.
struct Outcome {
  std::vector<std::vector<double>> data;
  int parts = 0;
  int sent = 0;

  friend bool operator==(const Outcome& a, const Outcome& b) { return a.data == b.data; }
};

/// `list` over threads, over shaped links where there is one.
std::vector<Outcome> run(const Schedule& list, const Shape3& shape,
                         std::optional<Link> link = std::nullopt) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(list.ranks()));
  const auto on = [&](auto& transport) {
    const std::size_t rank = +transport.rank();
    Outcome& outcome = outcomes[rank];
    std::vector<std::vector<double>> scratch(list.buffers().size());
    std::vector<std::size_t> kept;
    const auto bind = [&](BufferId id, const Buffer& buffer) {
      std::vector<double>& memory = scratch[+id];
      memory.resize(buffer.bytes / sizeof(double));
      const std::string& label = list[buffer.label];
      for (std::size_t i = 0; i < memory.size(); ++i)
        memory[i] = label == "scratch" ? 0 : operand(rank, i);
      if (label != "scratch") kept.push_back(+id);
      return reinterpret_cast<std::byte*>(memory.data());
    };
    const Program program = slice(list, transport.rank(), bind);
    for (const Program::Step& step : program.steps)
      outcome.sent += step.does == Program::Step::Does::send;
    Product product{rank, shape.depth, shape.columns};
    execute(program, product, transport);
    outcome.parts = product.parts;
    for (const std::size_t id : kept) outcome.data.push_back(std::move(scratch[id]));
  };
  run_threads(list.ranks(), [&](ThreadTransport& inner) {
    if (!link) return on(inner);
    ShapedTransport shaped(inner, {.link = [&](Rank, Rank, Seconds) { return *link; }});
    on(shaped);
  });
  return outcomes;
}

/// The product beside `collective`: what it makes has `columns` to a row, what it reads `depth`.
Schedule pair(Collective collective, Algorithm algorithm, int ranks, const Shape3& shape,
              int chunks = 1) {
  const bool makes = collective == Collective::reduce_scatter;
  const Bytes made = shape.columns * sizeof(double), read = shape.depth * sizeof(double);
  return schedule::with_product(collective, algorithm,
                                {.ranks = ranks,
                                 .bytes = shape.rows * (makes ? made : read),
                                 .element = makes ? made : read,
                                 .chunks = chunks},
                                makes ? read : made);
}

constexpr Shape3 shapes[] = {{0, 3, 2}, {1, 1, 1}, {2, 5, 3}, {7, 4, 5}, {24, 16, 8}, {53, 7, 1}};

}  // namespace

TEST_CASE("products beside collectives over threads: the same bits whole, in parts, in any order") {
  for (int p = 1; p <= 4; ++p)
    for (const Shape3& shape : shapes)
      for (const int chunks : {1, 2})
        for (const auto& [collective, algorithm] :
             {std::pair{Collective::reduce_scatter, Algorithm::ring},
              {Collective::reduce_scatter, Algorithm::direct},
              {Collective::all_gather, Algorithm::ring},
              {Collective::all_to_all, Algorithm::direct}}) {
          const Schedule serial = pair(collective, algorithm, p, shape, chunks);
          const std::vector<Outcome> expected = run(serial, shape);
          for (const PartOrder order : {PartOrder::as_needed, PartOrder::ascending}) {
            const std::vector<Outcome> found = run(overlap(serial, order), shape);
            REQUIRE(found == expected);
            for (std::size_t r = 0; r < found.size(); ++r) {
              REQUIRE(expected[r].parts == 1);
              REQUIRE(found[r].parts == p * chunks);
              REQUIRE(found[r].sent == expected[r].sent);
            }
          }
        }
}

TEST_CASE("a product and a ring's reduce-scatter leave the sums of one rank, in the ring's order") {
  for (int p = 1; p <= 4; ++p)
    for (const Shape3& shape : shapes) {
      const Schedule list = overlap(pair(Collective::reduce_scatter, Algorithm::ring, p, shape));
      const std::vector<Outcome> found = run(list, shape);
      const auto ranks = static_cast<std::size_t>(p);
      for (std::size_t r = 0; r < ranks; ++r) {
        const Buffer& data = list[BufferId{r}];
        const auto block = static_cast<std::uint32_t>(r);
        const std::size_t end = schedule::part_offset(data, block + 1) / sizeof(double);
        for (std::size_t i = schedule::part_offset(data, block) / sizeof(double); i < end; ++i) {
          const auto partial = [&](std::size_t rank) {
            std::vector<double> row;
            for (std::size_t k = 0; k < shape.depth; ++k)
              row.push_back(operand(rank, i / shape.columns * shape.depth + k));
            return dot(row, rank, i % shape.columns, shape.columns);
          };
          // x[r + 1], x[r + 2], ..., x[r], around, as ring_reduce_scatter() says.
          double sum = partial((r + 1) % ranks);
          for (std::size_t step = 2; step <= ranks && ranks > 1; ++step)
            sum = partial((r + step) % ranks) + sum;
          REQUIRE(found[r].data[0][i] == sum);
        }
      }
    }
}

TEST_CASE("a rank sends P - 1 messages of a product, of (P - 1)/P of its bytes, over slow links") {
  for (int p = 2; p <= 4; ++p) {
    const Shape3 shape{static_cast<std::size_t>(6 * p), 5, 3};
    for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather}) {
      const Schedule serial = pair(collective, Algorithm::ring, p, shape);
      const std::vector<Outcome> expected = run(serial, shape);
      const std::vector<Outcome> found =
          run(overlap(serial), shape, Link{.latency = 2e-3, .bandwidth = 1e6});
      CHECK(found == expected);
      for (const Outcome& outcome : found) CHECK(outcome.sent == p - 1);
    }
  }
}

}  // namespace test_overlap

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Several clients share the ranks of one machine. Each client calls functions on distributed
// tensors and gets futures before anything has run. All ranks run the programs in one order, so the
// sums over all ranks of two clients cannot wait for each other. An error in a function arrives at
// the futures that depend on it, and disturbs nobody else.
//
//   mpiexec -n 4 example_18_clients     (or any other number of ranks)

#include <cstddef>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <heddle/heddle.hpp>
#include <heddle/systems/pathways/future.hpp>
#include <heddle/systems/pathways/gang_order.hpp>
#include <heddle/systems/pathways/island.hpp>
#include <heddle/systems/pathways/island_client.hpp>

namespace hd = heddle;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Tensor = hd::Sharded<double*, Exec>;

constexpr int elements = 8;

/// Returns a function that applies `each` to the elements that a rank has.
template <class Each>
auto on_each(Each each) {
  return [each](const Tensor& in, Tensor& out) {
    for (std::size_t i = 0; i < out.parts().size(); ++i) out.parts()(i) = each(in.parts()(i));
  };
}

Tensor::View filled(double value) {
  const Tensor::View all("all", elements);
  Kokkos::deep_copy(all, value);
  return all;
}

/// What the clients found. Rank 0 prints it when they have ended.
struct Found {
  std::vector<double> chained, summed;
  std::string failure;
};

void run(const hd::DeviceMesh& mesh) {
  const int ranks = mesh.size();
  const hd::Rank first = 0, last{ranks - 1};
  const hd::MeshShape one{{"one", 1}};
  const hd::Layout rows(mesh.shape(), {elements}, {hd::Shard{0}});
  const hd::Layout begin(one, {elements}, {hd::Replicate{}}, {first});
  const hd::Layout end(one, {elements}, {hd::Replicate{}}, {last});

  hd::systems::Island island(mesh, {.policy = hd::systems::GangPolicy::share});
  // All ranks add the same functions.
  const auto x = island.input<Tensor>("x", begin);
  const auto layer_a = island.add<Tensor(Tensor)>("layer_a", {begin}, begin,
                                                  on_each([](double v) { return v + 1; }));
  const auto layer_b =
      island.add<Tensor(Tensor)>("layer_b", {end}, end, on_each([](double v) { return 10 * v; }));
  const auto copies = rows.with({hd::Replicate{}});
  const auto sum = island.add<Tensor(Tensor)>("sum", {copies}, rows.with({hd::Partial{}}),
                                              on_each([](double v) { return v; }));
  const auto check = island.add<Tensor(Tensor)>("check", {rows}, rows, on_each([](double v) {
                                                  if (v < 0) throw std::range_error("below 0");
                                                  return v;
                                                }));

  Found found;
  const auto chain = [&](hd::systems::IslandClient& client) {
    std::vector<hd::systems::Future<Tensor>> results;
    for (int batch = 0; batch < 3; ++batch) {
      const auto y = client.call(layer_a, client.put(x, filled(batch)));  // on the first rank
      results.push_back(client.call(layer_b, y));                         // on the last one
      client.start();  // without it, the batches would be one program
    }
    for (const auto& result : results) found.chained.push_back(client.get(result)(0));
  };
  const auto sums = [&](hd::systems::IslandClient& client) {
    const auto one_each = client.put(x, filled(1));
    const auto once = client.call(sum, one_each), twice = client.call(sum, once);
    found.summed = {client.get(once)(0), client.get(twice)(0)};
    const auto checked = client.call(check, client.put(x, filled(-1)));
    try {
      (void)client.get(client.call(sum, checked));
    } catch (const hd::communication_error& error) {
      found.failure = error.what();
    }
  };
  std::vector<hd::systems::IslandClientSpec> mine;
  if (mesh.rank() == first) mine = {{"chain", 2, chain}, {"sums", 1, sums}};
  island.serve(std::move(mine));  // returns when all clients of all ranks have ended

  if (mesh.rank() != first) return;
  std::cout << "chained:";
  for (const double value : found.chained) std::cout << ' ' << value;
  std::cout << "\nsummed over " << ranks << " ranks, once and twice:";
  for (const double value : found.summed) std::cout << ' ' << value;
  std::cout << "\nfailed: " << found.failure << '\n';
  std::cout << island.counts().programs << " programs, " << island.counts().dispatches
            << " dispatch messages\n";
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", hd::Communicator(MPI_COMM_WORLD).size()}});
  run(mesh);
}

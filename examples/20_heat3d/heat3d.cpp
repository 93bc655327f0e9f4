// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Heat spreads in a block whose surface is kept cold, on every mesh that the ranks can form. Each
// rank has a box of the block, with a halo of its neighbours' elements. The result is compared bit
// by bit with that of one rank.
//
//   mpiexec -n 4 example_20_heat3d                     (or any other number of ranks)
//   mpiexec -n 4 example_20_heat3d --grid 64,32,16     another block
//   mpiexec -n 4 example_20_heat3d --pictures FOLDER   writes heat.vtk and heat.png there

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/device/mirror.hpp>
#include <heddle/tensor/halo.hpp>
#include <heddle/tensor/redistribute.hpp>
#include <heddle/trace/png.hpp>

#include "options.hpp"
#include "results.hpp"
#include "space.hpp"

namespace hd = heddle;
using examples::Space;
using Grid = hd::Sharded<double***, Space>;
using View = Grid::View;

namespace {

constexpr int steps = 40;

/// The number of elements of the block along x, y and z.
using Sizes = std::vector<std::int64_t>;
std::size_t extent(const Sizes& sizes, std::size_t dim) {
  return static_cast<std::size_t>(sizes[dim]);
}

/// The elements inside a halo of 1, numbered.
struct Inside {
  std::size_t y = 0, z = 0;
  KOKKOS_FUNCTION std::size_t i(std::size_t number) const { return number / (y * z) + 1; }
  KOKKOS_FUNCTION std::size_t j(std::size_t number) const { return number / z % y + 1; }
  KOKKOS_FUNCTION std::size_t k(std::size_t number) const { return number % z + 1; }
};

/// Each step moves a fraction of every temperature difference.
struct Flow {
  View now, next;
  Inside inside;
  KOKKOS_FUNCTION void operator()(std::size_t number) const {
    const std::size_t i = inside.i(number), j = inside.j(number), k = inside.k(number);
    next(i, j, k) = now(i, j, k) + 0.125 * (now(i - 1, j, k) + now(i + 1, j, k) + now(i, j - 1, k) +
                                            now(i, j + 1, k) + now(i, j, k - 1) + now(i, j, k + 1) -
                                            6 * now(i, j, k));
  }
};

/// Heats one corner of the block at the start.
struct Heat {
  View grid;
  Inside inside;
  std::size_t hot_x = 0, hot_y = 0, hot_z = 0;  // elements of the corner
  std::size_t x0 = 0, y0 = 0, z0 = 0;           // of the first element in the block
  KOKKOS_FUNCTION void operator()(std::size_t number) const {
    const std::size_t i = inside.i(number), j = inside.j(number), k = inside.k(number);
    const bool hot = x0 + i <= hot_x && y0 + j <= hot_y && z0 + k <= hot_z;
    grid(i, j, k) = hot ? 100 : 0;
  }
};

/// Makes all steps from `now`, and calls `exchange(now)` before each. Returns the array of the last
/// step.
template <class Grids, class ViewOf, class Exchange>
Grids run(const Sizes& sizes, Grids now, Grids next, const std::size_t (&first)[3],
          ViewOf&& view_of, Exchange&& exchange) {
  const View view = view_of(now);
  const bool some = view.extent(0) > 2 && view.extent(1) > 2 && view.extent(2) > 2;
  const Inside inside{view.extent(1) - 2, view.extent(2) - 2};
  const Kokkos::RangePolicy<Space> all(
      0, some ? (view.extent(0) - 2) * inside.y * inside.z : std::size_t{0});
  const auto hot = [&](std::size_t dim) {
    return std::max(extent(sizes, dim) / 2, std::size_t{1});
  };
  Kokkos::parallel_for("example::heat", all,
                       Heat{view, inside, hot(0), hot(1), hot(2), first[0], first[1], first[2]});
  for (int step = 0; step < steps; ++step) {
    exchange(now);
    Kokkos::parallel_for("example::flow", all, Flow{view_of(now), view_of(next), inside});
    std::swap(now, next);
  }
  Kokkos::fence("example::steps");
  return now;
}

/// Computes the result on one rank, without a mesh.
std::vector<double> serial(const Sizes& sizes) {
  const std::size_t nx = extent(sizes, 0), ny = extent(sizes, 1), nz = extent(sizes, 2);
  const View now("example::now", nx + 2, ny + 2, nz + 2),
      next("example::next", nx + 2, ny + 2, nz + 2);
  const View last = run(
      sizes, now, next, {0, 0, 0}, [](const View& view) { return view; }, [](const View&) {});
  const auto host = hd::host_mirror(last);
  Kokkos::deep_copy(host, last);
  std::vector<double> result;
  for (std::size_t i = 1; i <= nx; ++i)
    for (std::size_t j = 1; j <= ny; ++j)
      for (std::size_t k = 1; k <= nz; ++k) result.push_back(host(i, j, k));
  return result;
}

/// Returns the first index of a dimension that this rank has.
std::size_t first_of(const Grid& grid, std::size_t dim) {
  const hd::IndexSet indices = grid.indices(dim);
  return indices.size() == 0 ? 0 : static_cast<std::size_t>(indices[0]);
}

/// Computes the result on a mesh, and returns all of it on every rank.
std::vector<double> on(const hd::DeviceMesh& mesh, const Sizes& sizes) {
  const std::vector<hd::Placement> boxes = {hd::Shard{0, {}, 1}, hd::Shard{1, {}, 1},
                                            hd::Shard{2, {}, 1}};
  const Grid now(mesh, sizes, boxes), next(mesh, sizes, boxes);
  hd::Halo halo(now, {.corners = false});
  const Grid last = run(
      sizes, now, next, {first_of(now, 0), first_of(now, 1), first_of(now, 2)},
      [](const Grid& grid) { return grid.view(); },
      [&](const Grid& grid) { halo.exchange(Space{}, grid); });
  const Grid whole = hd::redistribute(last, {hd::Replicate{}, hd::Replicate{}, hd::Replicate{}});
  const auto host = hd::host_mirror(whole.view());
  Kokkos::deep_copy(host, whole.view());
  return {host.data(), host.data() + host.size()};
}

/// Writes the legacy text format of VTK, for example for ParaView.
std::string to_vtk(const Sizes& sizes, const std::vector<double>& grid) {
  std::string file = hd::text(
      "# vtk DataFile Version 3.0\nheat\nASCII\nDATASET STRUCTURED_POINTS\n", "DIMENSIONS ",
      sizes[2], ' ', sizes[1], ' ', sizes[0], "\nORIGIN 0 0 0\nSPACING 1 1 1\nPOINT_DATA ",
      grid.size(), "\nSCALARS degrees double 1\nLOOKUP_TABLE default\n");
  for (const double degrees : grid) {  // the fewest digits from which the same number is read
    char digits[32];
    file.append(digits, std::to_chars(digits, std::end(digits), degrees).ptr) += '\n';
  }
  return file;
}

/// Writes the middle slice of the hot part, from black over red and yellow to white.
std::string to_picture(const Sizes& sizes, const std::vector<double>& grid) {
  const std::size_t nx = extent(sizes, 0), ny = extent(sizes, 1), nz = extent(sizes, 2);
  const std::span<const double> slice = std::span(grid).subspan(nx / 4 * ny * nz, ny * nz);
  const double hottest = std::max(1e-300, *std::max_element(slice.begin(), slice.end()));
  constexpr std::size_t zoom = 8;
  std::vector<hd::trace::Pixel> pixels;
  for (std::size_t row = 0; row < ny * zoom; ++row)
    for (std::size_t column = 0; column < nz * zoom; ++column) {
      const double heat = 3 * slice[row / zoom * nz + column / zoom] / hottest;
      const auto part = [&](double from) {
        return static_cast<std::uint8_t>(255 * std::clamp(heat - from, 0.0, 1.0));
      };
      pixels.push_back({part(0), part(1), part(2)});
    }
  return hd::trace::to_png(nz * zoom, pixels);
}

/// Compares all meshes with one rank. Returns the exit status.
int compare(const hd::Communicator& world, const Sizes& sizes, const std::string& pictures) {
  const bool speaks = world.rank() == 0;
  const std::vector<double> meant = serial(sizes);
  std::vector<double> result;
  std::size_t wrong = 0;
  for (int x = 1; x <= world.size(); ++x)
    for (int y = 1; y * x <= world.size(); ++y) {
      if (world.size() % (x * y) != 0) continue;
      const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"x", x}, {"y", y}, {"z", world.size() / x / y}});
      result = on(mesh, sizes);
      std::size_t different = 0;
      for (std::size_t i = 0; i < meant.size(); ++i)
        different += std::memcmp(&result[i], &meant[i], sizeof meant[i]) == 0 ? 0u : 1u;
      wrong += different;
      if (speaks)
        std::cout << mesh.shape() << ": " << different << " of " << result.size()
                  << " elements differ from one rank's\n";
    }
  if (speaks) {
    std::cout << "hottest after " << steps
              << " steps: " << *std::max_element(result.begin(), result.end()) << '\n';
    examples::write_results("heat3d", std::span(result.data(), result.size()), 1e-10);
    if (!pictures.empty()) {
      hd::write_file(pictures + "/heat.vtk", to_vtk(sizes, result));
      hd::write_file(pictures + "/heat.png", to_picture(sizes, result));
      std::cout << "wrote heat.vtk and heat.png to " << pictures << '\n';
    }
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  const hd::Communicator world(MPI_COMM_WORLD);
  try {
    Sizes sizes = {23, 19, 17};  // primes: no mesh divides them
    std::string pictures;
    examples::Options options("Heat in a block, on every mesh that the ranks make.");
    options.add("grid", sizes, "elements along x, y and z, as in 23,19,17");
    options.add("pictures", pictures, "folder for heat.vtk and heat.png");
    if (!options.parse(argc, argv)) {
      if (world.rank() == 0) std::cout << options.help();
      return 0;
    }
    hd::expects(sizes.size() == 3 && *std::min_element(sizes.begin(), sizes.end()) >= 1, [] {
      return hd::ErrorInfo{"command line",
                           "a block has three sizes, of at least 1 each",
                           {},
                           "give them as in --grid 23,19,17"};
    });
    return compare(world, sizes, pictures);
  } catch (const std::exception& error) {
    // An error that all ranks have is printed once.
    const bool shared = dynamic_cast<const hd::contract_error*>(&error) != nullptr;
    if (world.rank() == 0 || !shared) std::cerr << "heat3d: " << error.what() << '\n';
    return 1;
  }
}

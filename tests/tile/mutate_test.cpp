// What a careless hand does to a tile's text is refused with its place, or is a tile that can be
// printed, interpreted and compiled.
#include <algorithm>

#include "tests/catch.h"
#include "tests/fuzz/layouts.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/random_graph.h"
#include "tests/tile/random_points.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/cpp_toolchain.h"
#include "tiny_compile/runtime/executable.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tile/interpreter.h"

using namespace tiny_compile;

namespace {

// The tiles of the first program from this seed on that has some.
Tiles some_tiles(uint64_t seed) {
  while (true) {
    const Tiles tiles = run_pipeline(until(layouts_pipeline(), "tile"), random_graph(seed, 6),
                                     true, Target::Cuda)
                            .tiles;
    if (has_tile(tiles)) return tiles;
    seed += 1000003;
  }
}

// The same of points on a CPU.
Tiles some_points(uint64_t seed) {
  while (true) {
    const Tiles tiles = lower_to_tiles(random_points(seed, 6));
    if (has_tile(tiles)) return tiles;
    seed += 1000003;
  }
}

// Statements that a block does, about; on a CPU, at most.
double work(const Body& body) {
  double all = 0;
  for (const Statement& s : body) {
    const double times =
        s.kind == StatementKind::For ? static_cast<double>(s.place.constant()) : 1;
    all += 1 + times * work(s.body);
  }
  return all;
}

bool is_short(const Tiles& tiles) {
  return std::all_of(tiles.of_kernel.begin(), tiles.of_kernel.end(), [](const auto& tile) {
    return !tile ||
           work(tile->body) * static_cast<double>(tile->grid.constant()) * tile->warps < 20000;
  });
}

// The mutant; none where it is refused, with a place.
std::optional<Tiles> mutant(const Tiles& tiles, uint64_t seed) {
  const std::string program = print(tiles.program), text = print(tiles);
  try {
    return parse_tiles(program + mutated(text.substr(program.size()), seed));
  } catch (const Error& error) {
    const std::string why = error.what();
    const bool has_place =
        why.find("line ") == 0 || why.find("but no tile") != std::string::npos;
    if (!has_place) FAIL_CHECK("seed " << seed << ": " << why);
    return std::nullopt;
  }
}

struct Counts {
  int refused = 0, accepted = 0, ran = 0;
};

// One that has tiles, and others than these.
std::optional<Tiles> other_tiles(const Tiles& tiles, uint64_t seed, Counts& counts) {
  const std::optional<Tiles> other = mutant(tiles, seed);
  (other ? counts.accepted : counts.refused)++;
  if (!other) return std::nullopt;
  CHECK(parse_tiles(print(*other)) == *other);
  return *other == tiles || !has_tile(*other) ? std::nullopt : other;
}

}  // namespace

TEST_CASE("mutated tiles are refused, or print, parse and run", "[tile][fuzz]") {
  Counts counts;
  std::vector<Tiles> compiled;
  for (uint64_t seed = 1; seed <= 1500; seed++) {
    INFO("seed " << seed);
    const std::optional<Tiles> other = other_tiles(some_tiles(seed / 10), seed, counts);
    if (!other) continue;
    if (compiled.size() < 40) compiled.push_back(*other);
    if (!is_short(*other)) continue;
    counts.ran++;
    try {
      interpret(*other, seeded_inputs(other->program, seed, {}));
    } catch (const Error&) {  // a race, or an element stored twice
    }
  }
  CHECK(counts.refused > 300);
  CHECK(counts.accepted > 100);
  CHECK(counts.ran > 50);
  if (!why_no_nvrtc().empty()) return;
  for (const Tiles& tiles : compiled) {
    INFO(print(tiles));
    CHECK_NOTHROW(compile_cuda(emit(tiles).text, "sm_90"));
  }
}

TEST_CASE("mutated tiles of points are refused, or print, parse and run",
          "[tile][points][fuzz]") {
  Counts counts;
  int compiled = 0;
  for (uint64_t seed = 1; seed <= 600; seed++) {
    INFO("seed " << seed);
    const std::optional<Tiles> other = other_tiles(some_points(seed / 10), seed, counts);
    if (!other || !is_short(*other)) continue;
    counts.ran++;
    const std::vector<Tensor> inputs = seeded_inputs(other->program, seed, {});
    try {
      interpret(*other, inputs);
    } catch (const Error&) {  // an element stored twice
    }
    if (compiled == 12) continue;
    compiled++;
    const Source source = emit(*other);
    const Executable executable(other->program, source,
                                build_cpp(source.text, default_toolchain()));
    try {
      executable.run(inputs);
    } catch (const Error&) {  // an index out of range
    }
  }
  CHECK(counts.refused > 100);
  CHECK(counts.accepted > 60);
  CHECK(counts.ran > 30);
}

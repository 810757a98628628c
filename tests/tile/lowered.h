// Programs as a GPU's tiles, and what their interpreter gives.
#pragma once

#include "tests/catch.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/tiles.h"

namespace tiny_compile::lowered {

inline Tiles tiles_of(const std::string& graph) {
  return run_pipeline(until(default_pipeline(), "tile"), parse_graph(graph), true, Target::Cuda)
      .tiles;
}

// Tiles mean what their kernels do, and read back as they print.
inline void check_bits(const Tiles& tiles) {
  const std::vector<Tensor> inputs = seeded_inputs(tiles.program, 7, {});
  const std::vector<Tensor> want = interpret(tiles.program, inputs),
                            got = interpret(tiles, inputs);
  REQUIRE(want.size() == got.size());
  for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(want[k], got[k]));
  CHECK(parse_tiles(print(tiles)) == tiles);
}

// The same, where all kernels are tiles.
inline void check_tiles(const Tiles& tiles) {
  for (const std::optional<Tile>& tile : tiles.of_kernel) CHECK(tile.has_value());
  check_bits(tiles);
}

inline std::string without(std::string text, const std::string& line, size_t from = 0) {
  const size_t at = text.find(line, from);
  REQUIRE(at != std::string::npos);
  return text.erase(at, line.size());
}

// What the interpreter says of an edited text; "" where nothing is wrong.
inline std::string error_of(const std::string& text) {
  try {
    const Tiles tiles = parse_tiles(text);
    interpret(tiles, seeded_inputs(tiles.program, 7, {}));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace tiny_compile::lowered

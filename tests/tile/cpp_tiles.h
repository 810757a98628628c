// Tiles of a CPU, as C++.
#pragma once

#include "tiny_compile/runtime/cpp_toolchain.h"
#include "tiny_compile/runtime/executable.h"
#include "tiny_compile/tiny_compile.h"

namespace tiny_compile {

inline std::vector<Tensor> run(const Tiles& tiles, const Source& source,
                               const std::vector<Tensor>& inputs) {
  return Executable(tiles.program, source, build_cpp(source.text, default_toolchain()))
      .run(inputs);
}

inline std::vector<Tensor> run(const Tiles& tiles, const std::vector<Tensor>& inputs) {
  return run(tiles, emit(tiles), inputs);
}

inline bool all_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  bool same = a.size() == b.size();
  for (size_t k = 0; same && k < a.size(); k++) same = same_bits(a[k], b[k]);
  return same;
}

}  // namespace tiny_compile

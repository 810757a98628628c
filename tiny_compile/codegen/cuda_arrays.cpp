// How does an array of a tile read in CUDA C?
//
//   array sum2: f32[16]        =>  float sum2[16];
//   array out1: bool[4]        =>  bool out1[4] = {};
//   packed pack0: bf16[8]      =>  tc_kept<tc_bf16, 8> pack0 = {};
//   shared given0: f32[512]    =>  __shared__ alignas(16) float given0[512];
//   cluster sent0: f32[64]     =>  __shared__ alignas(16) float sent0[16];   of 4 blocks, element 9 in block 1 at 2
#include "tiny_compile/codegen/cuda_arrays.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"

namespace tiny_compile {
namespace {

constexpr int64_t kDeclared = 47 << 10;  // bytes of arrays, beside what awaits them

// Arrays begin at multiples of an access.
int64_t place_of_next(const Array& array) {
  return ceil_divide(bytes_of(array).constant(), 16) * 16;
}

// One of a block's behind `place` bytes of what the launch gives; where the next one begins.
int64_t declare(const CudaTile& t, const Array& array, int64_t place) {
  const int64_t size =
      array.size.constant() / (array.space == Space::Cluster ? t.tile.cluster : 1);
  const std::string type = array.packed ? c_type(array.dtype) : value_type(array.dtype);
  if (is_kept(array)) {
    t.out.line(str(t.text.calls("tc_kept"), "<", c_type(array.dtype), ", ", size, "> ",
                   array.name, " = {};"));
    return place;
  }
  if (array.space == Space::Shared && t.asked > 0) {
    t.out.line(str(type, "* const ", array.name, " = (", type, "*)(shared + ", place, ");"));
    return place + place_of_next(array);
  }
  // nvcc reads neighbours at once where it knows that they begin at a multiple of an access.
  const char* where = array.space == Space::Register ? "" : "__shared__ alignas(16) ";
  // A pack that ends early is copied with what is behind its end: a bool may not be anything there.
  const bool is_bool = array.space == Space::Register && array.dtype == DType::boolean;
  t.out.line(str(where, type, " ", array.name, "[", size, "]", is_bool ? " = {};" : ";"));
  return place;
}

// Bytes are counted as they arrive, from before the first block sends.
void expect_arrays(const CudaTile& t) {
  if (t.awaited.empty()) return;
  std::vector<std::string> bytes;
  for (int a : t.awaited) {
    const Array& array = t.tile.arrays[a];
    bytes.push_back(
        str(array.size.constant() / t.tile.cluster * size_of(compute_type(array.dtype))));
  }
  t.out.line(str("__shared__ unsigned long long barriers[", bytes.size(), "];"));
  t.out.line(str("const unsigned bytes[] = {", join(bytes, ", "), "};"));
  t.out.line(t.text.calls("tc_expect") + "(barriers, bytes);");
}

std::string barrier_of(const CudaTile& t, int array) {
  const auto at = std::find(t.awaited.begin(), t.awaited.end(), array);
  return str("&barriers[", at - t.awaited.begin(), "]");
}

}  // namespace

bool is_kept(const Array& array) { return array.packed && array.space == Space::Register; }

int64_t asked_bytes(const Tile& tile) {
  int64_t all = 0, bytes = 0;
  for (const Array& array : tile.arrays) {
    if (array.space == Space::Register) continue;
    (array.space == Space::Shared ? bytes : all) += place_of_next(array);
  }
  return all + bytes > kDeclared ? bytes : 0;
}

void declare_arrays(const CudaTile& t) {
  if (t.asked > 0) t.out.line(str(t.text.calls("TC_SHARED"), "(shared, ", t.asked, ");"));
  int64_t place = 0;
  for (const Array& array : t.tile.arrays) place = declare(t, array, place);
  expect_arrays(t);
}

std::string array_element(const CudaTile& t, int array, const Expr& index) {
  const Array& a = t.tile.arrays[array];
  const ScalarWriter& scalars = t.text.scalars;
  if (is_kept(a)) return str(a.name, ".at(", scalars.index(index), ")");
  if (a.space != Space::Cluster) return str(a.name, "[", scalars.index(index), "]");
  const Expr block = mod(index, t.tile.cluster), place = floor_div(index, t.tile.cluster);
  const std::string own = str(a.name, "[", scalars.index(place), "]");
  if (block == rank_of(t.tile)) return own;
  t.text.calls("tc_cluster_barrier");
  return str("*tc_cluster_at(&", own, ", ", scalars.index(block), ")");
}

std::string read_array(const CudaTile& t, int array, const Expr& index) {
  const Array& a = t.tile.arrays[array];
  const std::string element = array_element(t, array, index);
  return a.packed && !is_kept(a) ? from_storage(t.text.calls, a.dtype, element) : element;
}

std::string read_element(const CudaTile& t, const Scalar& element) {
  const std::string own = read_array(t, element.step, element.index);
  if (element.limits.empty()) return own;
  return str("__shfl_xor_sync(0xffffffffu, ", own, ", ",
             t.text.scalars.index(element.limits[0]), ")");
}

void write_send(const CudaTile& t, const Statement& s) {
  const ScalarWriter& scalars = t.text.scalars;
  const Expr block = mod(s.index, t.tile.cluster), place = floor_div(s.index, t.tile.cluster);
  t.out.line(str("tc_send(&", t.tile.arrays[s.array].name, "[", scalars.index(place), "], ",
                 scalars.name(s.value), ", ", barrier_of(t, s.array), ", ",
                 scalars.index(block), ");"));
}

void write_await(const CudaTile& t, const Statement& s) {
  t.out.line(str("tc_await(", barrier_of(t, s.array), ");"));
}

}  // namespace tiny_compile

// What does a matrix product do all day? It multiplies packed panels: a tile of some rows by two
// vectors stays in registers while k runs, and each product is one fma, k ascending, as the
// contract asks. Everything else about a product (strides, windows, masks, dtypes) is packing.
//
//   for k: b0, b1 = 2 vectors of b[k]; for each of 6 rows: acc += broadcast(a[k][row]) * b
#include "tiny_compile/codegen/cpp_tile.h"

#include <algorithm>
#include <map>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/integer.h"

namespace tiny_compile {
namespace {

// Which memory is packed next: two lines of it are asked for at each step of the tile before, while
// there is enough to do. A line is 64 bytes; `steps` of them, a line's elements, are a group.
constexpr const char* kAhead = R"(
struct tc_ahead {
  const char* place;
  long long step, group, line;
  inline __attribute__((always_inline)) void ask(long long k, int steps) const {
    const char* const there = place + k % steps * step + k / steps * group;
    __builtin_prefetch(there, 0, 2);
    __builtin_prefetch(there + line, 0, 2);
  }
};
)";

// NAME is the suffix, TYPE the C type, BYTES a vector's, FMA one product of vectors. Of `a`, rows lie
// `lane` and steps `step` elements apart: a panel's rows side by side, those of a matrix as they are in
// memory.
constexpr const char* kTile = R"(
enum { tc_lanes_NAME = BYTES / (int)sizeof(TYPE) };
typedef TYPE tc_vector_NAME __attribute__((vector_size(BYTES), aligned(sizeof(TYPE))));

template <int rows, int vectors, long long lane, long long step>
static inline void tc_tile_NAME(const TYPE* a, const TYPE* b, long long depth, TYPE* c,
                                bool goes_on, const tc_ahead& ahead) {
  typedef tc_vector_NAME vector;
  constexpr int lanes = tc_lanes_NAME;
  vector sum[rows][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++)
      sum[i][v] = goes_on ? *(const vector*)(c + (i * vectors + v) * lanes) : (vector){};
  for (long long k = 0; k < depth; k++, a += step, b += vectors * lanes) {
    ahead.ask(k, 64 / sizeof(TYPE));
    vector right[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) right[v] = *(const vector*)(b + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
      const vector left = a[i * lane] - (vector){};
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) {
        FMA
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++)
      *(vector*)(c + (i * vectors + v) * lanes) = sum[i][v];
}
)";

constexpr const char* kTranspose = R"(
template <int width>
static inline void tc_transpose_NAME(const TYPE* from, long long depth, TYPE* to) {
  constexpr int lanes = tc_lanes_NAME;
  for (int l = (width - 1) / lanes * lanes; l >= 0; l -= lanes)  // what a row has too much
    for (long long k = 0; k < depth; k += lanes)                 // is overwritten
      tc_square_NAME(from + 64 * l + k, depth - k, to + k * width + l, width);
}
)";

// Halves of the lanes change places between vectors that lie so far apart: row i's upper half
// with row i + distance's lower one.
std::string exchange(int64_t lanes, int64_t distance, bool upper) {
  std::string text = "__builtin_shufflevector(x, y";
  for (int64_t lane = 0; lane < lanes; lane++) {
    const bool from_second = lane & distance;
    const int64_t there =
        from_second ? lanes + lane - (upper ? 0 : distance) : lane + (upper ? distance : 0);
    text += str(", ", there);
  }
  return text + ")";
}

// to[k][l] = from[l][k] for a square of vectors, of which `depth` are wanted.
std::string square(int64_t lanes) {
  std::string text = str(R"(
static inline void tc_square_NAME(const TYPE* from, long long depth, TYPE* to, int width) {
  tc_vector_NAME rows[)",
                         lanes, "];\n");
  const std::string each =
      str("#pragma GCC unroll 16\n  for (int i = 0; i < ", lanes, "; i++)");
  text += each + " rows[i] = *(const tc_vector_NAME*)(from + 64 * i);\n";
  for (int64_t distance = lanes / 2; distance > 0; distance /= 2)
    text +=
        each + str(" {\n    if (i & ", distance,
                   ") continue;\n    const tc_vector_NAME x = rows[i], y = rows[i + ", distance,
                   "];\n    rows[i] = ", exchange(lanes, distance, false), ";\n    rows[i + ",
                   distance, "] = ", exchange(lanes, distance, true), ";\n  }\n");
  return text + each +
         "\n    if (i < depth) *(tc_vector_NAME*)(to + i * width) = rows[i];\n}\n";
}

std::string fill(std::string text, const TileType& type, int64_t vector) {
  for (const auto& [what, by] : {std::pair{"FMA", type.fma},
                                 {"NAME", type.name},
                                 {"TYPE", type.type},
                                 {"BYTES", str(vector)}})
    text = replace_all(std::move(text), what, by);
  return text;
}

std::string fma_of(const std::string& suffix) {
  return "\n#if defined(__FMA__) && (BYTES < 64 || defined(__AVX512F__))\n        "
         "__asm__(\"vfmadd231" +
         suffix +
         " %2, %1, %0\" : \"+v\"(sum[i][v]) : \"v\"(left), \"v\"(right[v]));\n#else\n"
         "        for (int l = 0; l < lanes; l++)\n"
         "          sum[i][v][l] = tc_fma(left[l], right[v][l], sum[i][v][l]);\n#endif";
}

}  // namespace

int64_t most_tile_rows(const Machine& machine) {
  return machine.vector == 64 ? 12 : machine.vector == 32 ? 6 : 4;
}

int64_t tile_vectors(int64_t columns, int64_t lanes) {
  return columns <= 8 * lanes && ceil_divide(columns, lanes) % 2 == 1 ? 1 : 2;
}

int64_t tile_rows(int64_t rows, int64_t run, int64_t most) {
  for (int64_t r = std::min(most, rows); run > 1 && 2 * r > most; r--) {
    if (run % r == 0 || r % run == 0) return r;
  }
  const int64_t tiles = std::max<int64_t>(1, ceil_divide(rows, most));
  return std::max<int64_t>(1, ceil_divide(rows, tiles));
}

TileType tile_type(DType dtype) {
  switch (compute_type(dtype)) {
    case DType::f32: return {"float", "float", fma_of("ps")};
    case DType::f64: return {"double", "double", fma_of("pd")};
    case DType::i64:
    case DType::u64: return {"u64", "unsigned long long", "sum[i][v] += left * right[v];"};
    default: return {"u32", "unsigned", "sum[i][v] += left * right[v];"};
  }
}

std::string tile_helpers(const std::set<DType>& dtypes, int64_t vector) {
  std::map<std::string, std::string> texts;
  for (DType dtype : dtypes) {
    const TileType type = tile_type(dtype);
    const int64_t bytes = size_of(compute_type(dtype)) == 8 ? 8 : 4;
    texts[type.name] = fill(str(kTile, square(vector / bytes), kTranspose), type, vector);
  }
  std::string all = texts.empty() ? "" : kAhead;
  for (const auto& [name, text] : texts) all += text;
  return all;
}

}  // namespace tiny_compile

// What does a matrix product do all day? It multiplies packed panels: a tile of some rows by two
// vectors stays in registers while k runs, and each product is one fma, k ascending, as the
// contract asks. All else about a product is its tile program's (tile/panel_products).
//
//   for k: b0, b1 = 2 vectors of b[k]; for each of 6 rows: acc += broadcast(a[k][row]) * b
#include "tiny_compile/codegen/cpp_tile.h"

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

// NAME is the suffix, TYPE the C type, BYTES a vector's, FMA one product of vectors. Of `a`, rows lie
// `lane` and steps `step` elements apart: a panel's rows side by side, those of a matrix as they are in
// memory.
constexpr const char* kVector = R"(
typedef TYPE tc_vector_NAME __attribute__((vector_size(BYTES), aligned(sizeof(TYPE))));
)";

constexpr const char* kTile = R"(
template <int rows, int vectors, long long lane, long long step, typename Ask>
static inline void tc_tile_NAME(const TYPE* a, const TYPE* b, long long depth, TYPE* c, Ask ask) {
  typedef tc_vector_NAME vector;
  constexpr int lanes = BYTES / (int)sizeof(TYPE);
  vector sum[rows][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
      sum[i][v] = *(const vector*)(c + (i * vectors + v) * lanes);
  for (long long k = 0; k < depth; k++, a += step, b += vectors * lanes) {
    ask(k);
    vector right[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) right[v] = *(const vector*)(b + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
      const vector left = a[i * lane] - (vector){};
#pragma GCC unroll 8
      for (int v = 0; v < vectors; v++) {
        FMA
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
      *(vector*)(c + (i * vectors + v) * lanes) = sum[i][v];
}
)";

// A panel's whole vectors, and of its last lanes as many as it has.
constexpr const char* kTurnLines = R"(
template <int width>
static inline void tc_turn_lines_NAME(const TYPE* from, long long depth, TYPE* to) {
  constexpr int lanes = BYTES / (int)sizeof(TYPE), rest = width % lanes;
  for (long long k = 0; k < depth; k += lanes) {
    for (int l = 0; l + lanes <= width; l += lanes)
      tc_square_NAME<lanes>(from + 64 * l + k, depth - k, to + k * width + l, width);
    if (rest > 0)
      tc_square_NAME<rest ? rest : 1>(from + 64 * (width - rest) + k, depth - k,
                                      to + k * width + width - rest, width);
  }
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

// to[k][l] = from[l][k], l below `filled`, for a square of vectors, of which `depth` are wanted.
std::string square(int64_t lanes) {
  std::string text = str(R"(
template <int filled>
static inline void tc_square_NAME(const TYPE* from, long long depth, TYPE* to, int width) {
  tc_vector_NAME rows[)",
                         lanes, "];\n");
  const std::string each =
      str("#pragma GCC unroll 16\n  for (int i = 0; i < ", lanes, "; i++)");
  text += each +
          " rows[i] = *(const tc_vector_NAME*)(from + 64 * (i < filled ? i : filled - 1));\n";
  for (int64_t distance = lanes / 2; distance > 0; distance /= 2)
    text +=
        each + str(" {\n    if (i & ", distance,
                   ") continue;\n    const tc_vector_NAME x = rows[i], y = rows[i + ", distance,
                   "];\n    rows[i] = ", exchange(lanes, distance, false), ";\n    rows[i + ",
                   distance, "] = ", exchange(lanes, distance, true), ";\n  }\n");
  return text + each +
         "\n    if (i < depth) __builtin_memcpy(to + i * width, &rows[i], filled * "
         "sizeof(TYPE));\n}\n";
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

TileType tile_type(DType dtype) {
  switch (compute_type(dtype)) {
    case DType::f32: return {"float", "float", fma_of("ps")};
    case DType::f64: return {"double", "double", fma_of("pd")};
    case DType::i64:
    case DType::u64: return {"u64", "unsigned long long", "sum[i][v] += left * right[v];"};
    default: return {"u32", "unsigned", "sum[i][v] += left * right[v];"};
  }
}

std::string tile_helpers(Calls& calls, int64_t vector) {
  std::string all;
  for (DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    const TileType type = tile_type(dtype);
    const bool turns = calls.has("tc_turn_lines_" + type.name),
               multiplies = calls.has("tc_tile_" + type.name);
    if (multiplies && is_float(dtype)) calls("tc_fma");
    if (turns || multiplies) all += fill(kVector, type, vector);
    if (multiplies) all += fill(kTile, type, vector);
    if (turns) all += fill(square(vector / size_of(dtype)) + kTurnLines, type, vector);
  }
  return all;
}

}  // namespace tiny_compile

// Scans by the threads of a block, a group of 16 elements each: the interpreter's bits, thread by
// thread.
#include "tests/codegen/cuda_threads.h"
#include "tiny_compile/runtime/nvrtc.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kGroups = " values0[16];";  // of a thread that does not go on alone
constexpr const char* kThroughShared = " values0[k] = shared";

Out running(In i) { return {cumsum(i[0], -1)}; }

// The family is used; with a block of so many rows, where that is asked.
std::string check_tiles(const Function& function, const std::vector<Tensor>& inputs,
                        int64_t rows_a_block = 0) {
  const std::string text = check(function, inputs, "rows");
  CHECK_THAT(text, ContainsSubstring(kGroups) && ContainsSubstring(kThroughShared));
  if (rows_a_block > 1)
    CHECK_THAT(text, ContainsSubstring(str("block*", rows_a_block, " + y")));
  return text;
}

void check_serial(const Function& function, const std::vector<Tensor>& inputs,
                  const std::string& strategies = "rows") {
  CHECK_THAT(check(function, inputs, strategies), !ContainsSubstring(kGroups));
}

// Columns side by side: no shared memory but for totals.
std::string check_columns(const Function& function, const std::vector<Tensor>& inputs,
                          int64_t columns_a_block, const std::string& strategies = "columns") {
  const std::string text = check(function, inputs, strategies);
  CHECK_THAT(text, ContainsSubstring(kGroups) && !ContainsSubstring(kThroughShared));
  CHECK_THAT(text, ContainsSubstring(str("block*", columns_a_block, " + r")));
  return text;
}

void check_compiles(const std::string& text) {
  if (why_no_nvrtc().empty()) CHECK(compile_cuda(text, "sm_90").size() > 4);
}

Tensor numbers(const Sizes& shape, DType type) {
  const Tensor x = randn(shape);
  return is_float(type) ? x.to(type) : (x * 100.0).to(int64).to(type);
}

}  // namespace

TEST_CASE("running sums of every type, in tiles", "[codegen][threads][scan]") {
  manual_seed(1);
  for (DType type : {float32, float64, bfloat16, float16, int8, uint8, int32, int64}) {
    INFO(c_type(type));
    check_compiles(check_tiles(running, {numbers({5, 2096}, type)}));
    check_compiles(check_tiles(running, {numbers({5, 1001}, type)}));
  }
}

TEST_CASE("a block takes as many rows as leave every multiprocessor one",
          "[codegen][threads][scan]") {
  manual_seed(2);
  check_tiles(running, {randn({4096, 40})}, 42);  // 85 would leave 49 blocks
  check_tiles(running, {randn({4101, 600})}, 2);  // 96 threads, where each row is a tile
  check_tiles(running, {randn({2053, 300})}, 3);
  check_tiles(running, {randn({300, 521})}, 2);
  check_tiles(running, {randn({7, 17})}, 32);  // two warps at least
  check_tiles(running, {randn({4060, 333}).to(bfloat16)}, 3);
  check_tiles(running, {randn({4097, 264}).to(float16)}, 3);
  check_tiles(running, {randn({4098, 130}).to(float64)}, 28);
  check_tiles(running, {numbers({4099, 272}, int8)}, 3);
}

TEST_CASE("rows that are as long as a tile, and one more or less", "[codegen][threads][scan]") {
  manual_seed(3);
  for (int64_t length : {7, 16, 17, 33, 255, 256, 257, 513})
    check_tiles(running, {randn({600, length})});
  for (int64_t length : {4095, 4096, 4097, 8200})
    check_compiles(check_tiles(running, {randn({70, length})}));
}

TEST_CASE("few rows", "[codegen][threads][scan]") {
  manual_seed(9);
  for (int64_t length : {16, 17, 100, 1001, 1100, 2048})
    check_tiles(running, {randn({2, length})});
}

TEST_CASE("running sums of formulas, and what is stored beside them",
          "[codegen][threads][scan]") {
  manual_seed(4);
  check_compiles(
      check_tiles([](In i) { return Out{cumsum(exp(i[0]) * 2.0, 1)}; }, {randn({300, 1000})}));
  const Function of_row = [](In i) { return Out{cumsum(i[0] * i[1] + i[2], 1)}; };
  check_tiles(of_row, {randn({300, 520}), randn({300, 1}), randn({520})});
  const Function stores = [](In i) {
    const Tensor y = exp(i[0] + i[1]);
    return Out{y, cumsum(y, 1)};
  };
  check_compiles(check_tiles(stores, {randn({300, 1000}), randn({1000})}));
  check_tiles(stores, {randn({300, 1001}).to(bfloat16), randn({1001}).to(bfloat16)});
  check_tiles(stores, {randn({300, 1000}).to(bfloat16), randn({1000}).to(bfloat16)});
  const Function of_six = [](In i) {
    return Out{cumsum(i[0] + i[1] * i[2] - i[3] * i[4] + i[5], 1)};
  };
  check_tiles(of_six, {randn({9, 1040}), randn({9, 1040}), randn({9, 1040}), randn({9, 1040}),
                       randn({9, 1040}), randn({9, 1040})});
  const Function widened = [](In i) { return Out{cumsum(i[0].to(float32), 1)}; };
  check_tiles(widened, {randn({40, 1040}).to(bfloat16)});
  const Function mixed = [](In i) { return Out{cumsum(i[0].to(float64) * i[1], 1)}; };
  check_tiles(mixed, {numbers({40, 1040}, int8), randn({40, 1040}).to(float64)});
}

TEST_CASE("running sums of padded, joined, shifted, transposed round and chosen rows",
          "[codegen][threads][scan]") {
  manual_seed(5);
  check_tiles([](In i) { return Out{cumsum(pad(i[0], {3, 5}), 1)}; }, {randn({140, 500})});
  check_tiles(
      [](In i) {
        return Out{cumsum(concat({i[0], i[1]}, 1), 1)};
      },
      {randn({140, 33}), randn({140, 300})});
  check_tiles([](In i) { return Out{cumsum(i[0].slice(1, 1, 400), 1)}; }, {randn({140, 500})});
  check_tiles([](In i) { return Out{cumsum(flip(i[0], {1}), 1)}; }, {randn({140, 500})});
  check_tiles([](In i) { return Out{cumsum(index_select(i[0], 1, i[1]), 1)}; },
              {randn({30, 50}), (rand({90}) * 50.0).to(int64)});
  check_tiles(
      [](In i) {
        return Out{cumsum(i[0].permute({1, 0, 2}), 2)};
      },
      {randn({5, 7, 100})});
}

TEST_CASE("a long row is scanned by many blocks", "[codegen][threads][scan]") {
  manual_seed(10);
  for (int64_t length : {32768, 40011}) {
    const std::string text = check_bits(running, {randn({length})}).source.text;
    CHECK_THAT(text, ContainsSubstring(kGroups));
    CHECK_THAT(text, ContainsSubstring("_totals") && ContainsSubstring("_starts"));
    check_compiles(text);
  }
  check_bits(running, {randn({3, 32771})});
  check_bits(running, {randn({2, 32768}).to(bfloat16)});
  for (int64_t length : {32768, 32772})  // what is stored too: beside it; by itself
    check_bits(
        [](In i) {
          return Out{exp(i[0]), cumsum(exp(i[0]), 1)};
        },
        {randn({2, length})}, without_clusters());
  check_bits([](In i) { return Out{cumsum(i[0], 0)}; }, {randn({4100, 9})});
  for (const Function& other :
       {Function([](In i) {
          return Out{cumprod(i[0], 0), logcumsumexp(i[0], 0)};
        }),
        Function([](In i) { return Out{logcumsumexp(i[0].to(float64), 0)}; })})
    check_compiles(check_bits(other, {randn({33001})}).source.text);
}

TEST_CASE("scans of every operator", "[codegen][threads][scan]") {
  manual_seed(11);
  const Function all = [](In i) {
    const auto [most, at_most] = cummax(i[0], -1);
    const auto [least, at_least] = cummin(i[0], -1);
    return Out{most, at_most, least, at_least, cumprod(i[0], -1)};
  };
  for (DType type : {float32, bfloat16, int8})
    for (int64_t length : {7, 257})
      check_compiles(check_bits(all, {numbers({6, length}, type)}).source.text);
  const Function places = [](In i) {
    return Out{cummax(i[0], -1).second, cummin(i[0], -1).second};
  };
  for (DType type :
       {float32, float16, int8})  // of a long row: pieces of running values and places
    for (int64_t length : {4099, 32768, 32771})
      check_compiles(check_bits(places, {numbers({2, length}, type)}).source.text);
  const Function logarithms = [](In i) { return Out{logcumsumexp(i[0], -1)}; };
  for (DType type : {float32, float16, float64})
    check_compiles(check_bits(logarithms, {numbers({6, 300}, type)}).source.text);
}

TEST_CASE("a costly operator combines totals once, and skips groups behind a row",
          "[codegen][threads][scan]") {
  manual_seed(14);
  const auto logarithms = [](int64_t axis) {
    return Function([axis](In i) { return Out{logcumsumexp(i[0], axis)}; });
  };
  const auto once = ContainsSubstring("[thread] = here");
  for (DType type : {float32, bfloat16, float64}) {
    const std::string tiles = check_tiles(logarithms(1), {numbers({3, 5120}, type)});
    CHECK_THAT(tiles, once && ContainsSubstring("if (g*16 + t*4096 < 5120)"));
    const std::string row = check_tiles(logarithms(1), {numbers({40, 1001}, type)});
    CHECK_THAT(row, once && !ContainsSubstring("if (g*16"));
    check_tiles(logarithms(1), {numbers({140, 100}, type)});
    const std::string columns =
        check_columns(logarithms(0), {numbers({299, 70}, type)}, is_half(type) ? 16 : 8);
    CHECK_THAT(columns, once && ContainsSubstring("if (g*16 + t*256 < 299)"));
    for (const std::string& text : {tiles, row, columns}) check_compiles(text);
  }
  check_tiles(logarithms(1), {transposed(100, 300)});
  CHECK_THAT(check_tiles(running, {randn({40, 1001})}), !once);
}

TEST_CASE("one sweep gives the places of a cummax and what stands there",
          "[codegen][threads][scan]") {
  manual_seed(13);
  const auto both = [](int64_t axis) {
    return Function([axis](In i) {
      const auto [least, at_least] = cummin(i[0], axis);
      return Out{least, at_least};
    });
  };
  const Function values = [](In i) { return Out{cummax(i[0] + i[0], -1).first}; };
  const Tensor zeros_of_both_signs = where(randn({70, 1001}) > 0.0, 0.0, -0.0);
  const Tensor x = where(randn({70, 1001}) > 1.0, zeros_of_both_signs, randn({70, 1001}));
  for (DType type : {float32, bfloat16, float64, int8}) {
    for (const Tensor& row : {x.to(type), masked_fill(x, x > 2.9, NAN).to(type)}) {
      CHECK_THAT(check_tiles(both(1), {row}), ContainsSubstring("] = values0[k];"));
      CHECK_THAT(check_columns(both(0), {row}, 16), ContainsSubstring("values0[c]"));
      CHECK_THAT(check_tiles(values, {row}), !ContainsSubstring("places"));
    }
  }
  check_compiles(check_tiles(both(1), {x}));
  check_tiles(both(1), {randn({5, 9000})});
  check_tiles(both(1), {transposed(100, 300)});
  check_columns(both(0), {randn({700, 70})}, 8);
}

TEST_CASE("running sums of special values", "[codegen][threads][scan]") {
  manual_seed(6);
  const float values[] = {NAN, INFINITY, -INFINITY, -0.0f, 0.0f, 3e38f, 1e-45f};
  for (int64_t which = 0; which < 7; which++) {
    Tensor x = full({64, 304}, -0.0);
    float* of_x = static_cast<float*>(static_cast<void*>(x.bytes()));
    for (int64_t row = 0; row < 64; row++)
      for (int64_t j = 5 * row; j < 304; j += 3 + row) of_x[row * 304 + j] = values[which];
    check_tiles(running, {x});
    check_tiles(running, {x.to(bfloat16)});
  }
}

TEST_CASE("columns side by side", "[codegen][threads][scan]") {
  manual_seed(7);
  const Function down = [](In i) { return Out{cumsum(i[0], 0)}; };
  for (int64_t length : {15, 16, 40, 256, 257, 700})
    check_compiles(check_columns(down, {randn({length, 70})},
                                 length > 40   ? 8
                                 : length > 16 ? 32
                                               : 64));
  for (int64_t length : {80, 112, 160})
    check_compiles(check_columns(down, {randn({length, 35})}, length == 160 ? 8 : 16));
  check_columns(down, {randn({300, 4100})}, 32);
  check_columns(down, {randn({300, 2050}).to(bfloat16)}, 16);
  check_columns(down, {numbers({300, 300}, int64)}, 8);
  const Function gradient = [](In i) {
    return Out{cumsum(i[0] * i[0], 0), flip(cumsum(flip(i[1], {0}), 0), {0}) * i[0]};
  };
  check_compiles(
      check_columns(gradient, {randn({600, 40}), randn({600, 40})}, 8, "columns columns"));
  check_columns([](In i) { return Out{cumsum(i[0], 1)}; }, {randn({3, 300, 49})}, 8);
}

TEST_CASE("rows that lie across come through shared memory, a column of a tile after the other",
          "[codegen][threads][scan]") {
  manual_seed(8);
  for (int64_t length : {20, 300, 1000})
    CHECK_THAT(check_tiles(running, {transposed(100, length)}),
               ContainsSubstring("y = thread%16;"));
  check_tiles(running, {transposed(2100, 300)}, 16);
}

TEST_CASE(
    "results that lie across go through shared memory, a column of a tile after the other",
    "[codegen][threads][scan]") {
  manual_seed(15);
  const Function sums = [](In i) { return Out{cumsum(i[0].permute({1, 0}), 0)}; };
  const Function maxima = [](In i) {
    const auto [most, at_most] = cummax(i[0].permute({1, 0}), 0);
    return Out{most, at_most};
  };
  const auto across = ContainsSubstring("y = thread%16;");
  for (int64_t length : {20, 300}) {
    const std::string text = check_tiles(sums, {randn({1100, length})}, 16);
    CHECK_THAT(text, across && ContainsSubstring(length > 256 ? "x = thread;" : "x = ("));
    check_compiles(text);
  }
  CHECK_THAT(check_bits(maxima, {randn({1100, 300}).to(bfloat16)}).source.text, across);
  CHECK_THAT(check_tiles(sums, {randn({100, 300})}), !across);  // too few to share blocks so
}

TEST_CASE("a row that begins at its last element is read in packs",
          "[codegen][threads][scan]") {
  manual_seed(12);
  const Function reversed = [](In i) { return Out{cumsum(flip(i[0], {1}), 1)}; };
  for (DType type : {float32, bfloat16, float64})
    CHECK_THAT(check_tiles(reversed, {numbers({140, 512}, type)}), ContainsSubstring(" - v"));
  CHECK_THAT(check_tiles(reversed, {randn({140, 510})}), ContainsSubstring(" - v"));  // by two
  CHECK_THAT(check_tiles(reversed, {randn({140, 501})}), !ContainsSubstring(" - v"));
}

TEST_CASE("a row that is reduced too, or scanned twice, is several kernels",
          "[codegen][threads][scan]") {
  manual_seed(13);
  const Function nucleus = [](In i) { return Out{cumsum(softmax(i[0], 1), 1)}; };
  for (DType type : {float32, bfloat16})
    for (int64_t length : {100, 1000, 4100}) {
      const std::string text = check_bits(nucleus, {randn({30, length}).to(type)}).source.text;
      CHECK_THAT(text, ContainsSubstring(kGroups) && !ContainsSubstring("tc_node"));
      check_compiles(text);
    }
  const Function of_columns = [](In i) { return Out{cumsum(softmax(i[0], 0), 0)}; };
  CHECK_THAT(check_bits(of_columns, {randn({300, 70})}).source.text,
             ContainsSubstring(kGroups));
  const Function stores = [](In i) {
    const Tensor y = softmax(i[0], 1);
    return Out{y, cumsum(y, 1), i[0].sum(1), cumprod(i[0], 1)};
  };
  check_compiles(check_bits(stores, {randn({30, 1000})}).source.text);
  const Function twice = [](In i) { return Out{cumsum(i[0], 1), cumprod(i[0], 1), exp(i[0])}; };
  CHECK_THAT(check_bits(twice, {randn({30, 100})}).source.text, ContainsSubstring(kGroups));
}

TEST_CASE("short rows that are reduced too: a thread alone", "[codegen][threads][scan]") {
  manual_seed(14);
  const Function sums = [](In i) { return Out{cumsum(softmax(i[0], 1), 1)}; };
  check_serial(sums, {randn({300, 4})});
  CHECK_THAT(check_bits(sums, {randn({300, 12})}).source.text, ContainsSubstring(kGroups));
}

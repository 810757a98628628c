// What a mask leaves out is not read, and nothing else is left out.
#include "tiny_compile/tile/wanted.h"

#include <limits>

#include "tests/catch.h"
#include "tests/tile/lowered.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/nn.h"
#include "tiny_compile/trace/tracer.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// Rows of `length` elements; `value` of them is summed, by whom `layouts` says.
Tiles summed(const std::string& dtype, int64_t length, const std::string& value,
             const std::string& layouts) {
  const std::string shape = str(dtype, "[64,", length, "]");
  return lower_to_tiles(parse_program(str(
      "program f on cuda {\n  input x: ", shape, "\n  output y: ", dtype,
      "[64]\n  kernel k rows(i0: 64) {\n    $0 = load x[i0*", length, " + j0]\n    r0: ", dtype,
      " = max(j0: ", length, ") ", value, "\n    store y[i0] = r0\n    schedule layouts ",
      layouts, "\n  }\n  launch k\n  return y\n}\n")));
}

const std::string kVectors = "rows grid · warp 4 loop register 4 · lane 32 · vector 8";

// The same bits whatever lies where nobody looks.
void check_masked(const Tiles& tiles, int64_t length, int64_t first, int64_t last) {
  std::vector<float> values(static_cast<size_t>(64 * length));
  for (size_t k = 0; k < values.size(); k++) {
    const int64_t row = static_cast<int64_t>(k) / length, j = static_cast<int64_t>(k) % length;
    const bool is_seen = j - row <= last && j - row >= first;
    values[k] = is_seen ? static_cast<float>(k % 97) - 50
                : k % 2 ? std::numeric_limits<float>::quiet_NaN()
                        : std::numeric_limits<float>::infinity();
  }
  const std::vector<Tensor> inputs = {
      from_vector<float>(values, Sizes{64, length}).to(tiles.program.buffers[0].type.dtype)};
  CHECK(same_bits(interpret(tiles, inputs)[0], interpret(tiles.program, inputs)[0]));
}

}  // namespace

TEST_CASE("a pack is read where one of its elements may be looked at", "[tile][wanted]") {
  const Tiles causal = summed(
      "bf16", 1024, "where(le(index[j0], index[i0]), mul($0, bf16 2.0), bf16 -inf)", kVectors);
  CHECK_THAT(print(causal), ContainsSubstring("if -i0 + j0_v < 1 {\n      pack"));
  check_masked(causal, 1024, -1024, 0);
  // The other way round the last element of eight is asked, and of a band both ends are.
  const Tiles later =
      summed("bf16", 1024, "where(lt(index[j0], index[i0]), bf16 -inf, $0)", kVectors);
  CHECK_THAT(print(later), ContainsSubstring("if i0 - j0_v - 7 < 1 {"));
  check_masked(later, 1024, 0, 1024);
  const Tiles band = summed("bf16", 1024,
                            "where(bitwise_not(bitwise_and(ge(index[i0], index[j0]), "
                            "gt(index[j0 + 49], index[i0]))), bf16 -inf, $0)",
                            kVectors);
  CHECK_THAT(print(band), ContainsSubstring("if i0 - j0_v - 56 < 0 {") &&
                              ContainsSubstring("if -i0 + j0_v < 1 {"));
  check_masked(band, 1024, -48, 0);
}

TEST_CASE("elements that are read one by one are left out one by one", "[tile][wanted]") {
  const Tiles odd = summed("f32", 197, "where(le(index[j0], index[i0]), $0, f32 -inf)",
                           "rows grid · warp 4 loop register 8 · lane 32");
  CHECK_THAT(print(odd), ContainsSubstring("if -i0 + j0 < 1 {"));
  check_masked(odd, 197, -197, 0);
}

TEST_CASE("what may be looked at is read", "[tile][wanted]") {
  const std::string row = "le(index[j0], index[i0])";
  for (const std::string& value :
       {str("where(", row, ", $0, mul($0, bf16 2.0))"),                // both ways
        str("add(where(", row, ", $0, bf16 -inf), $0)"),               // elsewhere too
        std::string("where(lt(index[j0], i64 1000), $0, bf16 -inf)"),  // a border
        std::string("where(lt($0, bf16 0.0), $0, bf16 -inf)"),         // data
        str("where(bitwise_or(", row, ", lt($0, bf16 0.0)), $0, bf16 -inf)")}) {
    INFO(value);
    CHECK_THAT(print(summed("bf16", 1024, value, kVectors)), !ContainsSubstring("    if "));
  }
  // An integer is divided by, whoever looks at the result.
  const std::string quotient = str("where(", row, ", remainder(i32 7, $0), i32 0)");
  CHECK_THAT(print(summed("i32", 1024, quotient,
                          "rows grid · warp 4 loop register 8 · lane 32 · vector 4")),
             !ContainsSubstring("    if "));
}

TEST_CASE("attention under a mask has its bits, and its gradient", "[tile][wanted]") {
  for (int64_t length : {1, 7, 197, 256, 1001}) {
    INFO(length);
    const auto softmaxes = [length](std::span<const Tensor> in) {
      const Tensor i = reshape(arange(length), {length, 1}), j = arange(length);
      const Tensor p =
          softmax(where(j <= i, in[0] * 0.125, -std::numeric_limits<double>::infinity()), 1);
      return std::vector<Tensor>{p, (in[1] - sum(in[1] * p, {1}, true)) * p};
    };
    const std::vector<Tensor> inputs(2, randn({length, length}));
    const Graph graph = trace(softmaxes, inputs, "f").graph;
    lowered::check_bits(
        run_pipeline(until(default_pipeline(), "tile"), graph, true, Target::Cuda).tiles);
  }
}

TEST_CASE("what is read once a row is read before any element has a name", "[tile][wanted]") {
  for (const char* rows : {"grid · warp 4 · register 2", "grid · warp 4 · vector 2"}) {
    const Tiles tiles = lower_to_tiles(parse_program(
        str("program f on cuda {\n  input x: f32[64]\n  input z: f32[64,1024]\n",
            "  output y: f32[64]\n  kernel k rows(i0: 64) {\n",
            "    r0: f32 = max(j0: 1024) where(le(index[j0], index[i0]), load x[i0], ",
            "load z[i0*1024 + j0])\n    store y[i0] = r0\n    schedule layouts rows ", rows,
            " loop register 32 · lane 32\n  }\n  launch k\n  return y\n}\n")));
    INFO(print(tiles));
    lowered::check_bits(tiles);
  }
}

// Kernels of points on a CPU are tile programs: they mean what their kernels do, read back as they
// print, stay within their bounds, and what a hand changes in them is obeyed.
#include "tests/catch.h"
#include "tests/tile/cpp_tiles.h"
#include "tests/tile/edited.h"
#include "tests/tile/random_points.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/verify.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

Program program_of(const std::string& kernel, const std::string& header = "f") {
  return parse_program(str("program ", header, " {\n", kernel, "  launch k\n  return y\n}\n"));
}

const std::string kPadded =
    "  input x: f32[5,40]\n  output y: f32[7,300]\n"
    "  kernel k rows(i0: 7, i1: 300) {\n"
    "    $0 = index[i0 - 1]\n    $1 = index[i1 - 9]\n"
    "    $2 = bitwise_and(bitwise_and(ge($0, i64 0), lt($0, i64 5)), "
    "bitwise_and(ge($1, i64 0), lt($1, i64 40)))\n"
    "    store y[i0*300 + i1] = exp(load x[i0*40 + i1 - 49] if $2 else 1.0)\n"
    "    schedule pointwise";

std::string text_of(const Program& program) { return print(lower_to_tiles(program)); }

}  // namespace

TEST_CASE("a thread's points are parts of rows, cut where conditions change",
          "[tile][points]") {
  const std::string text = text_of(program_of(kPadded + " stream=1\n  }\n"));
  CHECK_THAT(text, ContainsSubstring("tile k units 2100 {") &&
                       ContainsSubstring("l1 block0: f32[128]") &&
                       ContainsSubstring("for i0: 7 = begin/300 .. (end + 299)/300 {") &&
                       ContainsSubstring("if i0 < 1 {") &&
                       ContainsSubstring("stream y[i0*300 + start] x next - start = block0"));
  const size_t tile = text.find("\ntile ");
  CHECK(text.find(" if ", text.find("load x", tile)) != text.find("load x", tile) + 22);
  CHECK_THAT(text.substr(tile), !ContainsSubstring("else 1.0"));
}

TEST_CASE("points' tiles have the bits of their kernels, streamed or not", "[tile][points]") {
  // By three threads: parts of rows end before, in and behind what is padded.
  for (const char* schedule : {"", " stream=1", " stream=1 grain=650", " grain=2000"}) {
    const Program program = program_of(kPadded + schedule + "\n  }\n");
    const std::vector<Tensor> inputs = seeded_inputs(program, 3, {});
    const Tiles tiles = lower_to_tiles(program);
    CHECK_NOTHROW(verify(tiles));
    CHECK(parse_tiles(print(tiles)) == tiles);
    CHECK(all_same(interpret(tiles, inputs), interpret(program, inputs)));
    CHECK(all_same(run(tiles, inputs), interpret(program, inputs)));
  }
}

TEST_CASE("a short row is a unit, whose loop has all of it", "[tile][points]") {
  const auto patches = [](int64_t wide) {
    return program_of(str("  input x: i8[3,5,4,", wide, "]\n  output y: i8[3,4,5,", wide,
                          "]\n  kernel k rows(i0: 3, i1: 4, i2: 5, i3: ", wide,
                          ") {\n    store y[i0*", 20 * wide, " + i1*", 5 * wide, " + i2*", wide,
                          " + i3] = load x[i0*", 20 * wide, " + i1*", wide, " + i2*", 4 * wide,
                          " + i3]\n    schedule pointwise grain=200\n  }\n"));
  };
  CHECK_THAT(text_of(patches(14)), ContainsSubstring("units 60 grain 14 {") &&
                                       ContainsSubstring("for i3 < 14 vector {"));
  CHECK_THAT(text_of(patches(65)),
             ContainsSubstring("units 3900 grain 200 {") && ContainsSubstring("first"));
  for (const int64_t wide : {14, 64, 65}) {
    const Program program = patches(wide);
    const std::vector<Tensor> inputs = seeded_inputs(program, 3, {});
    const Tiles tiles = lower_to_tiles(program);
    CHECK_NOTHROW(verify(tiles));
    CHECK(parse_tiles(print(tiles)) == tiles);
    CHECK(all_same(run(tiles, inputs), interpret(program, inputs)));
  }
}

TEST_CASE("blocks that L1 does not hold are not filled", "[tile][points]") {
  const std::string kernel =
      "  input x: f64[1000]\n  output y: f64[1000]\n  kernel k rows(i0: 1000) {\n"
      "    store y[i0] = exp(load x[i0])\n    schedule pointwise stream=1\n  }\n";
  const std::string small = "f for mine cores=1 l1=1023", large = "f for mine cores=1 l1=1024";
  CHECK_THAT(text_of(program_of(kernel, large)), ContainsSubstring("stream y"));
  CHECK_THROWS_WITH(program_of(kernel, small), ContainsSubstring("stream=1: no results"));
}

TEST_CASE("random graphs' tiles of points are sound, and mean what they say",
          "[tile][points]") {
  int tiles_seen = 0, streamed = 0;
  for (uint64_t seed = 1; seed <= 150; seed++) {
    INFO("seed " << seed);
    const Program program = random_points(seed, 8);
    const Tiles tiles = lower_to_tiles(program);
    tiles_seen += has_tile(tiles);
    streamed += print(tiles).find("\n      stream ") != std::string::npos;
    CHECK_NOTHROW(verify(tiles));
    CHECK(parse_tiles(print(tiles)) == tiles);
    const std::vector<Tensor> inputs = seeded_inputs(program, seed, {});
    std::vector<Tensor> want;
    try {
      want = interpret(program, inputs);
    } catch (const Error&) {  // of an index out of range
      CHECK_THROWS_AS(interpret(tiles, inputs), Error);
      continue;
    }
    CHECK(all_same(interpret(tiles, inputs), want));
  }
  CHECK(tiles_seen > 50);
  CHECK(streamed > 10);
}

TEST_CASE("one tile serves all sizes", "[tile][points]") {
  const Program program = program_of(
      "  input x: f32[n,m]\n  output y: f32[n,m]\n  kernel k rows(i0: n, i1: m) {\n"
      "    store y[i0*m + i1] = exp(load x[i0*m + i1])\n    schedule pointwise stream=1\n  }\n",
      "f[n: 1..4096, m: 1..4096]");
  const Tiles tiles = lower_to_tiles(program);
  CHECK_NOTHROW(verify(tiles));
  CHECK_THAT(print(tiles), ContainsSubstring("tile k units m*n {"));
  CHECK(parse_tiles(print(tiles)) == tiles);
  for (const auto& shape : std::vector<Sizes>{{1, 1}, {3, 5}, {5, 129}, {2, 128}, {40, 3}}) {
    const std::vector<Tensor> inputs = {randn(shape)};
    CHECK(all_same(interpret(tiles, inputs), interpret(program, inputs)));
  }
}

TEST_CASE("an edited tile of points is obeyed, or refused with its place", "[tile][points]") {
  const Program program = program_of(
      "  input x: f32[1000]\n  output y: f32[1000]\n  kernel k rows(i0: 1000) {\n"
      "    store y[i0] = exp(load x[i0])\n    schedule pointwise\n  }\n");
  const std::string text = text_of(program);
  const std::vector<Tensor> inputs = seeded_inputs(program, 1, {});
  const Tiles negated = parse_tiles(replaced(text, "$1 = exp($0)", "$1 = neg($0)"));
  const std::vector<Tensor> got = run(negated, inputs);
  CHECK(all_same(got, interpret(negated, inputs)));
  CHECK(!all_same(got, interpret(program, inputs)));

  const auto refused = [&](const std::string& old, const std::string& by,
                           const std::string& why) { check_refused(text, old, by, why); };
  refused("= begin .. end", "= begin .. end + 1", "is not always in 0..999");
  refused("= begin .. end", "= begin - 1 .. end", "is not always in 0..999");
  refused("$0 = load x[i0]", "$0 = load x[i0 + 1]", "leaves the buffer's 1000 elements");
  refused("i0: 1000 =", "i0: 999 =", "is not always in 0..998");
  refused("    $0 = load x[i0]", "    k: 900 = i0 + 1\n    $0 = load x[k]",
          "k may be 1000 here, and is to be below 900");
  refused("    $0 = load x[i0]", "    k: 900 = max(i0 + 1, 0)\n    $0 = load x[k]",
          "k may be 1000 here, and is to be below 900");
  refused("vector {", "vector {\n      barrier", "one thread does not do this");
  refused("units 1000 {", "units 1000 {\n  shared s: f32[4]", "a CPU's arrays are in L1");
  refused("units 1000 {", "units 1000 {\n  l1 s: f32[40000]", "bytes in L1, which has 32768");
  refused("units 1000", "grid 4", "expected 'units'");
  refused("store y[i0] = $1",
          "if begin < i0 {\n      store y[i0] = $1\n      }\n    else {\n"
          "      for k: 4 = 0 .. 4 {\n      }\n    }",
          "a loop in one of vectors");
}

TEST_CASE("a block is sent once, and no more of it than there is", "[tile][points]") {
  const Program program = program_of(
      "  input x: f32[1000]\n  output y: f32[1000]\n  kernel k rows(i0: 1000) {\n"
      "    store y[i0] = exp(load x[i0])\n    schedule pointwise stream=1\n  }\n");
  const std::vector<Tensor> inputs = seeded_inputs(program, 1, {});
  const std::string text = text_of(program);
  const Tiles twice =
      parse_tiles(replaced(text, "stream y[start]", "stream y[min(start, 100)]"));
  CHECK_THROWS_WITH(interpret(twice, inputs), ContainsSubstring("twice"));
  CHECK_THROWS_WITH(parse_tiles(replaced(text, "x next - start =", "x next - start + 1 =")),
                    ContainsSubstring("elements of block0, which has 128"));
  CHECK_THROWS_WITH(parse_tiles(replaced(text, "x next - start =", "x start - next =")),
                    ContainsSubstring("streams -next + start elements of block0"));
}

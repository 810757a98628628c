// How many neighbouring points a thread takes, and which of them go by way of shared memory.
#include "tiny_compile/schedule/points.h"

#include "tests/catch.h"
#include "tests/schedule/as_scheduled.h"
#include "tiny_compile/tile/lower.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// How a GPU runs the first kernel.
std::string on_gpu(const std::string& graph) {
  return str(*as_scheduled("graph f" + graph).kernels[0].schedule);
}

}  // namespace

TEST_CASE("packs are as wide as suits what is read element by element", "[schedule]") {
  const auto laplacian = [](const std::string& dtype) {
    const std::string wide = dtype + "[9,514,514]", high = dtype + "[9,512,514]",
                      y = dtype + "[9,512,512]";
    return on_gpu("(%0 x: " + wide + ") {\n%1: " + high +
                  " = slice %0 {axis=1, start=0, stop=512, step=1}\n%2: " + y +
                  " = slice %1 {axis=2, start=1, stop=513, step=1}\n%3: " + high +
                  " = slice %0 {axis=1, start=1, stop=513, step=1}\n%4: " + y +
                  " = slice %3 {axis=2, start=0, stop=512, step=1}\n%5: " + y +
                  " = slice %3 {axis=2, start=2, stop=514, step=1}\n%6: " + high +
                  " = slice %0 {axis=1, start=2, stop=514, step=1}\n%7: " + y +
                  " = slice %6 {axis=2, start=1, stop=513, step=1}\n%8: " + y +
                  " = slice %3 {axis=2, start=1, stop=513, step=1}\n%9: " + y +
                  " = add %2, %4\n%10: " + y + " = add %5, %7\n%11: " + y +
                  " = sub %9, %8\n%12: " + y + " = add %10, %11\nreturn %12\n}");
  };
  CHECK_THAT(laplacian("bf16"), ContainsSubstring("vector 4"));
  CHECK_THAT(laplacian("f32"), ContainsSubstring("vector 2"));
  // Of four arrays that are put behind one another a point reads one.
  std::string join = "(%0 x: f32[64,77], %1 y: f32[64,77], %2 z: f32[64,77]) {\n";
  join += "%3: f32[64,231] = concat %0, %1, %2 {axis=1}\nreturn %3\n}";
  CHECK_THAT(on_gpu(join), ContainsSubstring("vector 4"));
  // All of them are asked for, though, and held.
  std::string four = "(%0 x: f16[64,197], %1 y: f16[64,197], %2 z: f16[64,197], ";
  four += "%3 w: f16[64,197]) {\n%4: f16[64,788] = concat %0, %1, %2, %3 {axis=1}\n";
  CHECK_THAT(on_gpu(four + "return %4\n}"), ContainsSubstring("vector 4"));
}

TEST_CASE("a patch of a picture is read in whole accesses", "[schedule]") {
  const Program program = as_scheduled(R"(graph f(%0 x: bf16[2,6,64,64]) {
    %1: bf16[2,6,8,8,8,8] = reshape %0
    %2: bf16[2,8,8,6,8,8] = permute %1 {axes=[0,2,4,1,3,5]}
    %3: bf16[2,8,8,384] = reshape %2
    %4: bf16[2,8,8,384] = neg %3
    return %4
  })");
  CHECK_THAT(print(lower_to_tiles(program)), ContainsSubstring("e%8 + ((e/8)%8)*64] x8"));
}

TEST_CASE("packs are narrow where elements lie a few apart", "[schedule]") {
  const auto channels_first = [](int channels) {
    return on_gpu(str("(%0 x: u8[4,64,64,", channels, "]) {\n%1: u8[4,", channels,
                      ",64,64] = permute %0 {axes=[0,3,1,2]}\n%2: bf16[4,", channels,
                      ",64,64] = cast %1\nreturn %2\n}"));
  };
  CHECK_THAT(channels_first(3), ContainsSubstring("vector 4"));
  CHECK_THAT(channels_first(1), ContainsSubstring("vector 8"));
}

TEST_CASE("a transposed part of a concat crosses its rows by way of shared memory",
          "[schedule]") {
  CHECK_THAT(on_gpu("(%0 x: bf16[64,64,96], %1 y: bf16[64,64,96] {strides=[6144,1,64]}) {\n"
                    "%2: bf16[128,64,96] = concat %0, %1 {axis=0}\nreturn %2\n}"),
             ContainsSubstring("via load 2"));
}

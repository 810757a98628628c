// Which tiles are refused before they run, each with its reason.
#include "tiny_compile/tile/verify.h"

#include "tests/catch.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// y[i0] = x[i0] + h[i0], 1000 rows, a thread a row.
const char* const kProgram = R"(program f on cuda {
  input x: f32[1000]
  input h: f16[1000]
  input z: f32[1000]
  output y: f32[1000]
  kernel k rows(i0: 1000) {
    store y[i0] = add(load x[i0], cast<f32>(load h[i0]))
    schedule layouts rows grid · warp 2 · lane 32
  }
  launch k
  return y
}
)";

std::string text_of(const std::string& statements,
                    const std::string& head = "grid 16 block 2 warps") {
  return str(kProgram, "\ntile k ", head,
             " {\n  array t: f32[4]\n  array u: f16[4]\n  shared s: f32[64]\n", statements,
             "}\n");
}

std::string error_of(const std::string& text) {
  try {
    parse_tiles(text);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void check_refused(const std::string& statements, const std::string& why) {
  INFO(statements);
  CHECK_THAT(error_of(text_of(statements)), ContainsSubstring(why));
}

}  // namespace

TEST_CASE("a tile that is as its kernel wants it is sound", "[tile][verify]") {
  CHECK(error_of(print(lower_to_tiles(parse_program(kProgram)))) == "");
  CHECK(error_of(text_of("  if block*64 + warp*32 + lane < 1000 {\n"
                         "    i0: 1000 = block*64 + warp*32 + lane\n"
                         "    $0 = load x[i0]\n    store y[i0] = $0\n  }\n")) == "");
  CHECK(error_of(text_of("  for q < 4 unrolled {\n    t[q] = f32 1.0\n  }\n"
                         "  $9 = t[0] of lane ^ 16\n  s[warp*32 + lane] = $9\n  barrier\n"
                         "  $10 = s[63 - warp*32 - lane]\n")) == "");
}

TEST_CASE("a tile's integers are what their names say where they are read", "[tile][verify]") {
  check_refused("  k: 1000 = block*64 + warp*32 + lane\n  $0 = load x[k]\n",
                "line 19, column 3: k may be 1023 here, and is to be below 1000");
  check_refused("  i: 8 = lane\n  j: 8 = i\n", "i may be 31 here");
  check_refused("  i: 32 = lane - 1\n  j: 32 = i\n", "i may be");
  check_refused("  q: 8 = lane/4\n  q: 8 = lane/4\n", "q is named already");
  check_refused("  lane: 8 = warp\n", "lane is named already");
  check_refused("  t: 8 = warp\n", "t is an array");
  check_refused("  for q < 4 {\n    for q < 4 {\n    }\n  }\n", "q is named already");
  check_refused("  q: 8 = 7/(lane - 3)\n", "which is not always positive");
  CHECK(error_of(text_of("  i: 8 = lane\n  if lane < 8 {\n    j: 8 = i\n  }\n")) == "");
}

TEST_CASE("what an else does is for those whom its if leaves out", "[tile][verify]") {
  const std::string condition = "  if block*64 + warp*32 + lane < 1000 {\n  }\n",
                    other =
                        "  else {\n    i0: 24 = block*64 + warp*32 + lane - 1000\n"
                        "    $0 = load x[i0]\n  }\n";
  CHECK(error_of(text_of(condition + other)) == "");
  check_refused(other, "an else without its if");
  check_refused(condition + "  barrier\n" + other, "an else without its if");
  check_refused("  if block*64 + warp*32 + lane < 999 {\n  }\n" + other, "i0 may be");
  check_refused("  if 15 < lane {\n  }\n  else {\n    $9 = t[0] of lane ^ 16\n  }\n",
                "a shuffle where not all lanes of a warp come");
}

TEST_CASE("a tile's scalars are computed on all paths to where they are used",
          "[tile][verify]") {
  check_refused("  t[0] = $0\n", "line 18, column 3: uses a value that is not computed");
  check_refused("  if lane < 8 {\n    $0 = load x[lane]\n  }\n  t[0] = $0\n",
                "line 21, column 3: uses a value that is not computed");
  check_refused("  for q < 4 {\n    $0 = load x[q]\n  }\n  t[0] = $0\n",
                "uses a value that is not computed");
  check_refused("  $9 = exp(exp(f32 1))\n", "uses a value that is not computed");
  check_refused("  $0 = load x[0]\n  $0 = load x[0]\n", "computes a value a second time");
  check_refused("  divisor $0\n", "uses a value that is not computed");
  check_refused(
      "  $1 = load h[0]\n  $9 = floor_divide($1, $1)\n  divisor $9\n  store y[0] = $9\n",
      "stores f16 in y, which is f32");
}

TEST_CASE("a tile's arrays are used within their bounds", "[tile][verify]") {
  check_refused("  t[4] = f32 1\n", "t[4] leaves the array's 4 elements");
  check_refused("  for q < 5 unrolled {\n    t[q] = f32 1\n  }\n", "t[q] leaves");
  check_refused("  $9 = t[0 - 1]\n", "t[-1] leaves");
  check_refused("  s[block*64 + lane] = f32 1\n", "leaves the array's 64 elements");
  check_refused("  for q < 4 {\n    t[q] = f32 1\n  }\n", "named by unrolled loops alone");
  check_refused("  t[lane/8] = f32 1\n", "named by unrolled loops alone");
  check_refused("  t[0] = f64 1\n", "puts f64 in t, which is f32");
  check_refused("  u[0] = f32 1\n", "puts f32 in u, which is f16");
  check_refused("  $0 = u[0]\n", "$0 is f32, u is f16");
}

TEST_CASE("a tile uses its kernel's buffers within their bounds", "[tile][verify]") {
  check_refused("  $0 = load x[lane + 969]\n",
                "x[lane + 969] leaves the buffer's 1000 elements");
  check_refused("  $0 = load x[lane - 1]\n", "leaves the buffer's 1000");
  check_refused("  $9 = load z[lane]\n", "loads z, which kernel k does not");
  check_refused("  store z[lane] = f32 1\n", "stores z, which kernel k does not");
  check_refused("  store x[lane] = f32 1\n", "stores x, which kernel k does not");
  check_refused("  store y[lane + 969] = f32 1\n", "leaves the buffer's 1000");
  check_refused("  $9 = index[lane]\n  $10 = load x[at0; at0 = $9 < 1001]\n",
                "leaves the buffer");
  CHECK(error_of(text_of("  $9 = index[lane + 969]\n  $10 = lt($9, i64 1000)\n"
                         "  $11 = load x[lane + 969] if $10 else 0\n")) == "");
}

TEST_CASE("a tile's vectors are aligned, of a width that there is", "[tile][verify]") {
  CHECK(error_of(text_of("  t[0] = load x[lane*4] x4\n  store y[lane*4] x4 = t[0]\n")) == "");
  check_refused("  t[0] = load x[lane] x4\n", "is astride");
  check_refused("  t[0] = load x[lane*4 + 2] x4\n", "is astride");
  check_refused("  t[0] = load x[lane*4] x3\n", "vectors of 3");
  check_refused("  t[1] = load x[lane*4] x4\n", "t[1] x4 leaves the array's 4");
  check_refused("  t[0] = load h[lane*4] x4\n", "t is f32, h is f16");
  CHECK(error_of(text_of("  t[0] = load x[lane*4 + 872] x4\n")) == "");
  check_refused("  t[0] = load x[lane*4 + 876] x4\n", "leaves the buffer's 1000");
  std::string astray = text_of("  t[0] = load x[lane*4] x4\n");
  astray.replace(astray.find("input x: f32[1000]"), 18, "input x: f32[1000] align=4");
  CHECK_THAT(error_of(astray), ContainsSubstring("is astride"));
}

TEST_CASE("a tile's vectors may be of rows that data chooses", "[tile][verify]") {
  const auto error = [](const std::string& statements, const std::string& limit = "20") {
    return error_of(
        str("program f on cuda {\n  input x: f32[20,4]\n  input c: i64[32]\n"
            "  output y: f32[32,4]\n  kernel k rows(i0: 32, i1: 4) {\n"
            "    $0 = load c[i0]\n    store y[i0*4 + i1] = load x[at0*4 + i1; at0 = $0 < ",
            limit,
            "]\n    schedule layouts rows grid · lane 32 · vector 4\n  }\n"
            "  launch k\n  return y\n}\n\ntile k grid 1 block 1 warps {\n"
            "  array t: f32[4]\n  i0: 32 = lane\n  $0 = load c[i0]\n",
            statements, "  store y[i0*4] x4 = t[0]\n}\n"));
  };
  CHECK(error("  t[0] = load $1: x[at0*4] x4\n") == "");
  CHECK_THAT(error("  t[0] = load $1: x[at0*4 + 2] x4\n"), ContainsSubstring("is astride"));
  CHECK_THAT(error("  t[0] = load $1: x[at0*8] x4\n"),
             ContainsSubstring("leaves the buffer's"));
  CHECK_THAT(error("  t[0] = load $1: x[at1*4] x4\n"), ContainsSubstring("no integer 'at1'"));
  CHECK_THAT(error("  t[0] = load $0: c[at0*4] x4\n"), ContainsSubstring("at0"));
  CHECK_THAT(error("  t[0] = load $1: c[at0] x1\n"),
             ContainsSubstring("$1 is no load of this buffer"));
  CHECK_THAT(error("  t[0] = load x[at0*4] x4\n"), ContainsSubstring("no integer 'at0'"));
}

TEST_CASE("a tile asks ahead for what it may read alone", "[tile][verify]") {
  CHECK(error_of(text_of("  prefetch x[min(block*64, 900)] x100\n")) == "");
  check_refused("  prefetch x[min(block*64, 901)] x100\n", "leaves the buffer's 1000 elements");
  check_refused("  prefetch z[0]\n", "loads z, which kernel k does not");
}

TEST_CASE("a cluster starts once and together, and sends words", "[tile][verify]") {
  const auto error = [](const std::string& statements) {
    return error_of(str(kProgram, "\ntile k grid 8 cluster 2 block 1 warps {\n",
                        "  cluster w: f32[64]\n  cluster h: u8[64]\n  shared s: f32[32]\n",
                        "  i: 512 = block*64 + rank*32 + lane\n  $0 = load x[i]\n", statements,
                        "}\n"));
  };
  const std::string start = "  cluster_start\n", send = "  send w[lane*2 + rank] = $0\n";
  CHECK(error(start + send + "  await w\n") == "");
  CHECK_THAT(error(start), ContainsSubstring("a cluster starts, and nothing is sent"));
  CHECK_THAT(error("  if rank < 1 {\n" + start + "  }\n" + send + "  await w\n"),
             ContainsSubstring("a cluster starts once, outside"));
  CHECK_THAT(error(start + "  send s[lane] = $0\n  await s\n"),
             ContainsSubstring("sends to s: no cluster's array of words"));
  CHECK_THAT(error(start + send + "  w[lane*2] = $0\n  await w\n"),
             ContainsSubstring("sets what is sent"));
  CHECK_THAT(error(start + send + "  if lane < 1 {\n  await w\n  }\n"),
             ContainsSubstring("waits for w in a loop"));
  CHECK_THAT(error(start + "  if block < 3 {\n" + send + "  }\n  await w\n"),
             ContainsSubstring("not the same in all clusters"));
  const std::string data = start + "  $8 = index[lane]\n  $9 = lt($8, i64 3)\n  k: 64 = $8\n";
  for (const std::string& sends :
       {std::string("  send w[(k + lane*2 + rank)%64] = $0\n"),
        "  if k < 1 {\n" + send + "  }\n", "  if $9 {\n  }\n  else {\n" + send + "  }\n"})
    CHECK_THAT(error(data + sends + "  await w\n"),
               ContainsSubstring("not the same in all clusters"));
}

TEST_CASE("all lanes come to a tile's shuffles, all threads to its barriers",
          "[tile][verify]") {
  check_refused("  $9 = t[0] of lane ^ 32\n", "lane ^ 32 is no lane");
  const Tiles named = parse_tiles(
      str(kProgram, "\ntile k grid 16 block 2 warps {\n  array t: f32[1]\n",
          "  i: 1024 = block*64 + thread\n  i0: 1000 = min(i, 999)\n  $0 = load x[i0]\n  t[0] "
          "= $0\n",
          "  $9 = t[0] of lane ^ (warp*7)\n  if i < 1000 {\n    store y[i0] = $9\n  }\n}\n"));
  CHECK_THAT(emit(named).text, ContainsSubstring("warp = threadIdx.x / 32"));
  check_refused("  k: 64 = warp*32 + lane\n  $9 = t[0] of lane ^ k\n", "lane ^ k is no lane");
  check_refused("  if lane < 16 {\n    $9 = t[0] of lane ^ 16\n  }\n",
                "a shuffle where not all lanes of a warp come");
  check_refused("  if warp < 1 {\n    barrier\n  }\n",
                "a barrier where not all threads of a block come");
  check_refused("  q: 32 = lane\n  if 3 < q {\n    barrier\n  }\n", "a barrier where");
  check_refused("  if warp < 1 {\n    cluster_barrier\n  }\n",
                "a barrier where not all threads of a cluster come");
  CHECK(error_of(text_of("  if warp < 1 {\n    $9 = t[0] of lane ^ 16\n  }\n"
                         "  if block < 3 {\n    barrier\n  }\n"
                         "  if lane < 32 {\n    barrier\n  }\n"
                         "  for q < 3 {\n    if q < 2 {\n      barrier\n    }\n  }\n")) == "");
}

TEST_CASE("a tile fits the machine, and is of a kernel that has layouts", "[tile][verify]") {
  const auto head = [](const std::string& words) { return error_of(text_of("", words)); };
  CHECK_THAT(head("grid 3000000000 block 2 warps"), ContainsSubstring("a grid of 3000000000"));
  CHECK_THAT(head("grid 1 block 32 warps resident 4"), ContainsSubstring("holds 64 warps"));
  const auto array = [](const std::string& declared) {
    std::string text = text_of("");
    return error_of(text.replace(text.find("array t: f32[4]"), 15, declared));
  };
  CHECK_THAT(array("shared t: f32[60000]"), ContainsSubstring("at most 232448"));
  CHECK_THAT(array("array t: f32[5000]"), ContainsSubstring("a thread's own at most 4096"));
  CHECK_THAT(head("grid 1 cluster 16 block 2 warps"), ContainsSubstring("clusters of 16"));
  check_refused("  for q < 1000 unrolled {\n    for r < 1000 unrolled {\n    }\n  }\n",
                "unrolled 1000000 times");
  check_refused("  for q < 3000000000 {\n  }\n", "a loop of 3000000000 turns");

  Tiles tiles = lower_to_tiles(parse_program(kProgram));
  const Tiles whole = tiles;
  CHECK_NOTHROW(verify(tiles));
  tiles.of_kernel[0].reset();
  CHECK_THROWS_WITH(verify(tiles), ContainsSubstring("has layouts, but no tile"));
  tiles.of_kernel.clear();
  CHECK_THROWS_WITH(verify(tiles), ContainsSubstring("room for 0 tiles"));
  Tiles scatters = lower_to_tiles(parse_program(
      "program f on cuda {\n  input d: f32[5000]\n  input k: i64[5000]\n  output y: f32[9]\n"
      "  kernel k rows() {\n    store y[j0] for (j0: 9) = f32 0.0\n"
      "    scatter y[at0; at0 = load k[j1] < 9] for (j1: 5000) = scatter_add load d[j1]\n  }\n"
      "  launch k\n  return y\n}\n"));
  CHECK_NOTHROW(verify(scatters));
  scatters.of_kernel = whole.of_kernel;
  CHECK_THROWS_WITH(verify(scatters), ContainsSubstring("is not of kernel k"));
  // The vendor's library multiplies, and nothing is written.
  Tiles multiplied = lower_to_tiles(parse_program(
      "program f on cuda {\n  matmul library\n  input a: f32[32,32]\n  input b: f32[32,32]\n"
      "  output y: f32[32,32]\n  kernel k rows(i0: 32, i1: 32) {\n"
      "    r0: f32 = dot(j0: 32) load a[i0*32 + j0], load b[i1 + j0*32]\n"
      "    store y[i0*32 + i1] = r0\n    schedule library\n  }\n  launch k\n  return y\n}\n"));
  CHECK_NOTHROW(verify(multiplied));
  multiplied.of_kernel = whole.of_kernel;
  CHECK_THROWS_WITH(verify(multiplied),
                    ContainsSubstring("has a tile, and is written otherwise"));
  tiles = whole;
  tiles.of_kernel[0]->kernel.scalars[0].index = 7;
  CHECK_THROWS_WITH(verify(tiles), ContainsSubstring("is not of kernel k"));
}

TEST_CASE("a stage whose tiles are not sound is named", "[tile][verify][pipeline]") {
  const auto spoil = [](const Program& program) {
    Tiles tiles = lower_to_tiles(program);
    for (std::optional<Tile>& tile : tiles.of_kernel)
      if (tile) tile->body = {if_less(lane_of_warp(), 3, {barrier()})};
    return tiles;
  };
  const Pipeline pipeline = replace(default_pipeline(), "tile", Tiling(spoil));
  CHECK_THROWS_WITH(
      run_pipeline(pipeline, parse_program(kProgram), true),
      ContainsSubstring("what stage 'tile' made is not sound: tile k, statement 2"));
}

TEST_CASE("a tile's integers may be what data is", "[tile][verify]") {
  const std::string number = "  $9 = index[lane]\n  k: 8 = $9\n";
  CHECK(error_of(text_of(number + "  s[k*8 + 7] = f32 1.0\n  barrier\n"
                                  "  $10 = t[0] of lane ^ k\n")) == "");
  check_refused("  if warp < 1 {\n    $9 = index[lane]\n  }\n  k: 8 = $9\n",
                "uses a value that is not computed on all paths to here");
  check_refused("  t[0] = f32 1.0\n  $9 = t[0]\n  k: 8 = $9\n", "no integer is $");
  check_refused("  $9 = index[lane]\n  k: 8 = $9\n  s[k + 57] = f32 1.0\n",
                "leaves the array's 64 elements");
  check_refused(number + "  shortcut {\n    m: 8 = $9\n    s[m] = f32 1.0\n  }\n",
                "a shortcut is done again: it chooses no places by data");
  check_refused(number + "  t[k] = f32 1.0\n", "named by unrolled loops alone");
  check_refused(number + "  if k < 4 {\n    $10 = t[0] of lane ^ 1\n  }\n",
                "a shuffle where not all lanes of a warp come");
  check_refused(number + "  if k < 4 {\n    barrier\n  }\n",
                "a barrier where not all threads of a block come");
}

TEST_CASE("a shortcut may be done again", "[tile][verify]") {
  CHECK(error_of(text_of("  for q < 4 unrolled {\n    t[q] = f32 1.0\n  }\n  shortcut {\n"
                         "    $9 = t[0]\n    $10 = exp($9)\n    s[warp*32 + lane] = $10\n"
                         "  }\n")) == "");
  check_refused("  shortcut {\n    $9 = t[0]\n    t[0] = $9\n  }\n",
                "it reads t before it sets it");
  check_refused("  shortcut {\n    barrier\n  }\n", "a shortcut is done again");
  check_refused("  shortcut {\n    $0 = load x[0]\n    store y[0] = $0\n  }\n",
                "stores nothing");
  check_refused("  t[0] = f32 1.0\n  shortcut {\n    $9 = t[0] of lane ^ 1\n  }\n",
                "nothing of other lanes");
}

TEST_CASE("a shortcut below a highest exponent is done once", "[tile][verify]") {
  const std::string value = "  t[0] = f32 1.0\n  $9 = t[0]\n  shortcut below $9 {\n";
  CHECK(error_of(text_of(value + "    $10 = t[0]\n    t[0] = $10\n  }\n")) == "");
  check_refused(value + "    $10 = div($9, $9)\n    t[0] = $10\n  }\n", "has no quotients");
  check_refused(value + "    barrier\n  }\n", "a shortcut stores nothing");
  check_refused("  shortcut below $9 {\n  }\n", "$9");
}

TEST_CASE("halves are packed, and a thread's own read in pairs", "[tile][verify]") {
  const std::string packed = "  array w: f16[8] packed\n";
  CHECK(error_of(text_of(packed + "  w[2] = load h[4] x2\n")) == "");
  check_refused(packed + "  w[1] = load h[4] x2\n", "reads pairs");
  check_refused(packed + "  w[0] = load h[4]\n", "reads pairs");
  CHECK(error_of(text_of("  shared hs: f16[8] packed\n")) == "");
  check_refused("  array w: f32[8] packed\n", "only halves of a thread or a block are");
}

TEST_CASE("of an array without elements nothing is read, whatever its place would be",
          "[tile][sizes]") {
  const Graph graph = parse_graph(R"(graph f[n: 0..4096](%0 x: f32[2,7,n] {strides=[n,35,1]}) {
  %1: u8[2,7,n] = cast %0
  %2: u8[2,10,n + 1] = pad %1 {low=[-1,2,2], high=[1,1,-1], value=1}
  return %2
}
)");
  for (const Target target : {Target::Cpp, Target::Cuda}) {
    const Tiles tiles =
        run_pipeline(until(default_pipeline(), "tile"), graph, true, target).tiles;
    CHECK_NOTHROW(verify(tiles));
    CHECK_THAT(print(tiles), ContainsSubstring("%n"));  // of n = 0 a remainder by nothing
  }
}

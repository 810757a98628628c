// What a tile program says, and what its interpreter does not let pass.
#include "tests/catch.h"
#include "tests/fuzz/layouts.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/schedule/layouts.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/lower.h"
#include "tiny_compile/tile/verify.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string columns(const std::string& op, int64_t count, int64_t rows,
                    const std::string& schedule) {
  const std::string dtype = op.starts_with("arg") ? "i64" : "f32";
  return str("program f on cuda {\n  input x: f32[", count, ",", rows, "]\n  output y: ", dtype,
             "[", rows, "]\n  kernel k rows(i0: ", rows, ") {\n    r0: ", dtype, " = ", op,
             "(j0: ", count, ") load x[i0 + j0*", rows,
             "]\n    store y[i0] = r0\n    schedule ", schedule,
             "\n  }\n  launch k\n  return y\n}\n");
}

// One block of two warps that does these statements; `given` and `own` are f32 arrays of 64.
std::string error_of(const std::function<void(Tile&)>& add) {
  Tile tile;
  tile.kernel.name = "k";
  tile.warps = 2;
  add_array(tile, {"given", DType::f32, 64, Space::Shared});
  add_array(tile, {"own", DType::f32, 64, Space::Register});
  add(tile);
  std::vector<float> y(64);
  std::vector<Memory> memory = {
      {reinterpret_cast<std::byte*>(y.data()), 64, DType::f32, {}, {}}};
  try {
    run_tile(tile, memory);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

Expr thread(const Tile& tile) { return warp_of(tile) * 32 + lane_of_warp(); }

}  // namespace

TEST_CASE("a tile program reads as its kernel's schedule says", "[tile]") {
  const Program program = parse_program(
      columns("sum", 16, 100, "layouts rows grid · lane 32 loop register 4 · warp 4"));
  CHECK(print(program, lower_to_tile(program, program.kernels[0])) ==
        R"(tile k grid 4 block 4 warps {
  array sum0: f32[4]
  shared given1: f32[128]
  array u2: f32[4]
  array r0_of_row: f32[1]
  row: 100 = min(block*32 + lane, 99)
  i0: 100 = row
  for r_k < 4 unrolled {
    k: 16 = r_k*4 + warp
    j0: 16 = k
    $0 = load x[i0 + j0*100]
    sum0[r_k] = $0
  }
  for p < 2 unrolled {
    $2 = sum0[p + 2]
    $3 = sum0[p]
    $4 = add($3, $2)
    sum0[p] = $4
  }
  $5 = sum0[1]
  $6 = sum0[0]
  $7 = add($6, $5)
  sum0[0] = $7
  $8 = sum0[0]
  given1[lane + warp*32] = $8
  barrier
  for w < 4 unrolled {
    $9 = given1[lane + w*32]
    u2[w] = $9
  }
  for w < 2 unrolled {
    $10 = u2[w + 2]
    $11 = u2[w]
    $12 = add($11, $10)
    u2[w] = $12
  }
  $13 = u2[1]
  $14 = u2[0]
  $15 = add($14, $13)
  u2[0] = $15
  $16 = u2[0]
  sum0[0] = $16
  $17 = sum0[0]
  r0_of_row[0] = $17
  r0 = r0_of_row[0]
  if warp < 1 {
    if block*32 + lane < 100 {
      store y[i0] = r0
    }
  }
}
)");
}

TEST_CASE("reductions keep their bits under layouts of every level", "[tile]") {
  const std::vector<std::string> lines = {
      "layouts rows grid · lane 32 loop register 8 · serial 16 · warp 16",
      "layouts rows grid · warp 2 · lane 4 · vector 2 loop register 2 · serial 256 · lane 4 "
      "from 4",
      "layouts rows grid · register 2 loop register 8 · warp 8 · lane 32 · vector 1",
      "layouts rows grid · lane 2 loop warp 4 · serial 64 · register 4 · warp 2 from 4",
      "layouts rows grid · lane 8 from 4 loop register 2 · serial 256 · lane 4",
      "layouts rows grid · register 2 loop warp 3 · serial 32 · lane 32",
      "layouts rows grid · vector 2 loop warp 7 · register 4 · serial 8 · lane 32"};
  manual_seed(3);
  for (const int64_t count : {1, 7, 100, 1024, 1025, 2040}) {
    Tensor x = randn({count, 6}) * 10.0;
    std::vector<float> values(x.data<float>(), x.data<float>() + x.numel());
    values[0] = -0.0f;
    if (count > 7) values[6 * 7 + 3] = __builtin_nanf(""), values[6 * 5 + 2] = __builtin_inff();
    x = from_vector(values, {count, 6});
    for (const char* op : {"sum", "prod", "max", "min", "argmax", "argmin"}) {
      for (const std::string& line : lines) {
        INFO(op << " of " << count << ": " << line);
        const Program program = parse_program(columns(op, count, 6, line));
        const std::vector<Tensor> inputs = {x};
        CHECK(same_bits(interpret(lower_to_tiles(program), inputs)[0],
                        interpret(program, inputs)[0]));
      }
    }
  }
}

TEST_CASE("pieces of shared memory are the same elements for both who share them", "[tile]") {
  manual_seed(4);
  const std::vector<Tensor> inputs = {randn({2000, 8})};
  for (int pieces :
       {1, 2, 4, 8}) {  // of two chunks, whose bits the registers' do not begin with
    INFO(pieces);
    const Program program = parse_program(columns(
        "sum", 2000, 8,
        str("layouts rows grid · lane 4 loop register 32 · warp 8 · lane 8 from 4 via load 1 "
            "rows register 4 loop register 8 · warp 8 · lane 32 padding 1 pieces ",
            pieces)));
    CHECK(same_bits(interpret(lower_to_tiles(program), inputs)[0],
                    interpret(program, inputs)[0]));
  }
}

TEST_CASE("each block of a cluster puts into its own shared memory what all of them have",
          "[tile]") {
  manual_seed(4);
  const std::string text = R"(program f on cuda {
  input x: f64[4,3,7]
  output y: f64[4,3,7]
  kernel k rows(i0: 3) {
    $0 = load x[i0*7 + j0 + j1*21]
    r0: f64 = max(j0: 7, j1: 4) $0
    $3 = exp(sub($0, r0))
    r1: f64 = sum(j0: 7, j1: 4) $3
    store y[i0*7 + j0 + j1*21] for (j1: 4, j0: 7) = div($3, r1)
    schedule layouts rows grid loop register 32 loop cluster 2 · lane 16 via load 1 loop register 32
  }
  launch k
  return y
}
)";
  const Program program = parse_program(text);
  const std::vector<Tensor> inputs = {randn({4, 3, 7}).to(float64)};
  CHECK(
      same_bits(interpret(lower_to_tiles(program), inputs)[0], interpret(program, inputs)[0]));
}

TEST_CASE("blocks that share two digits of a row meet once where any order will do", "[tile]") {
  manual_seed(5);
  for (const int64_t count : {1000, 2000}) {
    const std::vector<Tensor> inputs = {randn({count, 2})};
    for (const char* op : {"max", "argmin", "sum"}) {
      INFO(op << " of " << count);
      const Program program = parse_program(columns(
          op, count, 2, "layouts rows grid loop cluster 4 · register 8 · serial 2 · lane 32"));
      CHECK(same_bits(interpret(lower_to_tiles(program), inputs)[0],
                      interpret(program, inputs)[0]));
    }
  }
}

TEST_CASE("as many warps as a row has chunks share it", "[tile]") {
  manual_seed(5);
  for (const int64_t count : {2049, 5120, 11000}) {
    const Tensor x = randn({count, 2});
    const std::vector<Tensor> inputs = {x};
    const std::string line =
        str("layouts rows grid loop warp ", (count + 1023) / 1024, " · register 32 · lane 32");
    for (const char* op : {"sum", "prod", "argmax", "sum_exp"}) {
      INFO(op << " of " << count);
      const Program program = parse_program(columns(op, count, 2, line));
      CHECK(same_bits(interpret(lower_to_tiles(program), inputs)[0],
                      interpret(program, inputs)[0]));
    }
  }
}

TEST_CASE("blocks of any number of warps share a row's chunks", "[tile]") {
  manual_seed(6);
  for (const int64_t count : {5000, 6144, 11000}) {
    const Tensor x = randn({count, 2});
    const std::vector<Tensor> inputs = {x};
    for (const int64_t cluster : {2, 4}) {
      const int64_t warps = (count + 1024 * cluster - 1) / (1024 * cluster);
      const std::string line = str("layouts rows grid loop warp ", warps, " · cluster ",
                                   cluster, " · register 32 · lane 32");
      for (const char* op : {"sum", "argmax", "sum_exp"}) {
        INFO(op << " of " << count << ": " << line);
        const Program program = parse_program(columns(op, count, 2, line));
        CHECK(same_bits(interpret(lower_to_tiles(program), inputs)[0],
                        interpret(program, inputs)[0]));
      }
    }
  }
}

TEST_CASE("a warp that has all of its elements asks once", "[tile]") {
  const auto text_of = [](int64_t count, int64_t warps) {
    const Program program = parse_program(
        columns("sum", count, 2,
                str("layouts rows grid loop warp ", warps, " · register 32 · lane 32")));
    return print(program, lower_to_tile(program, program.kernels[0]));
  };
  const std::string of_five = text_of(4500, 5);
  CHECK_THAT(of_five, ContainsSubstring("if warp*1024 + 1023 < 4500 {"));
  CHECK_THAT(of_five, ContainsSubstring("else {\n    for r_k"));
  CHECK_THAT(of_five, ContainsSubstring("if lane + r_k*32 + 4096 < 4500 {"));
  CHECK_THAT(text_of(4500, 8), ContainsSubstring("else {\n    if warp*1024 < 4500 {"));
  CHECK_THAT(text_of(1500, 2), ContainsSubstring("if lane + r_k*32 + 1024 < 1500 {"));
  CHECK_THAT(text_of(1000, 2), !ContainsSubstring("warp*1024 + 1023"));  // none has all
  CHECK_THAT(text_of(5120, 5), !ContainsSubstring("if lane + r_k*32"));  // all have all
}

TEST_CASE("registers that are whole for all threads are not asked for", "[tile]") {
  const auto text_of = [](int64_t count, const std::string& loop) {
    const Program program =
        parse_program(columns("sum", count, 2, "layouts rows grid loop " + loop));
    return print(program, lower_to_tile(program, program.kernels[0]));
  };
  const std::string nearly = text_of(5000, "warp 5 · register 32 · lane 32");
  CHECK_THAT(nearly, ContainsSubstring("for g_k < 28 unrolled {\n"
                                       "    k: 5000 = g_k*32 + lane + warp*1024\n"));
  CHECK_THAT(nearly, ContainsSubstring("for g_k < 4 unrolled {\n"
                                       "    k: 5000 = g_k*32 + lane + warp*1024 + 896\n"
                                       "    if g_k*32 + lane + warp*1024 + 896 < 5000 {"));
  const std::string half = text_of(512, "register 32 · lane 32");
  CHECK_THAT(half, ContainsSubstring("for g_k < 16 unrolled {"));  // and of the others nothing
  CHECK_THAT(half, !ContainsSubstring("< 512 {"));
}

TEST_CASE("shortcuts of whole pieces are apart from those of a short last one", "[tile]") {
  const auto shortcuts = [](int64_t count) {
    const Program program = parse_program(
        str("program f on cuda {\n  input x: f32[", 4 * count,
            "]\n  output y: f32[4]\n"
            "  kernel k rows(i0: 4) {\n    r0: f32 = sum(j0: ",
            count, ") exp(load x[i0*", count,
            " + j0])\n    store y[i0] = r0\n"
            "    schedule layouts rows grid loop warp 4 · register 32 · lane 32\n  }\n"
            "  launch k\n  return y\n}\n"));
    const std::string text = print(program, lower_to_tile(program, program.kernels[0]));
    size_t number = 0;
    for (size_t at = 0; (at = text.find("shortcut", at)) != std::string::npos; at++) number++;
    return std::pair(number, text.find("if warp*1024 + 1023 < ") != std::string::npos);
  };
  CHECK(shortcuts(3100) == std::pair<size_t, bool>(2, true));   // 28 of 1024 are left
  CHECK(shortcuts(3900) == std::pair<size_t, bool>(1, false));  // 828: each register asks
  CHECK(shortcuts(4096) == std::pair<size_t, bool>(1, false));
}

TEST_CASE("blocks of a cluster send each other what their warps have, all at once", "[tile]") {
  const auto text_of = [](const char* op, const char* line) {
    const Program program = parse_program(columns(op, 30000, 2, line));
    return print(program, lower_to_tile(program, program.kernels[0]));
  };
  const char* const of_both =
      "layouts rows grid loop cluster 4 · warp 8 · register 32 · lane 32";
  const std::string sum = text_of("sum", of_both), place = text_of("argmax", of_both);
  CHECK_THAT(sum, ContainsSubstring("  cluster given1: f32[128]\n"));
  CHECK_THAT(sum, ContainsSubstring("  cluster_start\n  if lane < 4 {"));
  CHECK_THAT(sum, ContainsSubstring("send given1[lane + rank*32 + warp*4] = "));
  CHECK_THAT(sum, ContainsSubstring("  await given1\n"));
  CHECK_THAT(sum, ContainsSubstring("= given1[lane*4 + rank]"));  // a part a lane
  CHECK_THAT(sum, !ContainsSubstring("barrier"));
  CHECK_THAT(place, ContainsSubstring("_at: i64[128]"));  // and the places
  CHECK_THAT(
      text_of("sum",
              "layouts rows grid · lane 32 loop serial 4 · cluster 8 · register 32 · "
              "warp 32"),
      ContainsSubstring("cluster_barrier"));  // 32 columns of each warp: left where they are
}

TEST_CASE("a later row is asked for where a warp's elements lie side by side", "[tile]") {
  const auto text_of = [](const std::string& line) {
    const Program program = parse_program(
        "program f on cuda {\n  input x: f32[500,3000]\n  output y: f32[500]\n"
        "  kernel k rows(i0: 500) {\n    r0: f32 = sum(j0: 3000) load x[i0*3000 + j0]\n"
        "    store y[i0] = r0\n    schedule layouts rows grid loop " +
        line + "\n  }\n  launch k\n  return y\n}\n");
    return print(program, lower_to_tile(program, program.kernels[0]));
  };
  const std::string text = text_of("warp 4 · register 32 · lane 32 prefetch=40");
  CHECK_THAT(text, ContainsSubstring("later: 500 = min(block + 40, 499)"));
  CHECK_THAT(text, ContainsSubstring("prefetch x[min(later*3000 + warp*1024, 1498976)] x1024"));
  CHECK_THAT(text, ContainsSubstring("if warp*1024 < 3000 {"));  // none beyond the row
  CHECK_THAT(text_of("warp 4 · register 32 · lane 32"), !ContainsSubstring("prefetch"));
  CHECK_THAT(text_of("warp 32 · lane 32 · vector 4 prefetch=40"),  // of no register
             ContainsSubstring("prefetch x[min(later*3000 + warp*128, 1499872)] x128"));
}

TEST_CASE("warps whose lanes have the same give one element each", "[tile]") {
  const auto text_of = [](const char* line) {
    const Program program = parse_program(columns("sum", 4096, 2, line));
    return print(program, lower_to_tile(program, program.kernels[0]));
  };
  CHECK_THAT(text_of("layouts rows grid loop warp 4 · register 32 · lane 32"),
             ContainsSubstring("shared given1: f32[4]"));
  CHECK_THAT(text_of("layouts rows grid · lane 2 loop register 64 · warp 4 · lane 16 from 2"),
             !ContainsSubstring("shared given1: f32[4]"));
}

TEST_CASE("a kernel without rows is a layout's too", "[tile][schedule]") {
  manual_seed(7);
  for (const int64_t count : {7, 700, 1001, 5000}) {
    const Graph graph = parse_graph(str(
        "graph g(%0 x: f32[", count, "]) {\n  %1: f32[] = sum %0 {", "axes=[0]}\n  %2: f32[",
        count, "] = expand %1\n  %3: f32[", count, "] = div %0, %2\n  return %3\n}\n"));
    const std::vector<Tensor> inputs = {randn({count})};
    const Staged staged =
        run_pipeline(until(default_pipeline(), "tile"), graph, true, Target::Cuda);
    REQUIRE(staged.program.kernels.size() == 1);
    CHECK(staged.program.kernels[0].schedule->strategy == Strategy::Layouts);
    CHECK(same_bits(interpret(staged.tiles, inputs)[0], interpret(graph, inputs)[0]));
  }
}

TEST_CASE("what is the same for a row's elements is computed once for each row", "[tile]") {
  const auto program = [](const char* line) {
    return parse_program(str(R"(program f on cuda {
      input x: f32[70,6]
      input s: f32[6]
      output y: f32[70,6]
      kernel k rows(i0: 6) {
        $0 = load x[i0 + j0*6]
        r0: f32 = sum(j0: 70) $0
        store y[i0 + j0*6] for (j0: 70) = div(sub($0, load s[i0]), exp(r0))
        schedule )",
                             line, "\n  }\n  launch k\n  return y\n}\n"));
  };
  const std::vector<Tensor> inputs = {randn({70, 6}), randn({6})};
  for (const char* line :
       {"layouts rows grid · lane 2 · vector 2 loop register 8 · lane 16 from 2",
        "layouts rows grid · register 2 loop register 4 · lane 32",
        "layouts rows grid · lane 8 loop register 32 · lane 4 from 8"}) {
    INFO(line);
    const Program rows = program(line);
    const Tile tile = lower_to_tile(rows, rows.kernels[0]);
    const std::string text = print(rows, tile);
    CHECK(text.find("exp(") != std::string::npos);
    CHECK(text.find("exp(") == text.rfind("exp("));
    CHECK(text.find("load s[") == text.rfind("load s["));
    const bool several = std::string(line).find("lane 8") == std::string::npos;
    const bool arrays = std::any_of(tile.arrays.begin(), tile.arrays.end(), [](const Array& a) {
      return a.name.starts_with("row") && a.size == 2;
    });
    CHECK(arrays == several);
    CHECK(same_bits(interpret(lower_to_tiles(rows), inputs)[0], interpret(rows, inputs)[0]));
  }
}

TEST_CASE("all come to know what the turns of a sum of exponentials gave", "[tile]") {
  manual_seed(6);
  for (const int64_t count : {1, 1000, 3000, 8192, 15000}) {
    const Tensor x = randn({count, 2}) * 40.0;
    const std::vector<Tensor> inputs = {x};
    for (const char* line :
         {"layouts rows grid loop serial 16 · register 32 · lane 32",
          "layouts rows grid · warp 2 from 4 loop serial 4 · warp 4 · register 32 · lane 32",
          "layouts rows grid · register 2 loop warp 2 · serial 8 · lane 32 · register 32",
          "layouts rows grid · lane 2 loop serial 16 · register 64 · lane 16 from 2",
          "layouts rows grid loop serial 4 · cluster 2 · warp 2 · register 32 · lane 32",
          "layouts rows grid · vector 2 loop serial 32 · register 64 · lane 16"}) {
      INFO(count << ": " << line);
      const Program program = parse_program(columns("sum_exp", count, 2, line));
      CHECK(same_bits(interpret(lower_to_tiles(program), inputs)[0],
                      interpret(program, inputs)[0]));
    }
  }
}

namespace {

// A maximum and a sum of exponentials of the same values, and a sum of others, of rows of `count`.
std::string exponentials_of(int64_t count, const char* dtype, const std::string& line) {
  const std::string row = str("load x[i0*", count, " + j0]");
  return str("program f on cuda {\n  input x: ", dtype, "[6,", count, "]\n  output y: ", dtype,
             "[6,", count, "]\n  output z: f32[6]\n  kernel k rows(i0: 6) {\n    $0 = ", row,
             "\n    $1 = cast<f32>($0)\n    r0: f32 = max(j0: ", count,
             ") $1\n    r1: f32 = sum_exp(j0: ", count, ") $1\n    r2: f32 = sum(j0: ", count,
             ") mul($1, $1)\n    store z[i0] = add(r0, add(log(r1), r2))\n    store y[i0*",
             count, " + j0] for (j0: ", count, ") = cast<", dtype,
             ">(exp(sub($1, r0)))\n    schedule ", line,
             "\n  }\n  launch k\n  return y, z\n}\n");
}

}  // namespace

TEST_CASE("blocks come before warps of any number in a row's halves", "[tile]") {
  manual_seed(9);
  const std::vector<Tensor> inputs = {randn({5120, 2})};
  for (const char* op : {"sum", "prod", "max"}) {
    INFO(op);
    const Program program = parse_program(columns(
        op, 5120, 2, "layouts rows grid loop warp 5 · register 16 · lane 32 · cluster 2"));
    CHECK(same_bits(interpret(lower_to_tiles(program), inputs)[0],
                    interpret(program, inputs)[0]));
  }
}

TEST_CASE("the reductions of a pass wait together", "[tile]") {
  std::string made =
      columns("sum", 4096, 2, "layouts rows grid loop warp 4 · register 32 · lane 32");
  made.insert(made.find("    store"), "    r1: f32 = max(j0: 4096) load x[i0 + j0*2]\n");
  made.replace(made.find("= r0"), 4, "= add(r0, r1)");
  const Program program = parse_program(made);
  const std::string text = print(program, lower_to_tile(program, program.kernels[0]));
  const size_t first = text.find("\n  barrier\n");
  CHECK(first != std::string::npos);
  CHECK(text.find("\n  barrier\n", first + 1) == std::string::npos);
}

TEST_CASE("a sum of exponentials finds a maximum on its way", "[tile]") {
  manual_seed(8);
  for (const int64_t count : {1000, 4096, 7000}) {
    Tensor x = randn({6, count}) * 30.0;
    for (const char* line :
         {"layouts rows grid loop warp 4 · serial 2 · register 32 · lane 32",
          "layouts rows grid loop warp 8 · register 32 · lane 32",
          "layouts rows grid loop cluster 4 · warp 2 · register 32 · lane 32",
          "layouts rows grid · lane 2 loop register 128 · warp 4 · lane 16 from 2"}) {
      for (const char* dtype : {"f32", "bf16", "f16"}) {
        INFO(count << " of " << dtype << ": " << line);
        const Program program = parse_program(exponentials_of(count, dtype, line));
        const std::vector<Tensor> inputs = {x.to(program.buffers[0].type.dtype)};
        const std::vector<Tensor> tiles = interpret(lower_to_tiles(program), inputs),
                                  kernels = interpret(program, inputs);
        CHECK(same_bits(tiles[0], kernels[0]));
        CHECK(same_bits(tiles[1], kernels[1]));
      }
    }
  }
  const Program program = parse_program(exponentials_of(
      4096, "bf16", "layouts rows grid loop warp 4 · register 4 · lane 32 · vector 8"));
  const std::string text = print(program, lower_to_tile(program, program.kernels[0]));
  CHECK_THAT(text, ContainsSubstring("array max0: f32[1]"));
  // Halves that are kept are read as they lie.
  CHECK_THAT(text, ContainsSubstring(": bf16[32] packed\n"));
  CHECK_THAT(text, ContainsSubstring("] = load x["));
  CHECK(parse_tile(program, text) == lower_to_tile(program, program.kernels[0]));
  // Another maximum of the same values is one by itself; and rows are asked for ahead.
  std::string twice = exponentials_of(
      4096, "f32",
      "layouts rows grid loop warp 4 · register 8 · lane 32 · vector 4 prefetch=2");
  twice.replace(twice.find("r2: f32 = sum"), 13, "r2: f32 = max");
  twice.replace(twice.find("mul($1, $1)"), 11, "$1");
  const Program again = parse_program(twice);
  const std::vector<Tensor> inputs = {randn({6, 4096})};
  CHECK(same_bits(interpret(lower_to_tiles(again), inputs)[1], interpret(again, inputs)[1]));
  CHECK_THAT(print(again, lower_to_tile(again, again.kernels[0])),
             ContainsSubstring("prefetch x["));
}

TEST_CASE("no exponent of a shortcut is above what is said to be the highest", "[tile]") {
  const auto error_above = [](float highest) {
    return error_of([highest](Tile& tile) {
      const int one = add_constant(tile, Literal::of(DType::f32, 1)),
                most = add_constant(tile, Literal::of(DType::f32, highest)),
                exp = add_apply(tile, Op::exp, DType::f32, {one});
      tile.body = {shortcut({define(exp), set(1, 0, exp)}, most)};
    });
  };
  CHECK(error_above(1) == "");
  CHECK(error_above(std::numeric_limits<float>::infinity()) == "");
  CHECK_THAT(error_above(0.5f), ContainsSubstring("an exponent of a shortcut is not below"));
}

TEST_CASE("rows of exponentials may have NaN, infinities and -0", "[tile]") {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float odd : {inf, -inf, std::nanf(""), -0.0f, 3e38f, -3e38f}) {
    Tensor x = zeros({6, 2050});
    float* data = x.data<float>();
    for (int64_t i = 0; i < 6 * 2050; i++) data[i] = static_cast<float>(i % 7) * 0.5f;
    data[5] = data[2049] = data[2050 + 1024] = odd;
    for (int64_t i = 0; i < 2050; i++) data[2 * 2050 + i] = odd;
    for (const char* line : {"layouts rows grid loop warp 3 · register 32 · lane 32",
                             "layouts rows grid loop serial 4 · register 32 · lane 32"}) {
      INFO(odd << ": " << line);
      const Program program = parse_program(exponentials_of(2050, "f32", line));
      const std::vector<Tensor> inputs = {x};
      CHECK(same_bits(interpret(lower_to_tiles(program), inputs)[1],
                      interpret(program, inputs)[1]));
    }
  }
}

TEST_CASE("sums of exponentials bring chunks to their largest", "[tile]") {
  manual_seed(4);
  for (const int64_t count : {5, 1024, 3000, 4096}) {
    const Tensor x = randn({count, 6}) * 40.0;
    for (const char* line :
         {"layouts rows grid · lane 2 loop register 32 · warp 8 · lane 16 from 2",
          "layouts rows grid loop warp 4 · register 32 · lane 32",
          "layouts rows grid loop warp 5 · register 4 · lane 32 · register 8"}) {
      INFO(count << ": " << line);
      const Program program = parse_program(columns("sum_exp", count, 6, line));
      const std::vector<Tensor> inputs = {x};
      CHECK(same_bits(interpret(lower_to_tiles(program), inputs)[0],
                      interpret(program, inputs)[0]));
    }
  }
}

TEST_CASE("a shared element is not read while another thread writes it", "[tile]") {
  const auto exchange = [](bool with_barrier) {
    return [with_barrier](Tile& tile) {
      const int one = add_constant(tile, Literal::of(DType::f32, 1));
      const Expr mine = thread(tile), other = mod(mine + 32, 64);
      tile.body = {set(0, mine, one)};
      if (with_barrier) tile.body.push_back(barrier());
      const int read = add_element(tile, 0, other);
      append(tile.body, {define(read), store(0, mine, read)});
    };
  };
  CHECK(error_of(exchange(true)) == "");
  CHECK_THAT(error_of(exchange(false)), ContainsSubstring("reads given["));
}

TEST_CASE("an element is stored once, and within its buffer", "[tile]") {
  CHECK_THAT(error_of([](Tile& tile) {
               const int one = add_constant(tile, Literal::of(DType::f32, 1));
               tile.body = {store(0, lane_of_warp(), one)};
             }),
             ContainsSubstring("stores element 0 twice"));
  CHECK_THAT(error_of([](Tile& tile) {
               const int one = add_constant(tile, Literal::of(DType::f32, 1));
               tile.body = {store(0, thread(tile) + 1, one)};
             }),
             ContainsSubstring("uses element 64 of 64"));
  CHECK_THAT(error_of([](Tile& tile) {
               const int one = add_constant(tile, Literal::of(DType::f32, 1));
               tile.body = {set(1, thread(tile) * 2, one)};
             }),
             ContainsSubstring("of own[64]"));
}

TEST_CASE("all lanes come to a shuffle, and all threads to a barrier", "[tile]") {
  CHECK_THAT(error_of([](Tile& tile) {
               const int one = add_constant(tile, Literal::of(DType::f32, 1));
               const int other = add_element(tile, 1, 0, 16);
               tile.body = {set(1, 0, one), if_less(lane_of_warp(), 16, {define(other)})};
             }),
             ContainsSubstring("shuffles with one that is not there"));
  CHECK_THAT(error_of([](Tile& tile) { tile.body = {if_less(warp_of(tile), 1, {barrier()})}; }),
             ContainsSubstring("a barrier that 32 threads of 64 come to"));
}

namespace {

// A softmax over an axis, for a GPU.
Staged softmax_of(DType dtype, const Sizes& shape, int64_t axis) {
  const auto function = [=](std::span<const Tensor> in) {
    return std::vector{softmax(in[0], axis)};
  };
  const Graph graph = trace(function, std::vector{empty_tensor(dtype, shape)}, "f").graph;
  Staged staged = run_pipeline(default_pipeline(), graph, true, Target::Cuda);
  REQUIRE(staged.program.kernels.size() == 1);
  return staged;
}

}  // namespace

TEST_CASE("a softmax over a middle axis reads its columns once", "[tile][schedule]") {
  const Staged staged = softmax_of(DType::f32, {64, 128, 512}, 1);
  const Kernel& kernel = staged.program.kernels[0];
  CHECK(str(*kernel.schedule) ==
        "layouts rows grid · lane 16 loop register 32 · warp 2 · lane 2 from 16");
  const std::string tile = print(staged.program, lower_to_tile(staged.program, kernel));
  CHECK(tile.find("load x0[") == tile.rfind("load x0["));
  if (why_no_nvrtc().empty()) CHECK(!compile_cuda(staged.source.text, "sm_90").empty());
}

TEST_CASE("what a pass stores is kept for those behind it", "[tile]") {
  const Program program = parse_program(
      "program f on cuda {\n  input a: f32[500,96]\n  input b: f32[500,96]\n"
      "  output s: f32[500,96]\n  output y: f32[500,96]\n  kernel k rows(i0: 500) {\n"
      "    $2 = add(load a[i0*96 + j0], load b[i0*96 + j0])\n"
      "    store s[i0*96 + j0] for (j0: 96) = $2\n    r1: f32 = sum(j0: 96) mul($2, $2)\n"
      "    store y[i0*96 + j0] for (j0: 96) = div($2, r1)\n"
      "    schedule layouts rows grid · warp 8 loop register 4 · lane 32\n"
      "  }\n  launch k\n  return s, y\n}\n");
  const std::string tile = print(program, lower_to_tile(program, program.kernels[0]));
  for (const char* load : {"load a[", "load b["}) CHECK(tile.find(load) == tile.rfind(load));
  CHECK(tile.find("keep0[g_k] = ") < tile.find("if block*8 + warp < 500"));  // by all threads
}

TEST_CASE("what is stored along long rows is stored while they are reduced", "[tile]") {
  const auto long_rows = [](int64_t count, const std::string& line) {
    const std::string n = std::to_string(count), all = std::to_string(5 * count);
    return parse_program(
        "program f on cuda {\n  input a: f32[" + all + "]\n  output y: bf16[" + all +
        "]\n  output z: f32[5]\n  kernel k rows(i0: 5) {\n    $1 = exp(load a[i0*" + n +
        " + j0])\n    r0: f32 = sum(j0: " + n + ") $1\n    store z[i0] = r0\n    store y[i0*" +
        n + " + j0] for (j0: " + n + ") = cast<bf16>(mul($1, f32 3.0))\n    schedule " + line +
        "\n  }\n  launch k\n  return y, z\n}\n");
  };
  for (const char* line :
       {"layouts rows grid · warp 2 loop serial 8 · register 32 · lane 32",
        "layouts rows grid loop cluster 2 · serial 4 · warp 4 · register 8 · lane 32",
        "layouts rows grid · register 2 · lane 2 loop warp 8 · register 64 · lane 16 from 2",
        "layouts rows grid · lane 8 loop serial 8 · warp 4 · register 64 · lane 4 from 8"}) {
    for (const int64_t count : {1025, 2040, 8000}) {
      INFO(line << " of " << count);
      const Program program = long_rows(count, line);
      const Tiles tiles = lower_to_tiles(program);
      CHECK_NOTHROW(verify(tiles));
      const std::vector<Tensor> inputs = {randn({5 * count})},
                                want = interpret(program, inputs),
                                got = interpret(tiles, inputs);
      CHECK((same_bits(got[0], want[0]) && same_bits(got[1], want[1])));
      const std::string tile = print(program, lower_to_tile(program, program.kernels[0]));
      CHECK(tile.find("store y[") < tile.find(" of lane ^ "));
    }
  }
}

TEST_CASE("halves go to threads by how long their rows and columns are", "[tile][schedule]") {
  const auto chosen = [](const Sizes& shape, int64_t axis) {
    return str(*softmax_of(DType::bf16, shape, axis).program.kernels[0].schedule);
  };
  CHECK(chosen({64, 12, 16384}, 1) ==  // a thread has all of two columns
        "layouts rows grid · warp 4 · lane 32 · vector 2 loop register 16");
  CHECK(chosen({64, 77, 2048}, 1) ==  // whole warps of single ones
        "layouts rows grid · lane 32 loop register 32 · warp 4");
  CHECK(chosen({64, 500, 2048}, 1) ==  // pairs
        "layouts rows grid · lane 8 · vector 2 loop register 16 · warp 8 · lane 4 from 8");
  CHECK(chosen({8, 1500, 4096}, 1) ==  // pairs too, by all the warps of a block
        "layouts rows grid · lane 8 · vector 2 loop register 32 · warp 16 · lane 4 from 8");
  CHECK(chosen({1, 1500, 1024}, 1) ==  // single ones, of which there are few
        "layouts rows grid · lane 8 loop register 64 · warp 8 · lane 4 from 8 resident=2");
  CHECK(chosen({100000, 49}, 1) ==  // odd rows are written by eight lanes
        "layouts rows grid · warp 4 · lane 4 from 8 loop register 8 · lane 8");
  CHECK(chosen({8, 1000, 4096}, 1) ==  // single ones of a chunk that is not whole
        "layouts rows grid · lane 16 loop register 64 · warp 8 · lane 2 from 16");
  CHECK(chosen({8, 1024, 4096}, 1) ==
        "layouts rows grid · lane 8 · vector 2 loop register 32 · warp 8 · lane 4 from 8");
}

TEST_CASE("random layouts keep the bits of random graphs", "[tile][fuzz]") {
  for (const FuzzFailure& failure : fuzz_layouts(1, 1000))
    FAIL_CHECK("seed " << failure.seed << ", " << failure.stage << "\n" << failure.text);
}

TEST_CASE("random layouts keep their bits as CUDA, thread by thread", "[tile][threads]") {
  for (const FuzzFailure& failure : fuzz_threads(1, 24, layouts_pipeline()))
    FAIL_CHECK("seed " << failure.seed << ", " << failure.stage << "\n" << failure.text);
}

namespace {

// What the tile interpreter says of a copy whose clusters have two blocks of a warp.
std::string error_of_cluster(const std::string& body) {
  const std::string text =
      "program f on cuda {\n  input x: f32[64]\n  output y: f32[64]\n"
      "  kernel k rows(i0: 64) {\n    store y[i0] = load x[i0]\n"
      "    schedule layouts rows grid · lane 32\n  }\n  launch k\n  return y\n}\n\n"
      "tile k grid 1 cluster 2 block 1 warps {\n  cluster t: f32[64]\n"
      "  i0: 64 = rank*32 + lane\n  $0 = load x[i0]\n" +
      body + "  store y[i0] = $0\n}\n";
  try {
    const Tiles tiles = parse_tiles(text);
    std::vector<float> x(64), y(64);
    std::vector<Memory> memory;
    for (std::vector<float>* values : {&x, &y})
      memory.push_back({reinterpret_cast<std::byte*>(values->data()), 64, DType::f32, {}, {}});
    run_tile(*tiles.of_kernel[0], memory);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("what is sent is read when all of it has come", "[tile]") {
  const std::string start = "  cluster_start\n", all = "  send t[lane*2 + (rank + 1)%2] = $0\n",
                    await = "  await t\n", read = "  $9 = t[lane*2 + rank]\n";
  CHECK(error_of_cluster(start + all + await + read) == "");
  CHECK_THAT(error_of_cluster(start + all + read + await),
             ContainsSubstring("reads t[0], which has not come"));
  CHECK_THAT(error_of_cluster(start + all + await + "  $9 = t[lane*2 + (rank + 1)%2]\n"),
             ContainsSubstring("which has not come"));  // to the other block
  // The rest is told before it runs.
  CHECK_THAT(error_of_cluster(all + await),
             ContainsSubstring("before the cluster has started"));
  CHECK_THAT(error_of_cluster(start + all), ContainsSubstring("nobody waits for t"));
  CHECK_THAT(error_of_cluster(start + "  if lane < 31 {\n" + all + "  }\n" + await),
             ContainsSubstring("nobody sends t[62]"));
  CHECK_THAT(error_of_cluster(start + all + all + await), ContainsSubstring("is sent twice"));
  CHECK_THAT(error_of_cluster(start + "  for q < 2 {\n" + all + "  }\n" + await),
             ContainsSubstring("is sent twice"));
  CHECK(error_of_cluster(start +
                         "  for q < 2 {\n  if lane/16 < q + 1 {\n  if q < lane/16 + 1 {\n" +
                         all + "  }\n  }\n  }\n" + await + read) == "");
  CHECK_THAT(error_of_cluster(start + "  t[lane*2 + rank] = $0\n" + await),
             ContainsSubstring("which nobody sends"));
}

TEST_CASE("blocks use each other's memory between barriers of the cluster alone", "[tile]") {
  const std::string own = "  t[lane*2 + rank] = $0\n", wait = "  cluster_barrier\n",
                    read = "  $9 = t[lane*2 + (rank + 1)%2]\n";
  CHECK(error_of_cluster(own + wait + read + wait) == "");
  CHECK_THAT(error_of_cluster(own + wait + read), ContainsSubstring("blocks end while others"));
  CHECK_THAT(error_of_cluster(own + read + wait), ContainsSubstring("before all blocks"));
  CHECK_THAT(error_of_cluster(wait + own + read + wait),
             ContainsSubstring("another writes between two barriers"));
  CHECK_THAT(error_of_cluster(wait + own + "  barrier\n" + read + wait),
             ContainsSubstring("another writes between two barriers"));
}

TEST_CASE("a maximum of one element, beside a scan, has no minus zero", "[tile]") {
  const Graph graph = parse_graph(
      "graph f(%0 x: f16[1,2,1]) {\n  %1: f16[1,2,1] = cumprod %0 {axis=0}\n"
      "  %2: f16[1,2,1] = max %0 {axes=[]}\n  return %1, %2\n}\n");
  const Program program =
      run_pipeline(until(default_pipeline(), "plan_memory"), graph, true, Target::Cuda).program;
  REQUIRE(program.kernels.size() == 1);
  const std::vector<Tensor> inputs = {full({1, 2, 1}, -0.0).to(float16)},
                            want = interpret(graph, inputs),
                            got = interpret(lower_to_tiles(program), inputs);
  for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(want[k], got[k]));
}

TEST_CASE("no branch asks a constant", "[tile]") {
  const Program program = parse_program(
      "program f on cuda {\n  input x: f32[2]\n  output y: f32[2]\n"
      "  kernel k rows(i0: 2) {\n    $1 = load x[i0]\n"
      "    store y[i0] = where(bool true, sin($1), $1)\n"
      "    schedule pointwise rows grid · warp 8 · lane 32 · vector 4\n  }\n"
      "  launch k\n  return y\n}\n");
  const Tiles tiles = lower_to_tiles(program);
  CHECK(parse_tiles(print(tiles)) == tiles);
}

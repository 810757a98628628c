// Rows that are reduced on a CPU are tile programs: they mean what their kernels do, read back as they
// print, and a tree over what is not there is refused.
#include "tests/catch.h"
#include "tests/tile/cpp_tiles.h"
#include "tests/tile/edited.h"
#include "tests/tile/random_points.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/verify.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// y = op of x's rows, and z = x - y where that is of the same dtype.
Program reduced(const std::string& op, const std::string& dtype, int rows, int length,
                const std::string& result, const std::string& schedule = "") {
  const bool same = result == dtype && dtype != "bool";
  const std::string type = str(dtype, "[", rows * length, "]");
  return parse_program(str("program f {\n  input x: ", type, "\n  output y: ", result, "[",
                           rows, "]\n", same ? "  output z: " + type + "\n" : "",
                           "  kernel k rows(i0: ", rows, ") {\n    r0: ", result, " = ", op,
                           "(j0: ", length, ") load x[i0*", length,
                           " + j0]\n    store y[i0] = r0\n",
                           same ? str("    store z[i0*", length, " + j0] for (j0: ", length,
                                      ") = sub(load x[i0*", length, " + j0], r0)\n")
                                : "",
                           "    schedule rows", schedule, "\n  }\n  launch k\n  return y",
                           same ? ", z" : "", "\n}\n"));
}

void check_row(const Program& program, bool compiles) {
  const Tiles tiles = lower_to_tiles(program);
  REQUIRE(has_tile(tiles));
  CHECK_NOTHROW(verify(tiles));
  CHECK(parse_tiles(print(tiles)) == tiles);
  const std::vector<Tensor> inputs = seeded_inputs(program, 3, {}),
                            want = interpret(program, inputs);
  CHECK(all_same(interpret(tiles, inputs), want));
  if (compiles) CHECK(all_same(run(tiles, inputs), want));
}

}  // namespace

TEST_CASE("a row's chunks are reduced in L1", "[tile][points]") {
  const std::string text = print(lower_to_tiles(reduced("sum", "f32", 3, 2500, "f32")));
  CHECK_THAT(text, ContainsSubstring("tile k units 3") &&
                       ContainsSubstring("l1 t_f32: f32[1024]") &&
                       ContainsSubstring("tree sum t_f32 x 452") &&
                       ContainsSubstring("tree sum part0_f32 x 3") &&
                       ContainsSubstring("r0 = part0_f32[0]"));
}

TEST_CASE("rows' tiles have the bits of their kernels", "[tile][points]") {
  const std::pair<const char*, const char*> kinds[] = {
      {"sum", "f32"},  {"sum_exp", "f32"}, {"max", "f32"}, {"min", "f64"},
      {"prod", "f64"}, {"sum", "bf16"},    {"max", "f16"}, {"sum_exp", "f64"}};
  for (const auto& [op, dtype] : kinds) {
    for (int length : {1, 7, 100, 1000, 1024, 1025, 2048, 5000}) {
      for (const char* schedule : {"", " unroll=1", " stream=1 grain=2"}) {
        INFO(op << " " << dtype << " " << length << schedule);
        check_row(reduced(op, dtype, 3, length, dtype, schedule),
                  length == 1000 || length == 5000);
      }
    }
  }
}

TEST_CASE("what is exact goes in any order", "[tile][points]") {
  const std::tuple<const char*, const char*, const char*> kinds[] = {
      {"sum", "i32", "i64"},   {"sum", "bool", "i64"},   {"max", "i8", "i8"},
      {"any", "bool", "bool"}, {"argmax", "f32", "i64"}, {"argmin", "bf16", "i64"},
      {"argmax", "i32", "i64"}};
  for (const auto& [op, dtype, result] : kinds) {
    for (int length : {1, 63, 64, 65, 1000}) {
      INFO(op << " " << dtype << " " << length);
      check_row(reduced(op, dtype, 3, length, result), length == 1000);
    }
  }
}

TEST_CASE("one tile of rows serves all sizes", "[tile][points]") {
  for (const char* op : {"sum", "max", "sum_exp", "prod"}) {
    const Program program = parse_program(
        str("program f[n: 1..6000, m: 1..64] {\n  input x: f32[m,n]\n  output y: f32[m]\n"
            "  output z: f32[m,n]\n  kernel k rows(i0: m) {\n    r0: f32 = ",
            op, "(j0: n) load x[i0*n + j0]\n    store y[i0] = r0\n",
            "    store z[i0*n + j0] for (j0: n) = sub(load x[i0*n + j0], r0)\n"
            "    schedule rows\n  }\n  launch k\n  return y, z\n}\n"));
    const Tiles tiles = lower_to_tiles(program);
    CHECK_NOTHROW(verify(tiles));
    CHECK(parse_tiles(print(tiles)) == tiles);
    for (const auto& shape :
         std::vector<Sizes>{{1, 1}, {3, 37}, {2, 1023}, {2, 1024}, {5, 1025}, {2, 5000}}) {
      INFO(op << " " << shape[1]);
      const std::vector<Tensor> inputs = {randn(shape)}, want = interpret(program, inputs);
      CHECK(all_same(interpret(tiles, inputs), want));
      if (shape[1] == 1025) CHECK(all_same(run(tiles, inputs), want));
    }
  }
}

TEST_CASE("rows that end early have no more elements than there are", "[tile][points]") {
  const Program program = parse_program(
      "program f {\n  input x: f32[3000]\n  output y: f32[3]\n  kernel k rows(i0: 3) {\n"
      "    $0 = lt(index[i0*1024 + j0], i64 3000)\n"
      "    r0: f32 = sum(j0: 1024) where($0, load x[i0*1024 + j0] if $0 else 0.0, f32 -0.0)\n"
      "    store y[i0] = r0\n    schedule rows\n  }\n  launch k\n  return y\n}\n");
  CHECK_THAT(print(lower_to_tiles(program)),
             ContainsSubstring("count0: 1025 = min(-i0*1024 + 3000, 1024)"));
  check_row(program, true);
}

TEST_CASE("loops over several axes go run by run", "[tile][points]") {
  const auto program = [](const std::string& loops, const std::string& index, int count) {
    return parse_program(str("program f {\n  input x: f32[", count, "]\n  output y: f32[1]\n",
                             "  kernel k rows(i0: 1) {\n    r0: f32 = sum(", loops, ") load x[",
                             index, "]\n    store y[i0] = r0\n",
                             "    schedule rows\n  }\n  launch k\n  return y\n}\n"));
  };
  for (const auto& [loops, index, count] :
       std::vector<std::tuple<const char*, const char*, int>>{
           {"j0: 30, j1: 100", "j1*30 + j0", 3000},
           {"j0: 40, j1: 64", "j0*64 + j1", 2560},
           {"j0: 900, j1: 3", "j0*3 + j1", 2700},
           {"j0: 3000", "j0 % 100*30 + j0/100", 3000},
           {"j0: 4096", "j0 % 64*64 + j0/64", 4096},
           {"j0: 4000", "(j0 + 24)/64*64 + (j0 + 24) % 64", 4024}}) {
    INFO(loops << " " << index);
    check_row(program(loops, index, count), true);
  }
}

TEST_CASE("random graphs' tiles of rows are sound, and mean what they say", "[tile][points]") {
  int seen = 0;
  for (uint64_t seed = 1000; seed <= 1150; seed++) {
    INFO("seed " << seed);
    const Program program = random_points(seed, 8);
    const Tiles tiles = lower_to_tiles(program);
    for (size_t k = 0; k < tiles.of_kernel.size(); k++)
      seen += tiles.of_kernel[k] && program.kernels[k].schedule->strategy == Strategy::Rows;
    CHECK_NOTHROW(verify(tiles));
    CHECK(parse_tiles(print(tiles)) == tiles);
    const std::vector<Tensor> inputs = seeded_inputs(program, seed, {});
    try {
      const std::vector<Tensor> want = interpret(program, inputs);
      CHECK(all_same(interpret(tiles, inputs), want));
    } catch (const Error&) {  // of an index out of range
      CHECK_THROWS_AS(interpret(tiles, inputs), Error);
    }
  }
  CHECK(seen > 20);
}

TEST_CASE("a tree over what is not there is refused", "[tile][points]") {
  const Tiles tiles = lower_to_tiles(reduced("sum", "f32", 3, 2500, "f32"));
  const std::string text = print(tiles);
  const auto refused = [&](const std::string& old, const std::string& by,
                           const std::string& why) { check_refused(text, old, by, why); };
  refused("tree sum t_f32 x 452", "tree sum t_f32 x 1025", "which has 1024");
  refused("tree sum t_f32 x 452", "tree sum t_f32 x i0", "which has 1024");
  refused("tree sum t_f32 x 452", "tree any t_f32 x 452", "reduction");
  refused("t_f32: f32[1024]", "t_f32: f32[1025]", "a power of two");
  refused("t_f32: f32[1024]", "t_f32: f32[2048] packed", "packed");
}

TEST_CASE("an integer that may be more than its name says shows nothing", "[tile][points]") {
  const std::string text = print(lower_to_tiles(parse_program(
      "program f {\n  input x: f32[4,50]\n  output y: f32[4,50]\n  kernel k rows(i0: 4) {\n"
      "    store y[i0*50 + j0] for (j0: 50) = exp(load x[i0*50 + j0])\n    schedule rows\n"
      "  }\n  launch k\n  return y\n}\n")));
  const std::string load = "$0 = load x[i0*50 + j0]";
  for (const std::string given :
       {"max(i0*100, j0*50)", "max(i0, j0)", "max(i0*100000 - 50, 0)", "min(i0*9 + 1, j0 + 9)"})
    check_refused(text, load, "q: 8 = " + given + "\n$0 = load x[i0*40 + q]",
                  "here, and is to be below 8");
  check_refused(text, load, "q: 8 = max(i0, j0)\n$0 = load x[i0*50 + 2*j0]",
                "leaves the buffer");
  // Nor where it was shown, once that is left.
  const std::string guarded = "q: 8 = max(i0, j0)\nif j0 < 8 {\n$1 = load x[q]\n}\n";
  CHECK_NOTHROW(parse_tiles(replaced(text, load, guarded + load)));
  check_refused(text, load, guarded + "$0 = load x[q]", "here, and is to be below 8");
}

TEST_CASE("rows that end early do so for any number of sums", "[tile][points]") {
  const int sums = 6;
  std::string program = "program f {\n  input x: f32[734,32,64]\n", kernel, launch;
  for (int k = 0; k < sums; k++) {
    program += str("  output y", k, ": f32[1472]\n");
    kernel += str("    r", 2 * k, ": f32 = sum(j0: 1024) where($0, mul($1, f32 ", k,
                  ".5), f32 -0.0)\n");
    kernel += str("    store y", k, "[i0*32 + i1] = r", 2 * k, "\n");
    launch += str(k > 0 ? ", y" : "y", k);
  }
  program += "  kernel k rows(i0: 46, i1: 32) {\n    $0 = lt(index[i0*1024 + j0], i64 46976)\n";
  program +=
      "    $1 = load x[i0*32768 + i1*64 + (j0/64)*2048 + j0%64] if $0 else 0.0\n" + kernel;
  program += "    schedule rows\n  }\n  launch k\n  return " + launch + "\n}\n";
  check_row(parse_program(program), true);
}

namespace {

// A kernel of these steps on a CPU.
Program steps_of_rows(const std::string& buffers, const std::string& rows,
                      const std::string& steps, const std::string& results,
                      const std::string& schedule = "rows") {
  return parse_program("program f {\n" + buffers + "  kernel k rows(" + rows + ") {\n" + steps +
                       "    schedule " + schedule + "\n  }\n  launch k\n  return " + results +
                       "\n}\n");
}

Program scanned(const std::string& op, const std::string& type, const std::string& result,
                int64_t count, const std::string& schedule) {
  return steps_of_rows(
      str("  input x: ", type, "[", count * 20, "]\n  output y: ", result, "[", count * 20,
          "]\n"),
      "i0: 20",
      str("    scan y[i0 + j0*20] for (j0: ", count, ") = ", op, " load x[i0 + j0*20]\n"), "y",
      schedule);
}

// Updates of rows of three places by as many numbers for each row; `shared`: places that rows share.
Program updated(const std::string& op, const std::string& type, int64_t updates, bool shared,
                const std::string& schedule) {
  const std::string place = shared ? "j1" : "j1*20 + i0";
  return steps_of_rows(
      str("  input x: ", type, "[60]\n  input k: i64[", updates * 20, "]\n  input d: ", type,
          "[", updates * 20, "]\n  output y: ", type, "[60]\n"),
      "i0: 20",
      str("    store y[i0 + j0*20] for (j0: 3) = load x[i0 + j0*20]\n",
          "    scatter y[i0 + at0*20; at0 = remainder(load k[", place,
          "], i64 3) < 3] for (j1: ", updates, ") = ", op, " load d[j1*20 + i0]\n"),
      "y", schedule);
}

}  // namespace

TEST_CASE("a row is scanned in groups of sixteen", "[tile][rows]") {
  const std::string text = print(lower_to_tiles(scanned("cumsum", "f32", "f32", 40, "rows")));
  INFO(text);
  CHECK_THAT(text, ContainsSubstring("for group < 2 {") &&
                       ContainsSubstring("for k < 16 unrolled {") &&
                       ContainsSubstring("for k: 16 = 0 .. 8 {"));
  for (const char* schedule : {"rows", "columns lanes=16", "columns lanes=32"}) {
    for (const int64_t count : {1, 15, 16, 17, 300, 4200}) {
      INFO(schedule << ", " << count);
      check_row(scanned("cumsum", "f32", "f32", count, schedule), true);
      // Of the other types a few; of those many that one width does, another does too.
      if (count == 15 || count == 16 || count == 4200) continue;
      if (count == 300 && std::string(schedule) == "columns lanes=16") continue;
      check_row(scanned("cumprod", "bf16", "bf16", count, schedule), count < 1000);
      check_row(scanned("cummax", "f32", "i64", count, schedule), true);
      check_row(scanned("logcumsumexp", "f64", "f64", count, schedule), count < 1000);
      check_row(scanned("cumsum", "i32", "i32", count, schedule), count < 1000);
    }
  }
}

TEST_CASE("turns that are done side by side change no place that another may", "[tile][rows]") {
  const std::string text =
      print(lower_to_tiles(updated("scatter_add", "f32", 9, false, "columns lanes=16")));
  INFO(text);
  const std::string place = "y[at0*20 + i0] = ";
  CHECK_NOTHROW(parse_tiles(text));
  const auto refused = [&](const std::string& by) {
    check_refused(text, place, by,
                  "a loop of vectors updates places that two turns may choose");
  };
  refused("y[at0*20] = ");
  refused("y[at0*20 + start] = ");
  const std::string store = print(lower_to_tiles(scanned("cumsum", "f32", "f32", 3, "rows")));
  const std::string loop = "for n < 20 vector {\n$90 = index[n]\nm: 20 = $90\ny[m] = $90\n}\n";
  CHECK_THROWS(parse_tiles(replaced(store, "for i0: 20", loop + "for i0: 20")));
}

TEST_CASE("updates go one after the other, thousands by chunks", "[tile][rows]") {
  const std::string text =
      print(lower_to_tiles(updated("scatter_add", "f32", 2500, true, "columns lanes=16")));
  INFO(text);
  CHECK_THAT(text, ContainsSubstring("update scatter_add $") &&
                       ContainsSubstring("x left < 3: y[at0*20 + start] = values") &&
                       ContainsSubstring("x16 of -start + stop"));
  for (const std::string schedule : {"rows", "columns lanes=16"}) {
    for (const bool shared : {true, false}) {
      for (const int64_t updates : {1, 100, 1025, 2500}) {
        INFO(schedule << ", " << shared << ", " << updates);
        if (schedule != "rows" && !shared && updates > 1024) continue;
        check_row(updated("scatter_add", "f32", updates, shared, schedule), true);
        check_row(updated("scatter_add", "bf16", updates, shared, schedule), updates > 2000);
        check_row(updated("scatter_max", "i32", updates, shared, schedule), updates < 1000);
        check_row(updated("scatter", "f64", updates, shared, schedule), updates < 1000);
      }
    }
  }
}

TEST_CASE("rows whose places do not lie side by side are no lanes", "[tile][rows]") {
  const auto apart = [](const std::string& schedule) {
    return steps_of_rows("  input k: i64[2000]\n  input d: f32[128000]\n  output y: f32[320]\n",
                         "i0: 64",
                         "    store y[i0 + (i0/8)*32 + j0*8] for (j0: 5) = f32 0.0\n"
                         "    scatter y[i0 + (i0/8)*32 + at0*8; at0 = remainder(load k[j1], "
                         "i64 5) < 5] for (j1: 2000) = scatter_add load d[j1*64 + i0]\n",
                         "y", schedule);
  };
  const std::string why = "schedule columns is for";
  check_row(apart("rows"), true);
  CHECK_THROWS_WITH(apart("columns lanes=16"), ContainsSubstring(why));
  CHECK_THROWS_WITH(updated("scatter_add", "f32", 1025, false, "columns lanes=16"),
                    ContainsSubstring(why));
}

TEST_CASE("a strip has the lanes that its line says, or is refused", "[tile][rows]") {
  const auto strips = [](int lanes) {
    return updated("scatter_add", "f32", 2500, true, str("columns lanes=", lanes));
  };
  CHECK_THAT(print(lower_to_tiles(strips(128))), ContainsSubstring(": f32[131072]\n"));
  CHECK_THROWS_WITH(strips(256),
                    ContainsSubstring("schedule columns lanes=256: arrays of 1056768 bytes, L2 "
                                      "has 1048576"));
  const Graph graph = parse_graph(
      "graph f(%0 x: f32[4096], %1 k: i64[2500,1], %2 d: f32[2500,4096]) {\n"
      "  %3: i64[2500,4096] = expand %1\n  %4: f32[3,4096] = expand %0\n"
      "  %5: f32[3,4096] = scatter_add %4, %3, %2 {axis=0}\n  return %5\n}\n");
  CHECK_NOTHROW(run_pipeline(default_pipeline(), graph, true, parse_machine("cpu:1")));
}

TEST_CASE("a place that is none changes nothing, and is told", "[tile][rows]") {
  const std::string text =
      "  input k: i64[2]\n  output y: f32[3]\n  kernel k rows() {\n"
      "    store y[j0] for (j0: 3) = f32 1.0\n"
      "    scatter y[at0; at0 = load k[j1] < 3] for (j1: 2) = scatter_add f32 2.0\n"
      "    schedule rows\n  }\n  launch k\n  return y\n}\n";
  const Tiles tiles = lower_to_tiles(parse_program("program f {\n" + text));
  for (const int64_t place : {-1, 3}) {
    const std::vector<Tensor> inputs = {tensor({int64_t{0}, place})};
    CHECK_THROWS_WITH(interpret(tiles, inputs), ContainsSubstring("out of range"));
    CHECK_THROWS_WITH(run(tiles, inputs), ContainsSubstring("out of range"));
  }
}

TEST_CASE("products of a row are added up in order", "[tile][rows]") {
  for (const char* type : {"f32", "bf16", "f64", "i8", "i64"}) {
    INFO(type);
    check_row(steps_of_rows(
                  str("  input a: ", type, "[210]\n  input b: ", type,
                      "[30]\n  output y: ", type, "[7]\n"),
                  "i0: 7",
                  str("    r0: ", type, " = dot(j0: 5, j1: 6) ",
                      "load a[i0*30 + j0*6 + j1], load b[j0*6 + j1]\n    store y[i0] = r0\n"),
                  "y"),
              true);
  }
}

TEST_CASE("an edited update is obeyed, or refused with its place", "[tile][rows]") {
  const std::string text =
      print(lower_to_tiles(updated("scatter_add", "f32", 2500, true, "columns lanes=16")));
  const auto refused = [&](const std::string& old, const std::string& by,
                           const std::string& why) { check_refused(text, old, by, why); };
  refused("x left < 3", "x left + 1 < 3", "updates of 16 elements are not all in");
  refused("x left < 3: y[at0*20 + start]", "x left < 4: y[at0*20 + start]",
          "leaves the buffer's");
  refused("values1 x16 of -start + stop", "values1 x16 of -start + stop + 1",
          "leaves the buffer's");
  refused("values1 x16 of -start + stop", "values1 x8 of -start + stop",
          "neighbours, not 1..8");
  refused("update scatter_add chosen", "update scatter chosen", "is no sum of a chunk's");
  refused("update scatter_add $", "update cumsum $", "scatter");
}

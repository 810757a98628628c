// How kernels are run: the strategy for each shape, and the rewrites before it.
#include "tiny_compile/schedule/policy.h"

#include "tests/catch.h"
#include "tests/schedule/as_scheduled.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/tile/lower.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

Program scheduled(const std::string& graph) {
  const Program program = schedule(fuse(lower(parse_graph("graph f" + graph))));
  verify(program);
  return program;
}

// How a GPU runs the first kernel.
std::string on_gpu(const std::string& graph) {
  return str(*as_scheduled("graph f" + graph).kernels[0].schedule);
}

Strategy strategy_of(const std::string& graph) {
  const Program program = scheduled(graph);
  REQUIRE(program.kernels.size() == 1);
  return program.kernels[0].schedule->strategy;
}

}  // namespace

TEST_CASE("pointwise work over any shape is one flat range", "[schedule]") {
  const Program program = scheduled(R"((%0 x: f32[64,32,16]) {
    %1: f32[64,32,16] = exp %0
    return %1
  })");
  REQUIRE(print(program, program.kernels[0]) == R"(  kernel exp_1 rows(i0: 32768) {
    store y1[i0] = exp(load x[i0])
    schedule pointwise grain=16384
  }
)");
}

TEST_CASE("reductions along memory run row by row, across it by columns", "[schedule]") {
  REQUIRE(strategy_of("(%0 x: f32[64,100]) {\n%1: f32[64] = sum %0 {axes=[1]}\nreturn %1\n}") ==
          Strategy::Rows);
  REQUIRE(
      strategy_of("(%0 x: f32[64,100]) {\n%1: f32[100] = sum %0 {axes=[0]}\nreturn %1\n}") ==
      Strategy::Columns);
  REQUIRE(strategy_of("(%0 x: f32[64,3]) {\n%1: f32[3] = sum %0 {axes=[0]}\nreturn %1\n}") ==
          Strategy::Rows);  // too few lanes
}

TEST_CASE("most of what is read says which way a kernel goes", "[schedule]") {
  const auto weighed = [](int64_t elements, int64_t columns) {  // sums of x, each row weighed
    const std::string x = str("f32[5,", elements, ",", columns, "]");
    return strategy_of(str("(%0 x: ", x, ", %1 w: f32[5,", elements, ",1]) {\n%2: ", x,
                           " = expand %1\n%3: ", x, " = mul %0, %2\n%4: f32[5,", columns,
                           "] = sum %3 {axes=[1]}\nreturn %4\n}"));
  };
  CHECK(weighed(100, 64) == Strategy::Columns);
  CHECK(weighed(100, 3) == Strategy::Rows);  // too few lanes
}

TEST_CASE("a chunk that goes over several axes has neighbours side by side too", "[schedule]") {
  const Graph graph = parse_graph(R"(graph f(%0 x: f32[32,512,576], %1 y: f32[32,576,512]) {
    %2: f32[32,512,576] = permute %1 {axes=[0,2,1]}
    %3: f32[32,512,576] = mul %0, %2
    %4: f32[576] = min %3 {axes=[0,1]}
    return %4
  })");
  const Machine gpu = default_machine(Target::Cuda);
  const Program program = schedule(fuse(for_machine(lower(graph), gpu)));
  CHECK_THAT(print(program, program.kernels[0]),
             Catch::Matchers::ContainsSubstring("(j0/512)*294912 + j0%512") &&
                 Catch::Matchers::ContainsSubstring("schedule layouts"));
}

TEST_CASE("a value of each row does not put rows in its own order", "[schedule]") {
  const Program program = scheduled(R"((%0 x: f32[90,7,32], %1 s: f32[90]) {
    %2: f32[90,1,1] = reshape %1
    %3: f32[90,7,32] = expand %2
    %4: f32[90,7,32] = mul %0, %3
    %5: f32[90,7] = max %4 {axes=[2]}
    return %5
  })");
  REQUIRE(program.kernels.size() == 1);
  CHECK_THAT(print(program, program.kernels[0]),
             Catch::Matchers::ContainsSubstring("rows(i0: 90, i1: 7)") &&
                 Catch::Matchers::ContainsSubstring("load x[i0*224 + i1*32 + j0]"));
}

TEST_CASE("a chunk's eighths are added from memory, but not where that is far and read once",
          "[schedule]") {
  const auto unroll_of = [](const std::string& graph) {
    return scheduled(graph).kernels[0].schedule->unroll;
  };
  CHECK(unroll_of("(%0 x: f32[512,4096]) {\n%1: f32[512] = sum %0 {axes=[1]}\nreturn %1\n}") ==
        8);
  CHECK(unroll_of(
            "(%0 x: f32[1024,4096]) {\n%1: f32[1024] = sum %0 {axes=[1]}\nreturn %1\n}") == 1);
  CHECK(unroll_of(
            "(%0 x: f32[1024,4096]) {\n%1: f32[1024,1] = sum %0 {axes=[1], keepdim=1}\n"
            "%2: f32[1024,4096] = expand %1\n%3: f32[1024,4096] = div %0, %2\nreturn %3\n}") ==
        8);
}

TEST_CASE("a matmul runs in tiles, of floats or integers; one of a few results row by row",
          "[schedule]") {
  REQUIRE(strategy_of("(%0 a: f32[8,9], %1 b: f32[9,7]) {\n%2: f32[8,7] = matmul %0, %1\n"
                      "return %2\n}") == Strategy::Tiles);
  REQUIRE(strategy_of("(%0 a: i32[8,9], %1 b: i32[9,7]) {\n%2: i32[8,7] = matmul %0, %1\n"
                      "return %2\n}") == Strategy::Tiles);
  REQUIRE(strategy_of("(%0 a: f32[2,900], %1 b: f32[900,3]) {\n%2: f32[2,3] = matmul %0, %1\n"
                      "return %2\n}") != Strategy::Tiles);
}

TEST_CASE(
    "a pointwise kernel's rows are ordered so that its store is contiguous along the last",
    "[schedule]") {
  const Program program = scheduled(
      R"((%0 x: f32[8,4] {strides=[1,8]}, %1 y: f32[8,4] {strides=[1,8]}, %2 z: f32[8,4] {strides=[1,8]}) {
    %3: f32[8,4] = add %0, %1
    %4: f32[8,4] = add %3, %2
    return %4
  })");
  REQUIRE(print(program, program.kernels[0]) == R"(  kernel add_4 rows(i0: 8, i1: 4) {
    store y4[i0*4 + i1] = add(add(load x[i0 + i1*8], load y[i0 + i1*8]), load z[i0 + i1*8])
    schedule pointwise grain=8192
  }
)");
}

TEST_CASE("a long sum alone becomes chunks and a finish, in two launches", "[schedule]") {
  const Program program =
      scheduled("(%0 x: f32[100,1000]) {\n%1: f32[] = sum %0 {axes=[0,1]}\nreturn %1\n}");
  REQUIRE(program.launches.size() == 2);
  REQUIRE(row_count(program.kernels[0]) == Expr(98));
  REQUIRE(program.kernels[1].name == "sum_1_finish");
}

TEST_CASE("scheduling what is scheduled changes nothing", "[schedule]") {
  const Program once = scheduled(R"((%0 x: f32[64,100]) {
    %1: f32[64,1] = max %0 {axes=[1], keepdim=1}
    %2: f32[64,100] = expand %1
    %3: f32[64,100] = sub %0, %2
    %4: f32[] = sum %3 {axes=[0,1]}
    return %3, %4
  })");
  REQUIRE(schedule(once) == once);
}

TEST_CASE("a kernel that has a schedule is run so, and those beside it get one", "[schedule]") {
  // Without the first line's schedule: one axis, pointwise, two chunks and a finish.
  const std::string text = R"(program f {
  input x: f32[64,1000]
  output y: f32[64,1000]
  output z: f32[]
  kernel a rows(i0: 64, i1: 1000) {
    store y[i0*1000 + i1] = exp(load x[i0*1000 + i1])
    schedule rows
  }
  kernel b rows() {
    r0: f32 = sum(j0: 64, j1: 1000) load x[j0*1000 + j1]
    store z[0] = r0
    schedule rows grain=7
  }
  launch a
  launch b
  return y, z
}
)";
  const Program given = parse_program(text);
  CHECK(print(given) == text);
  CHECK(schedule(given) == given);
  CHECK(fuse(given) == given);
  Program half = given;
  half.kernels[1].schedule.reset();
  const Program chosen = schedule(half);
  REQUIRE(chosen.kernels.size() == 3);
  CHECK(chosen.kernels[0] == given.kernels[0]);
  CHECK(chosen.kernels[1].schedule.has_value());
}

TEST_CASE("each target gets its own fields, and a chosen schedule is printed", "[schedule]") {
  const std::string graph =
      "graph g(%0 x: f32[64,100]) {\n  %1: f32[64] = sum %0 {axes=[1]}\n  return %1\n}\n";
  for (const auto& [target, line] :
       {std::pair{Target::Cpp, "schedule rows grain=321\n"},
        {Target::Cuda, "schedule layouts rows grid · warp 4 loop lane 32 · vector 4\n"}}) {
    const Program program = as_scheduled(graph, target);
    INFO(print(program));
    CHECK(print(program).find(line) != std::string::npos);
    CHECK(parse_program(print(program)) == program);
  }
}

TEST_CASE("blocks of a cluster share few odd columns, and long rows that are read again",
          "[schedule]") {
  const auto text_of = [](const std::string& graph) {
    return print(as_scheduled("graph g" + graph));
  };
  const auto sums = [&](int64_t columns) {
    return text_of(str("(%0 x: f16[2839,", columns, "], %1 y: f16[2839,", columns,
                       "]) {\n  %2: f16[2839,", columns, "] = mul %0, %1\n  %3: f16[", columns,
                       "] = sum %2 {axes=[0]}\n  return %3\n}\n"));
  };
  CHECK_THAT(sums(1537),
             ContainsSubstring("rows grid · lane 32 loop cluster 4 · register 32 · warp 32\n"));
  CHECK_THAT(sums(20001), !ContainsSubstring("cluster 4"));  // they fill the machine
  CHECK_THAT(
      text_of("(%0 x: f32[700,12000]) {\n  %1: f32[700,1] = sum %0 {axes=[1], keepdim=1}\n"
              "  %2: f32[700,12000] = expand %1\n  %3: f32[700,12000] = div %0, %2\n"
              "  return %3\n}\n"),
      ContainsSubstring(
          "rows grid loop warp 6 · cluster 2 · register 8 · lane 32 · vector 4 resident="));
}

TEST_CASE("long rows of places go to all warps alike, and sums of them in chunks",
          "[schedule]") {
  const auto line_of = [](const std::string& op, const char* type, int64_t rows) {
    return on_gpu(str("(%0 x: f32[", rows, ",1280]) {\n  %1: ", type, "[", rows, "] = ", op,
                      " %0 {axes=[1]}\n  return %1\n}\n"));
  };
  CHECK(line_of("sum", "f32", 9000) ==
        "layouts rows grid · warp 4 from 2 loop warp 2 · register 8 · lane 32 · vector 4");
  CHECK(line_of("max", "f32", 9000) ==
        "layouts rows grid · warp 4 from 2 loop register 8 · warp 2 · lane 32 · vector 4");
  CHECK(line_of("argmax", "i64", 9000) ==  // twice as many a thread
        "layouts rows grid · warp 8 loop register 16 · lane 32 · vector 4");
  CHECK(line_of("argmax", "i64", 3000) ==  // but of few rows
        "layouts rows grid · warp 4 from 2 loop register 8 · warp 2 · lane 32 · vector 4");
}

TEST_CASE("what a mask cuts off crosses rows by way of shared memory as well", "[schedule]") {
  // Chunks of a sum over two axes, the last of which is not whole: x lies along the loops, in pieces of
  // 195, y along the rows.
  const std::string schedule =
      on_gpu(R"((%0 x: bf16[2986,195,128] {strides=[24960,1,195]}, %1 y: bf16[2986,195,128]) {
  %2: bf16[2986,195,128] = mul %0, %1
  %3: bf16[128] = sum %2 {axes=[0,1]}
  return %3
})");
  CHECK_THAT(schedule, ContainsSubstring("lane 32 via load 2 rows lane 2 · vector 8"));
  // Along loops of which the last has four elements.
  CHECK_THAT(
      on_gpu(
          R"((%0 x: f32[4096,128,64], %1 y: f32[4096,128,4] {strides=[1,16384,4096]}, %2 v: f32[4096,128,4]) {
  %3: f32[4096,128,4] = slice %0 {axis=2, step=1, start=0, stop=4}
  %4: f32[4096,128,4] = add %3, %2
  %5: f32[4096,128,4] = mul %4, %1
  %6: f32[4096] = sum %5 {axes=[1,2]}
  return %6
})"),
      ContainsSubstring("via load 3 rows lane 2 · vector 4"));
}

TEST_CASE("what crosses rows may be stored by more loops, or read where data says",
          "[schedule]") {
  const auto first_of = [](const std::string& value, const std::string& store) {
    return str(
        *schedule(
             parse_program(str(
                 "program f on cuda {\n  input x: f32[512,4096]\n  input z: f32[4096,512]\n",
                 "  input n: i64[512]\n  output y: f32[4096,1024]\n",
                 "  kernel k rows(i0: 4096) {\n    $0 = mul(load x[i0 + j0*4096], ", value,
                 ")\n    r0: f32 = sum(j0: 512) $0\n    ", store,
                 "\n  }\n  launch k\n  return y\n}\n")))
             .kernels[0]
             .schedule);
  };
  CHECK_THAT(
      first_of("load z[i0*512 + j0]", "store y[i0*1024 + j0*2 + j1] for (j0: 512, j1: 2) = r0"),
      ContainsSubstring("layouts"));
  CHECK_THAT(first_of("load z[i0*512 + at0; at0 = load n[j0] < 512]",
                      "store y[i0*1024 + j1] for (j1: 1024) = r0"),
             ContainsSubstring("layouts"));
}

TEST_CASE("columns that begin anywhere are held by whole warps, others by halves of them",
          "[schedule]") {
  const auto softmax = [](const std::string& type, int64_t length, int64_t columns) {
    const std::string all = str(type, "[4,", length, ",", columns, "]"),
                      one = str(type, "[4,1,", columns, "]");
    return on_gpu(str("(%0 x: ", all, ") {\n  %1: ", one, " = max %0 {axes=[1], keepdim=1}\n",
                      "  %2: ", all, " = expand %1\n  %3: ", all, " = sub %0, %2\n  %4: ", all,
                      " = exp %3\n  %5: ", one, " = sum %4 {axes=[1], keepdim=1}\n  %6: ", all,
                      " = expand %5\n  %7: ", all, " = div %4, %6\n  return %7\n}\n"));
  };
  CHECK(softmax("f32", 1000, 4096) ==
        "layouts rows grid · lane 16 loop register 64 · warp 8 · lane 2 from 16");
  CHECK(softmax("f32", 1000, 3073) == "layouts rows grid · lane 32 loop register 64 · warp 16");
  CHECK(softmax("bf16", 1000, 8192) ==
        "layouts rows grid · lane 16 loop register 64 · warp 8 · lane 2 from 16");
}

TEST_CASE("a thread has two rows of few elements, where there are threads enough",
          "[schedule]") {
  const auto window = [](int64_t rows) {
    const std::string shape = str("bf16[", rows, ",395");
    return on_gpu(str("(%0 x: bf16[", rows, ",791]) {\n  %1: ", shape,
                      ",3] = window %0 {axis=1, step=2, size=3}\n  %2: ", shape,
                      "] = sum %1 {axes=[2]}\n  return %2\n}\n"));
  };
  CHECK(window(16384) == "layouts rows grid · register 2 · warp 8 · lane 32 loop register 4");
  CHECK(window(64) == "layouts rows grid · warp 8 · lane 32 loop register 4");
}

TEST_CASE("lanes never go along what lies across memory", "[schedule]") {
  for (const char* op : {"argmax", "max", "sum"}) {
    for (int length : {1432, 4096, 21841, 70001}) {
      const std::string x = str("f32[", length, ",4096]"),
                        y = str(std::string(op) == "argmax" ? "i64" : "f32", "[4096]"),
                        schedule = on_gpu(str("(%0 x: ", x, ") {\n  %1: ", y, " = ", op,
                                              " %0 {axes=[0]}\n  return %1\n}"));
      INFO(op << " of " << length << ": " << schedule);
      const size_t loop = schedule.find("loop");
      CHECK((loop == std::string::npos || schedule.find("lane 32", loop) == std::string::npos));
    }
  }
}

TEST_CASE("lanes read a row's lines together, where a line is more than one reads",
          "[schedule]") {
  const auto line_of = [](const std::string& type, int64_t length) {
    const std::string shape = str("[1000000,", length, "]");
    return on_gpu(str("(%0 x: ", type, shape, ") {\n  %1: ", type,
                      "[1000000,1] = max %0 {axes=[1], keepdim=1}\n  %2: ", type, shape,
                      " = expand %1\n  %3: ", type, shape, " = sub %0, %2\n  return %3\n}\n"));
  };
  CHECK(line_of("f32", 12) ==
        "layouts rows grid · warp 4 · lane 32 loop register 4 · vector 4");
  CHECK(line_of("f32", 32) ==
        "layouts rows grid · warp 4 · lane 8 from 4 loop register 2 · lane 4 · vector 4");
  CHECK(line_of("f32", 30) ==
        "layouts rows grid · warp 4 · lane 4 from 8 loop register 2 · lane 8 · vector 2");
  CHECK(line_of("bf16", 32) ==
        "layouts rows grid · warp 4 · lane 16 from 2 loop register 2 · lane 2 · vector 8");
}

TEST_CASE("an array that begins anywhere keeps no other from whole accesses", "[schedule]") {
  const auto text_of = [](const char* first, const char* second) {
    return print(schedule(parse_program(str(
        "program f on cuda {\n  input a: f16[90000,12]", first, "\n  input b: f16[90000,12]",
        second, "\n  output y: f16[90000,12]\n  kernel k rows(i0: 90000) {\n",
        "    $2 = add(load a[i0*12 + j0], load b[i0*12 + j0])\n",
        "    r0: f16 = max(j0: 12) $2\n",
        "    store y[i0*12 + j0] for (j0: 12) = sub($2, r0)\n",
        "  }\n  launch k\n  return y\n}\n"))));
  };
  CHECK_THAT(text_of(" align=2", ""), ContainsSubstring("lane 4 · vector 4"));
  CHECK_THAT(text_of(" align=2", " align=2"), !ContainsSubstring("vector"));
}

TEST_CASE("a lane has a window that lies in its neighbours'", "[schedule]") {
  CHECK(on_gpu("(%0 x: f32[8192,1040]) {\n"
               "  %1: f32[8192,513,16] = window %0 {axis=1, step=2, size=16}\n"
               "  %2: f32[8192,513] = sum %1 {axes=[2]}\n  return %2\n}\n") ==
        "layouts rows grid · warp 4 · lane 32 loop register 8 · vector 2");
}

TEST_CASE("all of a warp has an odd row, but of what takes long to compute", "[schedule]") {
  const auto line_of = [](int64_t length, const std::string& op) {
    const std::string shape = str("f32[190000,", length, "]");
    return on_gpu(str("(%0 x: ", shape, ") {\n  %1: ", shape, " = ", op, " %0\n",
                      "  %2: f32[190000,1] = sum %1 {axes=[1], keepdim=1}\n  %3: ", shape,
                      " = expand %2\n  %4: ", shape, " = sub %1, %3\n  return %4\n}\n"));
  };
  CHECK(line_of(497, "abs") ==
        "layouts rows grid · warp 4 loop register 16 · lane 32 resident=6");
  CHECK(line_of(497, "exp") ==
        "layouts rows grid · warp 4 · lane 2 from 16 loop register 32 · lane 16 resident=5");
  CHECK(line_of(127, "abs") ==
        "layouts rows grid · warp 4 · lane 2 from 16 loop register 8 · lane 16 resident=7");
}

TEST_CASE("columns that are read once have enough under way", "[schedule]") {
  const auto line_of = [](const std::string& dtype, int64_t rows, int64_t columns) {
    return on_gpu(str("(%0 x: ", dtype, "[", rows, ",700,", columns, "]) {\n  %1: ", dtype, "[",
                      rows, ",", columns, "] = max %0 {axes=[1]}\n  return %1\n}\n"));
  };
  CHECK(
      line_of("f32", 64, 768) ==
      "layouts rows grid · lane 32 · vector 2 loop register 16 · serial 8 · warp 8 resident=2");
  CHECK(line_of("f32", 128, 769) ==  // rows begin anywhere: a thread has four neighbours
        "layouts rows grid · register 4 · lane 32 loop register 8 · serial 32 · warp 4 "
        "resident=4");
  CHECK(line_of("f32", 64, 513) ==  // and by more warps, where there are fewer
        "layouts rows grid · register 4 · lane 32 loop register 8 · serial 16 · warp 8 "
        "resident=2");
  CHECK(line_of("bf16", 64, 1024) ==  // one array of halves is read as well without being told
        "layouts rows grid · lane 16 · vector 4 loop register 8 · serial 8 · warp 8 · "
        "lane 2 from 16");
  CHECK(line_of("bf16", 64, 769) ==
        "layouts rows grid · lane 32 loop register 32 · serial 4 · warp 8 resident=4");
}

TEST_CASE("columns of halves go by fours where they are many, and light or not written",
          "[schedule]") {
  const auto logsumexp = [](int64_t columns) {
    const std::string one = str("bf16[1,", columns, "]");
    return on_gpu(str("(%0 x: bf16[383,", columns, "]) {\n  %1: ", one,
                      " = max %0 {axes=[0], keepdim=1}\n  %2: ", one,
                      " = sum_exp %0 {axes=[0], keepdim=1}\n  %3: ", one,
                      " = log %2\n  %4: ", one, " = add %1, %3\n  return %4\n}\n"));
  };
  CHECK(logsumexp(443992) ==
        "layouts rows grid · lane 8 · vector 4 loop register 16 · warp 8 · lane 4 from 8");
  CHECK(logsumexp(4096) ==
        "layouts rows grid · lane 8 · vector 2 loop register 16 · warp 8 · lane 4 from 8");
}

TEST_CASE("threads that hold a column and meet have a block, and registers, to themselves",
          "[schedule]") {
  const auto softmax = [](const std::string& dtype, int64_t length, int64_t columns) {
    const std::string all = str(dtype, "[", length, ",", columns, "]"),
                      one = str(dtype, "[1,", columns, "]");
    return on_gpu(str("(%0 x: ", all, ") {\n  %1: ", one, " = max %0 {axes=[0], keepdim=1}\n",
                      "  %2: ", all, " = expand %1\n  %3: ", all, " = sub %0, %2\n  %4: ", all,
                      " = exp %3\n  %5: ", one, " = sum %4 {axes=[0], keepdim=1}\n  %6: ", all,
                      " = expand %5\n  %7: ", all, " = div %4, %6\n  return %7\n}\n"));
  };
  CHECK(softmax("f32", 256, 65536) ==
        "layouts rows grid · lane 16 · vector 2 loop register 32 · warp 4 · lane 2 from 16 "
        "resident=4");
  CHECK(softmax("bf16", 640, 65536) ==
        "layouts rows grid · lane 8 · vector 2 loop register 32 · warp 8 · lane 4 from 8 "
        "resident=2");
  CHECK(softmax("f32", 150, 65535) ==  // by whole warps they are neighbours
        "layouts rows grid · warp 2 from 4 · lane 32 loop register 64 · warp 4");
}

TEST_CASE("blocks that read packs of halves have more under way, where three fill their turns",
          "[schedule]") {
  const auto sum = [](int64_t columns) {
    return on_gpu(str("(%0 x: bf16[1024,", columns, "]) {\n  %1: bf16[", columns,
                      "] = max %0 {axes=[0]}\n  return %1\n}\n"));
  };
  const std::string eights =
      "layouts rows grid · lane 16 · vector 4 loop register 8 · serial 8 · warp 8 · lane 2 "
      "from 16";
  const std::string sixteens =
      "layouts rows grid · lane 16 · vector 4 loop register 16 · serial 4 · warp 8 · lane 2 "
      "from 16 "
      "resident=3";
  CHECK(sum(64 * 132 * 3) == sixteens);
  CHECK(sum(64 * 132 * 7 / 2) == eights);  // a fourth block would have a turn to itself
  CHECK(sum(64 * 132 * 6) == sixteens);
}

TEST_CASE("columns of halves that three reductions go over are read again in wide pieces",
          "[schedule]") {
  const auto statistics = [](const std::string& dtype) {
    const std::string x = dtype + "[576,32768]", one = dtype + "[32768]";
    return on_gpu(str("(%0 x: ", x,
                      ") {\n  %1: f32[576,32768] = cast %0\n"
                      "  %2: f32[32768] = sum %1 {axes=[0]}\n  %3: ",
                      one, " = min %0 {axes=[0]}\n  %4: ", one,
                      " = max %0 {axes=[0]}\n  %5: f32[1,32768] = reshape %2\n"
                      "  %6: f32[576,32768] = expand %5\n  %7: f32[576,32768] = sub %1, %6\n"
                      "  %8: f32[576,32768] = mul %7, %7\n"
                      "  %9: f32[32768] = sum %8 {axes=[0]}\n  return %9, %3, %4\n}\n"));
  };
  CHECK(statistics("bf16") ==
        "layouts rows grid · lane 16 · vector 2 loop register 32 · serial 2 · warp 8 · "
        "lane 2 from 16");
  CHECK(statistics("f32") ==  // held
        "layouts rows grid · lane 16 loop register 64 · warp 8 · lane 2 from 16");
}

TEST_CASE("places of long rows have half the warps, where rows are many", "[schedule]") {
  CHECK(on_gpu("(%0 x: f32[1024,32064]) {\n  %1: i64[1024] = argmax %0 {axes=[1]}\n"
               "  return %1\n}\n") ==
        "layouts rows grid loop serial 8 · warp 4 · register 8 · lane 32 · vector 4");
}

TEST_CASE("columns that lie in each other are a block's", "[schedule]") {
  const auto line_of = [](int64_t columns) {
    return on_gpu(str("(%0 x: f32[1000,1000,", columns, "]) {\n  %1: f32[1000,", columns,
                      "] = sum %0 {axes=[1]}\n  return %1\n}\n"));
  };
  CHECK(line_of(7) == "layouts rows grid · warp 16 loop register 32 · lane 32 resident=2");
  CHECK(line_of(9).find("warp 16") == std::string::npos);  // neighbours make up a sector
}

TEST_CASE("heavy points have two packs a thread, what is read one by one four", "[schedule]") {
  const auto line_of = [](int64_t columns, const std::string& op, const std::string& dtype) {
    const std::string shape = str(dtype, "[20000,", columns, "]");
    return on_gpu(str("(%0 x: ", shape, ", %1 b: ", dtype, "[", columns, "]) {\n  %2: ", shape,
                      " = expand %1\n  %3: ", shape, " = add %0, %2\n  %4: ", shape, " = ", op,
                      " %3\n  return %4\n}\n"));
  };
  CHECK(line_of(1024, "neg", "bf16") == "pointwise rows grid · warp 8 · lane 32 · vector 8");
  CHECK(line_of(1024, "gelu", "bf16") ==
        "pointwise rows serial 2 · grid · warp 4 · lane 32 · vector 8 resident=16");
  CHECK(line_of(1023, "gelu", "bf16") ==
        "pointwise rows serial 4 · grid · warp 4 · lane 32 · vector 8 resident=16");
}

TEST_CASE("there are as many warps as chunks of a row that is read once", "[schedule]") {
  const auto line_of = [](int64_t length) {
    return on_gpu(str("(%0 x: f32[3000,", length, "]) {\n",
                      "  %1: f32[3000] = sum %0 {axes=[1]}\n  return %1\n}\n"));
  };
  CHECK(line_of(9216) == "layouts rows grid loop warp 9 · register 8 · lane 32 · vector 4");
  CHECK(line_of(8192) == "layouts rows grid loop warp 8 · register 8 · lane 32 · vector 4");
  CHECK_THAT(line_of(13312), ContainsSubstring("serial 2 · warp 8"));
}

TEST_CASE("a warp has a row and the parts of it that other loops go over", "[schedule]") {
  const auto line_of = [](const char* type, const char* bytes, int64_t rows) {
    const std::string r = std::to_string(rows);
    return str(
        *schedule(parse_program("program f on cuda {\n  input x: " + std::string(type) + "[" +
                                r + ",2048]\n  output y: " + bytes + "[" + r +
                                ",2048]\n  kernel k rows(i0: " + r +
                                ") {\n    $0 = cast<f32>(load x[i0*2048 + j0])\n"
                                "    r0: f32 = sum(j0: 2048) $0\n"
                                "    r1: f32 = sum(j1: 1024) cast<f32>(load x[i0*2048 + "
                                "j1])\n    store y[i0*2048 + j0] for (j0: 2048) = "
                                "mul(sub($0, r0), r1)\n  }\n  launch k\n  return y\n}\n"))
             .kernels[0]
             .schedule);
  };
  CHECK(line_of("bf16", "f32", 4096) ==
        "layouts rows grid · warp 4 loop register 16 · lane 32 · vector 4 "
        "loop register 8 · lane 32 · vector 4");
  CHECK_THAT(line_of("bf16", "f32", 100), ContainsSubstring("warp 2"));  // few rows
}

TEST_CASE("lanes read whole accesses of the rows that data chooses", "[schedule]") {
  const auto line_of = [](const std::string& place) {
    return str(*schedule(parse_program(
                             "program f on cuda {\n  input t: bf16[32000,2048]\n"
                             "  input i: i64[128,197]\n  output y: bf16[128,2048]\n"
                             "  kernel k rows(i0: 128, i1: 2048) {\n    r0: f32 = sum(j0: 197) "
                             "cast<f32>(load t[" +
                             place +
                             "])\n    store y[i0*2048 + i1] = cast<bf16>(r0)\n  }\n"
                             "  launch k\n  return y\n}\n"))
                    .kernels[0]
                    .schedule);
  };
  CHECK(line_of("at0*2048 + i1; at0 = load i[i0*197 + j0] < 32000") ==
        "layouts rows grid · lane 32 · vector 8 loop register 8 · serial 4 · warp 8");
  CHECK(line_of("i0*2048 + j0*262144 + i1") ==
        "layouts rows grid · lane 16 · vector 4 "
        "loop register 8 · serial 2 · warp 8 · lane 2 from 16");
}

TEST_CASE("a warp has a chunk of long columns where there are many of both", "[schedule]") {
  const auto sum_down = [](const std::string& type, const std::string& result) {
    return on_gpu("(%0 x: " + type + ") {\n%1: " + result +
                  " = sum %0 {axes=[0]}\nreturn %1\n}");
  };
  CHECK(sum_down("f32[32768,16384]", "f32[16384]") ==
        "layouts rows grid · lane 32 · vector 2 loop serial 2 · warp 16 · register 16 · serial "
        "64");
  CHECK(sum_down("bf16[8192,20000]", "bf16[20000]") ==
        "layouts rows grid · lane 16 · vector 4 loop warp 8 · register 16 · serial 32 · lane 2 "
        "from 16");
  CHECK_THAT(sum_down("f32[9000,20001]", "f32[20001]"),
             ContainsSubstring("register 32 · warp 32"));
}

TEST_CASE("long rows that are read again share a cluster until L2 keeps them", "[schedule]") {
  const auto normalise = [](const std::string& type, const std::string& sums) {
    return on_gpu("(%0 x: " + type + ") {\n%1: " + sums +
                  " = sum %0 {axes=[1], keepdim=1}\n%2: " + type + " = expand %1\n%3: " + type +
                  " = div %0, %2\nreturn %3\n}");
  };
  CHECK_THAT(normalise("f32[200,200000]", "f32[200,1]"),  // .8 MB each
             ContainsSubstring("serial 2 · cluster 8 · warp 16"));
  CHECK_THAT(normalise("f32[320,135000]", "f32[320,1]"),
             ContainsSubstring("serial 4 · cluster 4 · warp 16"));
  CHECK_THAT(normalise("bf16[300,135000]", "bf16[300,1]"),
             ContainsSubstring("cluster 2 · warp 16"));
  CHECK_THAT(normalise("bf16[140,135000]", "bf16[140,1]"),  // stay there
             !ContainsSubstring("cluster"));
}

TEST_CASE("a product's tiles are as large as leaves all multiprocessors one", "[schedule]") {
  const auto product = [](int64_t rows, int64_t columns, const std::string& dtype) {
    return on_gpu(str("(%0 x: ", dtype, "[", rows, ",64], %1 y: ", dtype, "[64,", columns,
                      "]) {\n%2: ", dtype, "[", rows, ",", columns,
                      "] = matmul %0, %1\nreturn %2\n}"));
  };
  CHECK(product(4096, 4096, "f32") == "tiles each=8 slice=8");
  CHECK(product(1024, 1024, "f32") == "tiles");
  CHECK(product(512, 512, "bf16") == "tiles each=2 slice=32");
  CHECK(product(4096, 4096, "f64") == "tiles");
}

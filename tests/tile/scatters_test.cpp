// Rows that threads of a GPU scatter together: the interpreter's bits by the tile's interpreter and thread by thread,
// under every schedule, and what an edited tile may not do.
#include "tests/codegen/cuda_threads.h"
#include "tests/tile/edited.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/loops/scatter_rules.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/tiles.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;
using Catch::Matchers::ContainsSubstring;

namespace {

// So many places below `targets`; of few values, where they are to be crowded.
Tensor places(const Sizes& shape, int64_t targets, int64_t crowd = 0) {
  const Tensor some =
      (rand(shape) * static_cast<double>(crowd > 0 ? crowd : targets)).to(int64);
  return crowd > 0 ? some * (targets / crowd) : some;
}

Tensor values(const Sizes& shape, DType type) { return (randn(shape) * 8).to(type); }

using Scatter = Tensor (*)(const Operand&, int64_t, const Operand&, const Operand&);

Function along(Scatter op, int64_t axis) {
  return [=](In i) { return Out{op(i[0], axis, i[1], i[2])}; };
}

// Another schedule for what scatters.
Pipeline scheduled(const Schedule& schedule) {
  return insert_after(default_pipeline(), "schedule",
                      {"edited", ProgramPass([=](const Program& program) {
                         Program result = program;
                         for (Kernel& kernel : result.kernels) {
                           const bool scatters = kernel.steps.back().kind == StepKind::Scatter;
                           if (scatters) kernel.schedule = schedule;
                         }
                         return result;
                       })});
}

// By all who can say: the tile's interpreter and the threads; the text comes back as it was.
Staged check(const Function& function, const std::vector<Tensor>& inputs,
             const Pipeline& pipeline = default_pipeline()) {
  Staged all = check_bits(function, inputs, pipeline);
  const Tiles tiles = lower_to_tiles(all.program);
  CHECK(parse_tiles(print(tiles)) == tiles);
  const std::vector<Tensor> want = interpret(trace(function, inputs, "f").graph, inputs),
                            got = interpret(tiles, inputs);
  for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(got[k], want[k]));
  return all;
}

void check_ways(const Staged& all, const std::vector<ScatterBy>& ways) {
  std::vector<ScatterBy> found;
  for (const Kernel& kernel : all.program.kernels) {
    if (kernel.steps.back().kind == StepKind::Scatter)
      found.push_back(scatters_by(all.program, kernel));
  }
  CHECK(found == ways);
}

const std::vector<ScatterBy> kChunks = {ScatterBy::Chunks}, kTables = {ScatterBy::Tables};

}  // namespace

TEST_CASE("rows with places of their own are scattered in chunks", "[tile][threads][scatter]") {
  manual_seed(1);
  for (DType type : {float32, float64, bfloat16, float16, int8, uint8, int32, int64}) {
    INFO(c_type(type));
    check_ways(check(along(scatter_add, 1),
                     {values({3, 50}, type), places({3, 200}, 50), values({3, 200}, type)}),
               kChunks);
  }
  for (int64_t updates : {1, 2, 7, 31, 32, 33, 100, 1000})
    check_ways(check(along(scatter_add, 1), {values({5, 60}, float32), places({5, updates}, 60),
                                             values({5, updates}, float32)}),
               kChunks);
}

TEST_CASE("later chunks are added up before they are added to a target",
          "[tile][threads][scatter]") {
  manual_seed(2);
  for (DType type : {float32, bfloat16}) {
    for (int64_t crowd : {0, 1, 3})
      check_ways(
          check(along(scatter_add, 1), {values({2, 5000}, type), places({2, 2500}, 5000, crowd),
                                        values({2, 2500}, type)}),
          kChunks);
  }
}

TEST_CASE("of updates without an order of chunks the last comes last",
          "[tile][threads][scatter]") {
  manual_seed(3);
  const auto greatest = [](In i) { return Out{scatter_reduce(i[0], 1, i[1], i[2], "amax")}; };
  const auto product = [](In i) { return Out{scatter_reduce(i[0], 0, i[1], i[2], "prod")}; };
  check_ways(check(along(scatter, 1), {values({3, 40}, float32), places({3, 1500}, 40),
                                       values({3, 1500}, float32)}),
             kChunks);
  check_ways(check(greatest, {values({3, 400}, bfloat16), places({3, 1300}, 400),
                              values({3, 1300}, bfloat16)}),
             kChunks);
  check_ways(
      check(product, {values({30, 9}, float64), places({70, 9}, 30), values({70, 9}, float64)}),
      kChunks);
}

TEST_CASE("rows that lie side by side are read across", "[tile][threads][scatter]") {
  manual_seed(7);
  for (int64_t updates : {3, 40, 1300}) {
    for (int beside : {1, 2, 4}) {  // a warp has 32, 2 and 1 rows; 4 is the default
      if (beside < 4 && updates * beside < 80) continue;
      const Staged all = check(
          along(scatter_add, 0),
          {values({50, 9}, float32), places({updates, 9}, 50), values({updates, 9}, float32)},
          scheduled({.beside = beside}));
      check_ways(all, kChunks);
    }
  }
}

TEST_CASE("schedules of runs change no bit", "[tile][threads][scatter]") {
  manual_seed(8);
  const auto into_rows = [](In i) {
    const Tensor index = expand(i[1].unsqueeze(1), {i[1].size(0), i[0].size(1)});
    return Out{scatter_add(i[0], 0, index, i[2])};
  };
  for (int64_t updates : {5, 2049, 3000}) {
    for (int64_t columns : {1, 3, 8}) {
      const std::vector<Tensor> inputs = {values({300, columns}, float32),
                                          places({updates}, 300, 7),
                                          values({updates, columns}, float32)};
      for (int64_t run : {1, 33, 256, 1024}) {
        if (run == 1 && updates * columns > 100)
          continue;                                     // hundreds of blocks, thread by thread
        if (updates == 2049 && columns == 3) continue;  // 3000 of three columns do
        CAPTURE(updates, columns, run);
        const Schedule schedule = {.each = columns < 8 ? 1
                                           : run > 100 ? 4
                                                       : 2,
                                   .run = run,
                                   .resident = run > 100};
        check_ways(check(into_rows, inputs, scheduled(schedule)), {ScatterBy::Runs});
      }
    }
  }
}

TEST_CASE("a thread has several columns of those that begin anywhere",
          "[tile][threads][scatter]") {
  manual_seed(9);
  const auto into_rows = [](In i) {
    const Tensor index = expand(i[1].unsqueeze(1), {i[1].size(0), i[0].size(1)});
    return Out{scatter_add(i[0], 0, index, i[2])};
  };
  for (const DType type : {float16, int32}) {
    for (const auto& [columns, each, apart] :
         {std::tuple{31, 1, 1}, {33, 1, 1}, {33, 2, 2}, {67, 2, 2}, {67, 4, 4}}) {
      CAPTURE(str(type), columns, each);
      const std::vector<Tensor> inputs = {values({40, columns}, type), places({1200}, 40, 7),
                                          values({1200, columns}, type)};
      const Staged all =
          check(into_rows, inputs, scheduled({.each = each, .run = 300, .resident = 1}));
      const RunShape shape(all.program, all.program.kernels.back());
      CHECK(shape.apart == apart);
      CHECK(shape.points() == 40 * ((columns + apart - 1) / apart));
    }
  }
  // More updates than one list holds: later lists go on from what the first has stored.
  check(into_rows,
        {values({300, 67}, float32), places({2500}, 300, 2), values({2500, 67}, float32)},
        scheduled({.each = 4, .run = 1024}));
}

TEST_CASE("a thread has no more columns apart than leave threads side by side",
          "[loops][scatter][refused]") {
  const auto why = [](int64_t columns, int each) {
    const auto into_rows = [](In i) {
      const Tensor index = expand(i[1].unsqueeze(1), {i[1].size(0), i[0].size(1)});
      return Out{scatter_add(i[0], 0, index, i[2])};
    };
    const std::vector<Tensor> inputs = {zeros({40, columns}), places({1200}, 40),
                                        zeros({1200, columns})};
    const Graph graph = trace(into_rows, inputs, "f").graph;
    Program program = run_pipeline(default_pipeline(), graph, true, Target::Cuda).program;
    program.kernels[0].schedule = Schedule{.strategy = Strategy::Rows, .each = each, .run = 64};
    return why_illegal(program, program.kernels[0]);
  };
  CHECK(why(33, 2).empty());
  CHECK(why(67, 4).empty());
  CHECK_THAT(why(31, 2), ContainsSubstring("each=2: a pack has at most 1 point"));
  CHECK_THAT(why(33, 8), ContainsSubstring("each=8: a pack has at most 2 points"));
}

TEST_CASE("columns of two axes are apart", "[tile][threads][scatter]") {
  manual_seed(10);
  const auto into_rows = [](In i) {
    const Tensor index = expand(i[1].reshape({60, 1, 1}), {60, i[0].size(1), i[0].size(2)});
    return Out{scatter_add(i[0], 0, index, i[2].permute({0, 2, 1}))};
  };
  const std::vector<Tensor> inputs = {values({9, 5, 13}, float32), places({60}, 9),
                                      values({60, 13, 5}, float32)};
  check_ways(check(into_rows, inputs, scheduled({.each = 4, .run = 40})), {ScatterBy::Runs});
}

TEST_CASE("schedules of scatters change no bit", "[tile][threads][scatter]") {
  manual_seed(4);
  const std::vector<Tensor> inputs = {values({5, 70}, float32), places({5, 300}, 70),
                                      values({5, 300}, float32)};
  for (int each : {1, 2, 8, 16}) {
    for (int beside : {1, 2, 4}) {
      CAPTURE(each, beside);
      if (512 / each * beside > 1024) continue;
      check(along(scatter_add, 1), inputs, scheduled({.each = each, .beside = beside}));
    }
  }
}

TEST_CASE("what a block's threads cannot do is no schedule of a scatter", "[loops][scatter]") {
  const auto why = [](const Schedule& schedule) {
    const Graph graph =
        trace(along(scatter_add, 1),
              std::vector<Tensor>{zeros({5, 70}), places({5, 300}, 70), zeros({5, 300})}, "f")
            .graph;
    Program program = run_pipeline(default_pipeline(), graph, true, Target::Cuda).program;
    Kernel kernel = program.kernels[0];
    kernel.schedule = schedule;
    return why_illegal(program, kernel);
  };
  CHECK(why({.each = 8, .beside = 2}).empty());
  CHECK_THAT(why({.each = 3}), ContainsSubstring("each=3: a power of two, 1 to 16"));
  CHECK_THAT(why({.each = 1}), ContainsSubstring("beside=4: a power of two, of rows of 512"));
  CHECK(why({.each = 16, .beside = 1}).empty());
  CHECK_THAT(why({.beside = 3}), ContainsSubstring("beside=3: a power of two"));
  CHECK_THAT(why({.groups = 256}), ContainsSubstring("of rows that are scanned"));
  CHECK_THAT(why({.run = 64}), ContainsSubstring("of a result that blocks own runs of"));
}

TEST_CASE("a histogram of integers is a table in shared memory", "[tile][threads][scatter]") {
  manual_seed(5);
  for (DType type : {int8, uint8, int32, int64, uint32, uint64}) {
    INFO(c_type(type));
    check_ways(check(along(scatter_add, 1),
                     {values({2, 100}, type), places({2, 1100}, 100), values({2, 1100}, type)}),
               kTables);
  }
  for (int each : {1, 2, 8})
    check_ways(
        check(along(scatter_add, 1),
              {values({2, 300}, int32), places({2, 3000}, 300), values({2, 3000}, int32)},
              scheduled({.each = each})),
        kTables);
}

TEST_CASE("masked updates go nowhere", "[tile][threads][scatter]") {
  const auto masked = [](const char* dtype, const char* updates) {
    return parse_program(str(
        "program f on cuda {\n  input k: i64[", updates, "]\n  input d: ", dtype, "[", updates,
        "]\n  output y: ", dtype, "[64]\n  kernel s rows() {\n    store y[j0] for (j0: 64) = ",
        dtype, " 3\n    scatter y[at0; at0 = load k[j1] < 64] for (j1: ", updates,
        ") = scatter_add load d[j1] where lt(load k[j1], i64 10)\n  }\n"
        "  launch s\n  return y\n}"));
  };
  manual_seed(6);
  for (const char* dtype : {"f32", "i32"}) {
    const Program program = schedule(masked(dtype, "1500"));
    const std::vector<Tensor> inputs = {places({1500}, 64),
                                        values({1500}, dtype[0] == 'f' ? float32 : int32)};
    const std::vector<Tensor> want = interpret(program, inputs);
    const Tiles tiles = lower_to_tiles(program);
    CHECK(parse_tiles(print(tiles)) == tiles);
    CHECK(same_bits(interpret(tiles, inputs)[0], want[0]));
    const Source source = emit_cuda(tiles);
    CHECK(same_bits(run(program, source, inputs, false)[0], want[0]));
    CHECK(same_bits(run(program, source, inputs, true)[0], want[0]));
  }
}

namespace {

// One kernel of text, with these buffers and steps.
Program kernel_of(const std::string& buffers, const std::string& rows, const std::string& steps,
                  const std::string& results) {
  return parse_program("program f on cuda {\n" + buffers + "  kernel s " + rows + " {\n" +
                       steps + "  }\n  launch s\n  return " + results + "\n}");
}

void check_program(const Program& given, const std::vector<Tensor>& inputs) {
  const Program program = schedule(given);
  const std::vector<Tensor> want = interpret(program, inputs);
  const Tiles tiles = lower_to_tiles(program);
  CHECK(parse_tiles(print(tiles)) == tiles);
  const std::vector<Tensor> by_tile = interpret(tiles, inputs),
                            by_threads = run(program, emit_cuda(tiles), inputs, false);
  for (size_t k = 0; k < want.size(); k++) {
    CHECK(same_bits(by_tile[k], want[k]));
    CHECK(same_bits(by_threads[k], want[k]));
  }
}

ScatterBy way_of(const Program& program) { return scatters_by(program, program.kernels[0]); }

}  // namespace

TEST_CASE("a kernel scatters several times", "[tile][threads][scatter]") {
  manual_seed(9);
  const Program program = kernel_of(
      "  input k: i64[3,200]\n  input d: f32[3,200]\n  input e: i64[3,200]\n"
      "  output y: f32[3,50]\n  output z: i64[3,50]\n",
      "rows(i0: 3)",
      "    store y[i0*50 + j0] for (j0: 50) = f32 2\n"
      "    store z[i0*50 + j0] for (j0: 50) = i64 3\n"
      "    scatter y[i0*50 + at0; at0 = load k[i0*200 + j1] < 50] for (j1: 200) = scatter_add "
      "load d[i0*200 + j1]\n"
      "    scatter z[i0*50 + at0; at0 = load k[i0*200 + j1] < 50] for (j1: 200) = scatter_max "
      "load e[i0*200 + j1]\n"
      "    scatter y[i0*50 + at0; at0 = load e[i0*200 + j1] < 50] for (j1: 200) = scatter load "
      "d[i0*200 + j1]\n",
      "y, z");
  CHECK(way_of(program) == ScatterBy::Chunks);
  check_program(program,
                {places({3, 200}, 50), values({3, 200}, float32), places({3, 200}, 50)});
}

TEST_CASE("a base in another order, or with the updates' loop, goes another way",
          "[tile][threads][scatter]") {
  manual_seed(10);
  const std::string buffers =
      "  input x: i32[100]\n  input k: i64[1100]\n  input d: i32[1100]\n  output y: i32[100]\n";
  const std::string added =
      "    scatter y[at0; at0 = load k[j1] < 100] for (j1: 1100) = scatter_add load d[j1]\n";
  const Program transposed =
      kernel_of(buffers, "rows()",
                "    store y[(j0%10)*10 + j0/10] for (j0: 100) = load x[j0]\n" + added, "y");
  const Program plain =
      kernel_of(buffers, "rows()", "    store y[j0] for (j0: 100) = load x[j0]\n" + added, "y");
  CHECK(way_of(transposed) == ScatterBy::Chunks);
  const std::vector<Tensor> inputs = {values({100}, int32), places({1100}, 100),
                                      values({1100}, int32)};
  check_program(transposed, inputs);
  check_program(plain, inputs);
  const Program shared = kernel_of(
      "  input x: f32[300]\n  input k: i64[300]\n  input d: f32[300]\n  output y: f32[300]\n",
      "rows()",
      "    store y[j0] for (j0: 300) = load x[j0]\n"
      "    scatter y[at0; at0 = load k[j0] < 300] for (j0: 300) = scatter_add load d[j0]\n",
      "y");
  CHECK(way_of(shared) != ScatterBy::Runs);
  check_program(shared, {values({300}, float32), places({300}, 300), values({300}, float32)});
}

TEST_CASE("rows of a block fit its shared memory on every machine", "[loops][scatter]") {
  const Graph graph = trace(along(scatter_add, 0),
                            std::vector<Tensor>{zeros({500, 1024}), places({2000, 1024}, 500),
                                                zeros({2000, 1024})},
                            "f")
                          .graph;
  for (const char* name : {"h200", "a100", "rtx4090"}) {
    const Staged all = run_pipeline(default_pipeline(), graph, true, parse_machine(name));
    CHECK(why_illegal(all.program, all.program.kernels[0]).empty());
    Kernel kernel = all.program.kernels[0];
    kernel.schedule->beside = 8;
    kernel.schedule->each = 16;
    const bool is_small = name[0] == 'r';
    const std::string why = why_illegal(all.program, kernel);
    CHECK((why.find("bytes of shared memory") != std::string::npos) == is_small);
    CHECK(why.empty() != is_small);
  }
}

TEST_CASE("an edited scatter that threads cannot do is refused", "[tile][scatter]") {
  const std::vector<Tensor> inputs = {zeros({2, 100}).to(int32), places({2, 1100}, 100),
                                      zeros({2, 1100}).to(int32)};
  const auto tiles_of = [](const Function& function, const std::vector<Tensor>& all) {
    return print(lower_to_tiles(
        run_pipeline(default_pipeline(), trace(function, all, "f").graph, true, Target::Cuda)
            .program));
  };
  const std::string table = tiles_of(along(scatter_add, 1), inputs);
  check_refused(table, "< 100: shared sums", "< warp + 1: shared sums", "which is no number");
  check_refused(table, "< 100: shared sums[at0]", "< 101: shared sums[at0]",
                "leaves the array's");
  check_refused(table, "scatter_add $", "scatter_max $", "to nothing else");
  check_refused(table, "shared sums: i32", "array sums: i32", "sums");
  const std::string chunks =
      tiles_of(along(scatter_add, 1), {zeros({3, 50}), places({3, 200}, 50), zeros({3, 200})});
  check_refused(chunks, "for j: 256 = ", "for j: 255 = ", "is not always in");
  check_refused(chunks, "  barrier\n", "  for b: 4 = 0 .. warp {\n barrier\n }\n",
                "not all threads");
  check_refused(chunks, "  barrier\n",
                "  if lane < 3 {\n $900 = ge(f32 1, f32 0)\n $901 = votes $900\n }\n",
                "a vote where not all lanes");
}

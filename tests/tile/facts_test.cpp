// Who owns what: the facts that `tc explain` and `tc picture layout` show, against the tiles themselves.
#include "tiny_compile/tile/facts.h"

#include <functional>
#include <map>

#include "tests/catch.h"
#include "tests/fuzz/layouts.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/lower.h"
#include "tiny_compile/tile/owner.h"
#include "tiny_compile/tile/share.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

Program sums(const std::string& schedule, const std::string& op = "sum", int64_t count = 500) {
  return parse_program(
      str("program f on cuda {\n  input x: f32[96,", count,
          "]\n  output y: f32[96]\n  kernel k rows(i0: 96) {\n    r0: f32 = ", op,
          "(j0: ", count, ") load x[i0*", count, " + j0]\n    store y[i0] = r0\n    schedule ",
          schedule, "\n  }\n  launch k\n  return y\n}\n"));
}

using Known = std::map<std::string, int64_t>;

int64_t value_of(const Expr& expr, const Known& known) {
  SymbolValues values;
  for (const auto& [name, value] : known) values.push_back({name, value});
  return evaluate(expr, values);
}

// What a thread has by share.h: each element that there is, with its register's number and turn.
void for_each_of(const Share& share, Known known,
                 const std::function<void(int64_t element, int64_t reg, int64_t turn)>& see) {
  for (int64_t turn = 0; turn < share.turns; turn++) {
    for (int64_t r = 0; r < share.registers; r++) {
      for (int64_t v = 0; v < share.vector; v++) {
        known["turn"] = turn;
        known["r_" + share.name] = r;
        known["v_" + share.name] = v;
        const int64_t element = value_of(share.at(), known);
        if (element < share.count.constant())
          see(element, value_of(share.number(), known), turn);
      }
    }
  }
}

// Elements of a few blocks, warps and lanes that owner_of gives to others than share_of does.
int64_t owners_that_differ(const Program& program, const Kernel& kernel) {
  const Schedule& s = *kernel.schedule;
  const Tile tile = lower_to_tile(program, kernel);
  const Share rows =
      share_of(tile, "row", row_count(kernel).constant(), s.rows, block_of(tile));
  int64_t wrong = 0, seen = 0;
  for (const std::vector<int>& inner : loops_of(kernel)) {
    const Layout layout = layout_over(kernel, inner);
    const Share k = share_of(tile, "k", elements_of(kernel, inner), layout, 0);
    for (int64_t number = 0; number < 32 * tile.warps * tile.cluster; number += 13) {
      const int64_t thread = number % (32 * tile.warps), rank = number / (32 * tile.warps);
      const Known known = {{"block", tile.grid.constant() - 1},
                           {"rank", rank},
                           {"warp", thread / 32},
                           {"lane", thread % 32}};
      const int64_t warps = bits_taken(s.rows, Level::Warp) | bits_taken(layout, Level::Warp),
                    lanes = bits_taken(s.rows, Level::Lane) | bits_taken(layout, Level::Lane),
                    ranks = bits_taken(layout, Level::Cluster);
      for_each_of(rows, known, [&](int64_t row, int64_t row_register, int64_t) {
        for_each_of(k, known, [&](int64_t element, int64_t reg, int64_t turn) {
          const Owner want = {tile.grid.constant() - 1,
                              (thread / 32) & warps,
                              (thread % 32) & lanes,
                              reg * rows.registers * rows.vector + row_register,
                              turn,
                              rank & ranks};
          wrong += owner_of(s.rows, layout, row, element) != want;
          seen++;
        });
      });
    }
  }
  return seen == 0 && !loops_of(kernel).empty() ? -1 : wrong;
}

// y = x under random layouts, chosen by the sizes.
Program copies(int64_t rows, int64_t count) {
  const std::string size = str("i64[", rows, ",", count, "]"),
                    at = str("[i0*", count, " + j0]");
  return with_random_layouts(parse_program(
      "program f on cuda {\n  input x: " + size + "\n  output y: " + size +
      str("\n  kernel k rows(i0: ", rows, ") {\n    store y", at, " for (j0: ", count,
          ") = load x", at, "\n  }\n  launch k\n  return y\n}\n")));
}

// Stores `value` wherever the tile stores what `instead` is.
void store_instead(Body& body, int instead, int value) {
  for (Statement& s : body) {
    const bool stores = s.kind == StatementKind::Store || s.kind == StatementKind::Set;
    if (stores && s.value == instead) s.value = value;
    store_instead(s.body, instead, value);
  }
}

// The thread that copies each element, as the tile's interpreter runs it.
std::vector<int64_t> threads_that_copy(const Program& program) {
  Tile tile = lower_to_tile(program, program.kernels[0]);
  Scalar thread;
  thread.kind = ScalarKind::Index;
  thread.dtype = DType::i64;
  thread.index = (rank_of(tile) * tile.warps + warp_of(tile)) * 32 + lane_of_warp();
  tile.kernel.scalars.push_back(thread);
  const int number = static_cast<int>(tile.kernel.scalars.size()) - 1;
  store_instead(tile.body, program.kernels[0].steps[0].value, number);
  tile.body.insert(tile.body.begin(), define(number));
  const int64_t size =
      program.buffers[0].type.shape[0].constant() * program.buffers[0].type.shape[1].constant();
  std::vector<int64_t> x(static_cast<size_t>(size), -1), y = x;
  const auto memory_of = [&](std::vector<int64_t>& values) {
    return Memory{reinterpret_cast<std::byte*>(values.data()), size, DType::i64, {}, {}};
  };
  std::vector<Memory> memory = {memory_of(x), memory_of(y)};
  run_tile(tile, memory);
  return y;
}

Program laid_out(uint64_t seed) {
  return run_pipeline(until(layouts_pipeline(), "plan_memory"), random_graph(seed), true,
                      Target::Cuda)
      .program;
}

}  // namespace

TEST_CASE("owners of elements that a reader can count", "[facts]") {
  const Layout rows = {{Level::Grid}, {Level::Lane, 4}},
               loop = {{Level::Register, 2}, {Level::Warp, 2}, {Level::Lane, 8, 4}};
  CHECK(owner_of(rows, loop, 6, 19) == Owner{1, 0, 2 + 3 * 4, 1, 0});
  CHECK(owner_of(rows, loop, 0, 8) == Owner{0, 1, 0, 0, 0});
  CHECK(copies_of_element(rows, loop, 2) == 1);
  CHECK(copies_of_element(rows, {{Level::Register, 32}}, 1) == 8);
  // The first bit that a sum takes is the lowest of the turns' number.
  CHECK(owner_of({}, {{Level::Serial, 4}}, 0, 1).turn == 2);
  CHECK(owner_of({}, {{Level::Serial, 4}}, 0, 2).turn == 1);
}

TEST_CASE("owners under random layouts are those of the tiles", "[facts]") {
  int64_t kernels = 0;
  for (uint64_t seed = 0; seed < 150; seed++) {
    const Program program = laid_out(seed);
    for (const Kernel& kernel : program.kernels) {
      if (!kernel.schedule || kernel.schedule->strategy != Strategy::Layouts) continue;
      INFO("seed " << seed << ", kernel " << kernel.name << ": " << str(*kernel.schedule));
      CHECK(owners_that_differ(program, kernel) == 0);
      kernels++;
    }
  }
  CHECK(kernels > 100);
}

TEST_CASE("owners are the threads that store when the tile is run", "[facts]") {
  for (int64_t rows = 1; rows < 60; rows += 3) {
    const int64_t count = 70 - rows;
    const Program program = copies(rows, count);
    const Schedule& s = *program.kernels[0].schedule;
    INFO(str(s));
    REQUIRE(s.strategy == Strategy::Layouts);
    const std::vector<int64_t> threads = threads_that_copy(program);
    int64_t wrong = 0;
    for (int64_t row = 0; row < rows; row++) {
      for (int64_t k = 0; k < count; k++) {
        const Owner owner = owner_of(s.rows, s.loops[0], row, k);
        const int64_t warp = owner.rank * warps_of(s) + owner.warp;
        wrong += threads[row * count + k] != warp * 32 + owner.lane;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("each kernel of random programs is explained", "[facts]") {
  for (uint64_t seed = 100; seed < 130; seed++) {
    for (Target target : {Target::Cuda, Target::Cpp}) {
      const Program program = target == Target::Cuda
                                  ? laid_out(seed)
                                  : run_pipeline(until(default_pipeline(), "plan_memory"),
                                                 random_graph(seed), true, target)
                                        .program;
      INFO("seed " << seed);
      for (const Kernel& kernel : program.kernels) {
        REQUIRE(has_facts(kernel));
        const ScheduleFacts facts = facts_of(program, kernel);
        CHECK(lines(facts).front().starts_with("who: "));
        CHECK(lines(facts).back().starts_with("limit: "));
        CHECK(facts.floor > 0);
      }
    }
  }
}

TEST_CASE("a kernel's facts as lines", "[facts]") {
  const Program program =
      sums("layouts rows grid · lane 4 loop register 4 · warp 16 · lane 8 from 4");
  const std::vector<std::string> all = lines(facts_of(program, program.kernels[0]));
  REQUIRE(all.size() == 4);
  CHECK(
      all[0] ==
      "who: 24 blocks of 16 warps, each with 4 of 96 rows; a warp takes 8 elements of each of "
      "4 rows at a time, 32 bytes side by side; a thread holds 4 of 500");
  CHECK(all[1] ==
        "order: r0 = sum of 500: 2 halvings in the thread, an exchange of 16 warps, 3 between "
        "lanes");
  CHECK(all[2] == "shared memory: given1, 2048 bytes: 512 f32 that warps hand to each other");
  CHECK_THAT(all[3], ContainsSubstring("limit: launch; ") &&
                         ContainsSubstring(" 0.19 M bytes") &&
                         ContainsSubstring("; 24 blocks for 132 multiprocessors; 4 blocks fit "
                                           "a multiprocessor, by threads"));
}

TEST_CASE("each use of shared memory has a line that says for what", "[facts]") {
  const auto shared = [](const std::string& values) {
    const Program program =
        run_pipeline(until(default_pipeline(), "plan_memory"),
                     parse_graph("graph f(" + values + "\n}\n"), true, Target::Cuda)
            .program;
    std::string text;
    for (const Kernel& kernel : program.kernels) {
      const ScheduleFacts facts = facts_of(program, kernel);
      int64_t bytes = 0;
      for (const SharedUse& use : facts.shared) bytes += use.bytes;
      if (facts.block) CHECK(facts.block->shared == bytes);
      for (const std::string& line : lines(facts))
        if (line.starts_with("shared memory: ")) text += line + "\n";
    }
    return text;
  };
  CHECK(shared("%0 x: f32[1000,2000]) {\n  %1: f32[2000,1000] = permute %0 {axes=[1,0]}\n"
               "  %2: f32[2000,1000] = exp %1\n  return %2") ==
        "shared memory: staged0, 4224 bytes: 32 rows x 32 elements of x (load 1, f32, padding "
        "1), "
        "read along memory, taken across it\n");
  CHECK_THAT(
      shared("%0 x: f32[512,512], %1 y: f32[512,512]) {\n  %2: f32[512,512] = matmul %0, "
             "%1\n  return %2"),
      ContainsSubstring("bytes: 1152 f32 of 32 steps of the sums, 32 rows of the left "
                        "operand\n"));
  CHECK_THAT(shared("%0 x: f32[100,2000]) {\n  %1: i64[100,2000] = argsort %0 {axis=1}\n"
                    "  return %1"),
             ContainsSubstring(" of keys that threads exchange while they sort\n"));
  CHECK_THAT(shared("%0 x: f32[100,2000]) {\n  %1: f32[100,2000] = cumsum %0 {axis=1}\n"
                    "  return %1"),
             ContainsSubstring(" that groups of a scan come to\n"));
  CHECK(shared("%0 x: f32[1000]) {\n  %1: f32[1000] = exp %0\n  return %1").empty());
}

TEST_CASE("what a store leaves in shared memory is told from what is loaded", "[facts]") {
  const Program program = parse_program(
      "program f on cuda {\n  input x: f32[512,512]\n  output y: f32[512,512]\n"
      "  kernel k rows(i0: 512) {\n    store y[i0 + j0*512] for (j0: 512) = load x[i0*512 + "
      "j0]\n"
      "    schedule layouts rows grid · register 4 · warp 8 loop grid · lane 32 "
      "via store 1 rows lane 32 loop register 4 · warp 8 padding 1\n  }\n  launch k\n"
      "  return y\n}\n");
  CHECK(lines(facts_of(program, program.kernels[0]))[1] ==
        "shared memory: staged0, 4224 bytes: 32 rows x 32 elements of y (store 1, f32, padding "
        "1), left across memory, stored along it");
}

TEST_CASE("who scatters is said for each way", "[facts][scatter]") {
  const auto who = [](const std::string& result, const std::string& updates, int axis,
                      const std::string& index) {
    const Program program =
        run_pipeline(
            until(default_pipeline(), "plan_memory"),
            parse_graph(str("graph f(%0 x: ", result, ", %1 k: i64", index, ", %2 u: ", updates,
                            ") {\n  %3: i64", updates.substr(updates.find('[')),
                            " = expand %1\n  %4: ", result,
                            " = scatter_add %0, %3, %2 {axis=", axis, "}\n  return %4\n}\n")),
            true, Target::Cuda)
            .program;
    return lines(facts_of(program, program.kernels.back())).front();
  };
  CHECK(
      who("f32[1000,96]", "f32[2000,96]", 0, "[2000,1]") ==
      "who: 125 blocks, each with 192 packs of 4 neighbours of the result; each finds its own "
      "among 2000 updates");
  CHECK(who("i32[600,64]", "i32[600,2000]", 1, "[600,2000]") ==
        "who: 600 blocks, each with a row and its 64 sums in shared memory");
  CHECK(
      who("f32[40,300]", "f32[40,500]", 1, "[40,500]") ==
      "who: 40 blocks, with 1 of 40 rows each; 128 threads of a row sort 512 updates by place "
      "at a time, 4 each, and who has the first of a place adds all of it");
  CHECK(who("f32[300000,3]", "f32[300000,2]", 1, "[300000,2]") ==
        "who: each of 300000 rows a thread's");
}

TEST_CASE("an exact reduction takes bits in the order of least work, and says so", "[facts]") {
  const std::string schedule = "layouts rows grid loop register 2 · warp 8 · lane 32";
  const auto order = [&](const std::string& op) {
    const Program program = sums(schedule, op);
    return lines(facts_of(program, program.kernels[0]))[1];
  };
  CHECK(order("sum") ==
        "order: r0 = sum of 500: 1 halving in the thread, an exchange of 8 warps, 5 between "
        "lanes");
  CHECK(order("max") ==
        "order: r0 = max of 500: 1 halving in the thread, 5 between lanes, an exchange of 8 "
        "warps");
}

TEST_CASE("what costs time is counted, once for each point", "[facts]") {
  const Graph graph = parse_graph(
      "graph f(%0 x: f32[64,100]) {\n  %1: f32[64,100] = exp %0\n  %2: f32[64,1] = sum %1 "
      "{axes=[1], keepdim=1}\n  %3: f32[64,100] = expand %2\n  %4: f32[64,100] = div %1, %3\n  "
      "return %4\n}\n");
  const Program program =
      run_pipeline(until(default_pipeline(), "plan_memory"), graph, true, Target::Cuda).program;
  REQUIRE(program.kernels.size() == 1);
  const ScheduleFacts facts = facts_of(program, program.kernels[0]);
  CHECK(facts.costly == 6400);
  CHECK(facts.quotients == 6400);
  CHECK(facts.bytes == 2 * 6400 * 4);
}

TEST_CASE("blocks that fit a multiprocessor, and what runs out", "[facts]") {
  const Machine h200 = default_machine(Target::Cuda);  // 2048 threads, 65536 registers
  CHECK(occupancy_of(h200, 1024, 4, 0).blocks() == 2);
  CHECK(std::string(occupancy_of(h200, 1024, 4, 0).limit()) == "threads");
  CHECK(occupancy_of(h200, 256, 104, 0).blocks() == 2);
  CHECK(std::string(occupancy_of(h200, 256, 104, 0).limit()) == "registers");
  CHECK(occupancy_of(h200, 64, 4, 48 << 10).blocks() == h200.shared / (48 << 10));
  CHECK(std::string(occupancy_of(h200, 64, 4, 48 << 10).limit()) == "shared memory");
  CHECK(occupancy_of(h200, 32, 4, 0).blocks() == 32);
  CHECK(std::string(occupancy_of(h200, 32, 4, 0).limit()) == "block slots");
  CHECK(occupancy_of(parse_machine("rtx4090"), 32, 4, 0).blocks() == 24);
  CHECK(occupancy_of(h200, 1024, 128, 0).blocks() == 1);  // and its registers spill
}

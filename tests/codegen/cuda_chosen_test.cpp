// Rows that data chooses, in the generated CUDA: an index is checked once a row, asked for before it
// is needed, and what is wrong with it is told at the end. The interpreter's bits in any case.
#include "tests/codegen/cuda_threads.h"
#include "tiny_compile/schedule/deal.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/lower.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;

namespace {

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at++) found++;
  return found;
}

// The kernels of a text, without what they call.
std::string kernels(const std::string& text) { return text.substr(text.find("extern \"C\"")); }

Out normalised(In i) {
  const Tensor x = embedding(i[0], i[1]) + i[2];
  const Tensor d = x - mean(x, {-1}, true);
  return {d * rsqrt(mean(d * d, {-1}, true) + 1e-5)};
}

// Eight lanes hold a row of 64: two registers of four neighbours each.
Pipeline by_eight_lanes() {
  const auto stage = [](const Program& program) {
    Program result = program;
    Deal deal;
    deal.loops_first = true;
    deal.row_lanes = 4, deal.registers = 2, deal.vector = 4;
    for (Kernel& kernel : result.kernels) kernel.schedule = laid_out(result, kernel, deal);
    return result;
  };
  return insert_after(default_pipeline(), "schedule", {"eight", ProgramPass(stage)});
}

}  // namespace

TEST_CASE("a row that data chooses is held in packs, its index checked once",
          "[codegen][threads]") {
  manual_seed(41);
  for (const DType dtype : {float32, bfloat16}) {
    const std::vector<Tensor> inputs = {randint(0, 50, {3, 9}), randn({50, 64}).to(dtype),
                                        randn({9, 64}).to(dtype)};
    const Staged all = check_bits(normalised, inputs, by_eight_lanes());
    const std::string text = kernels(all.source.text);
    CHECK(count(text, "  if (fits_") == 1);
    CHECK(count(text, "tc_is_place(") == 1);
    CHECK(text.find("tc_is_place(") < text.find("for ("));
    CHECK(text.find("in_x1[") == std::string::npos);  // nothing of it is read alone
    CHECK(text.find("tc_tell(wrong);") > text.rfind("tc_write"));
    const Tiles tiles = lower_to_tiles(all.program);
    CHECK(print(tiles).find(": x1[at0*64 + j0_v] x4") != std::string::npos);
    CHECK(parse_tiles(print(tiles)) == tiles);
    CHECK(same_bits(interpret(tiles, inputs)[0], interpret(all.program, inputs)[0]));
  }
}

TEST_CASE("indices of a sum's elements come before the elements", "[codegen][threads]") {
  manual_seed(42);
  const Function sums = [](In i) { return Out{sum(embedding(i[0], i[1]), {1})}; };
  const std::vector<Tensor> inputs = {randint(0, 50, {6, 70}), randn({50, 96})};
  const std::string text = kernels(check(sums, inputs, "layouts"));
  CHECK(count(text, "tc_is_place(") == 2);  // of registers that are whole, and of the others
  const size_t asked = text.find("] = load_"), used = text.find("tc_is_place(");
  CHECK(asked < used);
  CHECK(text.find("for (int g_k", asked) < used);  // another loop
}

TEST_CASE("a thread copies rows that data chooses from four slabs", "[codegen][threads]") {
  manual_seed(43);
  const Function look_up = [](In i) { return Out{embedding(i[0], i[1])}; };
  const int64_t rows = (int64_t{1} << 16) + 3;  // the last slab is shorter
  const std::vector<Tensor> inputs = {randint(0, 50, {rows}), randn({50, 64})};
  const std::string text = kernels(check(look_up, inputs, "pointwise"));
  CHECK(count(text, "turn < 3") == 2);
  CHECK(count(text, "chosen0[turn] = ") == 1);
  CHECK(count(text, "chosen0[3] = ") == 1);
  CHECK(count(text, "  if (fits_0_50) tc_read<4>(&pack") == 2);
  CHECK(text.find("return;\n    const") == std::string::npos);  // none leaves before it tells
  CHECK(text.find("tc_tell(wrong);") > text.rfind("out_y"));
}

TEST_CASE("rows out of range are zeros under layouts and in slabs", "[codegen][threads]") {
  manual_seed(44);
  const int64_t far = int64_t{1} << 45;
  const auto check_zeros = [&](const Function& function, int64_t rows, const Pipeline& pipeline,
                               int64_t width) {
    const Tensor known = randint(0, 50, {rows}), is_known = known < 20,
                 wrong = where(is_known, known, where(known < 30, -far, far));
    const Tensor table = randn({50, width}), zeros = zeros_like(table.slice(0, 0, 1));
    const std::vector<Tensor> given = {wrong, table},
                              meant = {where(is_known, known, 50), concat({table, zeros}, 0)};
    const Staged all =
        run_pipeline(pipeline, trace(function, given, "f").graph, true, Target::Cuda);
    const Tensor wanted = interpret(trace(function, meant, "f").graph, meant)[0];
    CHECK(same_bits(run(all.program, all.source, given, false)[0], wanted));
  };
  check_zeros([](In i) { return Out{softmax(embedding(i[0], i[1]), 1)}; }, 27, by_eight_lanes(),
              64);
  check_zeros([](In i) { return Out{sum(embedding(i[0], i[1]), {0})}; }, 70, default_pipeline(),
              96);
  check_zeros([](In i) { return Out{embedding(i[0], i[1])}; }, 1 << 16, default_pipeline(), 64);
}

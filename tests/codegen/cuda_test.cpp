// Every generated CUDA source compiles for sm_90; the families look as they should. No GPU
// needed.
#include "tests/catch.h"
#include "tests/codegen/emit_programs.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/nvrtc.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

Program program_of(const Graph& graph, const char* stage = "plan_memory") {
  return run_pipeline(until(default_pipeline(), stage), graph, true, Target::Cuda).program;
}

Source cuda_of(const std::string& text) { return emit_cuda(program_of(parse_graph(text))); }

// A CUBIN is an ELF file. Of several units each compiles alone.
void check_compiles(const Source& source) {
  if (!why_no_nvrtc().empty()) return;
  INFO(source.text);
  for (int unit = 0; unit < source.units; unit++)
    CHECK(compile_cuda(source.text, "sm_90", source.units > 1 ? unit : -1).substr(0, 4) ==
          "\x7f"
          "ELF");
}

std::string row_sum(int rows, int columns) {
  const std::string r = std::to_string(rows), c = std::to_string(columns);
  return "graph g(%0 x: f32[" + r + "," + c + "]) {\n  %1: f32[" + r +
         "] = sum %0 {axes=[1]}\n  return %1\n}\n";
}

}  // namespace

TEST_CASE("NVRTC is here, or the tests say that it is not", "[cuda]") {
  if (!why_no_nvrtc().empty()) SKIP("CUDA sources are not compiled: " + why_no_nvrtc());
  CHECK_THAT(nvrtc_identity(""), ContainsSubstring("--fmad=false"));
}

TEST_CASE("an error of NVRTC shows the numbered lines of the source", "[cuda]") {
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  CHECK_THROWS_WITH(compile_cuda("__device__ int a;\nint b = nothing;\n", "sm_90"),
                    ContainsSubstring("> 2 | int b = nothing;"));
}

TEST_CASE("pointwise kernels move 16 bytes at a time", "[cuda]") {
  const Source f32 = cuda_of(
      "graph g(%0 x: f32[64,128], %1 b: f32[128]) {\n  %2: f32[64,128] = expand %1\n"
      "  %3: f32[64,128] = add %0, %2\n  return %3\n}\n");
  CHECK_THAT(f32.text, ContainsSubstring("tc_read<4>(&"));
  check_compiles(f32);
  const Source bf16 =
      cuda_of("graph g(%0 x: bf16[8192]) {\n  %1: bf16[8192] = exp %0\n  return %1\n}\n");
  CHECK_THAT(bf16.text, ContainsSubstring("tc_read_halves<8>(&"));
  check_compiles(bf16);
  const Source ragged =
      cuda_of("graph g(%0 x: f32[10001]) {\n  %1: f32[10001] = exp %0\n  return %1\n}\n");
  CHECK_THAT(ragged.text, ContainsSubstring("tc_read_left<4>(&"));
  check_compiles(ragged);
}

TEST_CASE(
    "a thread stores no more than an access, and packs go through short rows with margins",
    "[cuda]") {
  const Source wide =
      cuda_of("graph g(%0 x: i8[4096,640]) {\n  %1: f32[4096,640] = cast %0\n  return %1\n}\n");
  CHECK_THAT(wide.text, ContainsSubstring("tc_write<4>(out_"));
  check_compiles(wide);
  const Source pad = cuda_of(
      "graph g(%0 x: bf16[16384,28,28]) {\n"
      "  %1: bf16[16384,34,34] = pad %0 {low=[0,3,3], high=[0,3,3], value=0.0}\n"
      "  return %1\n}\n");
  CHECK_THAT(pad.text, ContainsSubstring("const int column = "));
  CHECK_THAT(pad.text, ContainsSubstring("tc_write_halves<"));
  check_compiles(pad);
}

TEST_CASE("rows go to lanes, warps or blocks by their length", "[cuda]") {
  for (const auto& [columns, text] :
       std::vector<std::pair<int, const char*>>{{7, "__shfl_xor_sync(0xffffffffu, sum0[0], 4)"},
                                                {500, "tc_read<4>(&pack"},
                                                {1000, "const int row = block*4 + warp;"},
                                                {4096, "__shared__ alignas(16) float given"},
                                                {50257, "turn < 8;"}}) {
    const Source source = cuda_of(row_sum(1000, columns));
    CHECK_THAT(source.text, ContainsSubstring(text));
    check_compiles(source);
  }
}

TEST_CASE("wide rows ask for the chunks of a later row, none beyond the last", "[cuda]") {
  const Source source = cuda_of(
      "graph g(%0 x: f32[900,50257]) {\n  %1: f32[900,1] = max %0 {axes=[1], keepdim=1}\n"
      "  %2: f32[900,50257] = expand %1\n  %3: f32[900,50257] = sub %0, %2\n  return %3\n}\n");
  CHECK_THAT(source.text, ContainsSubstring("< 899 ? (block + "));
  CHECK_THAT(source.text, ContainsSubstring("tc_ahead(in_x + "));
  check_compiles(source);
}

TEST_CASE("column sums are coalesced, full sums split, transposes tiled", "[cuda]") {
  const Source columns = cuda_of(
      "graph g(%0 x: f32[4000,256]) {\n  %1: f32[256] = sum %0 {axes=[0]}\n  return %1\n}\n");
  CHECK_THAT(columns.text, ContainsSubstring("in_x[i0 + j0*256]"));
  CHECK_THAT(columns.text, ContainsSubstring("__cluster_dims__(4, 1, 1)"));
  check_compiles(columns);
  const Source full = cuda_of(
      "graph g(%0 x: f32[1000000]) {\n  %1: f32[] = sum %0 {axes=[0]}\n  return %1\n}\n");
  CHECK(full.kernels.size() == 2);
  check_compiles(full);
  const Source transposed = cuda_of(
      "graph g(%0 x: f32[512,256], %1 y: f32[256,512]) {\n  %2: f32[256,512] = permute %0 "
      "{axes=[1,0]}\n  %3: f32[256,512] = add %2, %1\n  return %3\n}\n");
  CHECK_THAT(transposed.text,
             ContainsSubstring("__shared__ alignas(16) float staged0[4160]"));  // 64 * 65
  check_compiles(transposed);
}

TEST_CASE("columns that lie apart, of many chunks, go chunk after chunk", "[cuda]") {
  for (const std::string type : {"f32", "f64"}) {
    const Source source = cuda_of(str("graph g(%0 x: ", type, "[16,9000,1031]) {\n  %1: ", type,
                                      "[16,1031] = sum %0 {axes=[1]}\n  return %1\n}\n"));
    CHECK_THAT(source.text, ContainsSubstring("for (int turn = 0; turn < 16; turn++)"));
    check_compiles(source);
  }
}

TEST_CASE("a matmul is tiled, with its epilogue; scans and scatters keep their order",
          "[cuda]") {
  const Source matmul = cuda_of(
      "graph g(%0 a: bf16[300,70], %1 b: bf16[70,257]) {\n  %2: bf16[300,257] = matmul %0, %1\n"
      "  %3: bf16[300,257] = gelu %2\n  return %3\n}\n");
  CHECK(matmul.kernels.size() == 1);
  CHECK_THAT(matmul.text, ContainsSubstring("] = tc_fma(row1[i], column3[j], sum4["));
  check_compiles(matmul);
  const Source scan = cuda_of(
      "graph g(%0 x: f32[64,100]) {\n  %1: f32[64,100] = cumsum %0 {axis=1}\n  return %1\n}\n");
  CHECK_THAT(scan.text, ContainsSubstring(" values0[16];"));
  check_compiles(scan);
}

TEST_CASE("elements are divided by a number without a reciprocal of each", "[cuda]") {
  const auto by = [](const std::string& number) {
    return cuda_of("graph g(%0 x: f32[64,128]) {\n  %1: f32[] = constant {value=" + number +
                   "}\n  %2: f32[64,128] = expand %1\n  %3: f32[64,128] = div %0, %2\n" +
                   "  return %3\n}\n");
  };
  const Source nine = by("9.0");
  CHECK_THAT(nine.text, ContainsSubstring("tc_divide_by(0x1.2p+3f))"));
  check_compiles(nine);
  for (const char* number : {"-9.0", "1e-30", "inf"})  // which IEEE's division alone does
    CHECK_THAT(by(number).text, !ContainsSubstring("tc_divide_by"));
}

TEST_CASE("programs emitted together share a text, and the kernels that are the same",
          "[cuda]") {
  const Program ten = program_of(parse_graph(row_sum(10, 100)));
  const Program twelve = program_of(parse_graph(row_sum(12, 200)));
  const std::vector<Source> sources = emit_cuda_together({ten, twelve, ten});
  CHECK(sources[0].text == sources[1].text);
  CHECK(sources[0].kernels[0].function != sources[1].kernels[0].function);
  CHECK(sources[0].kernels[0].function == sources[2].kernels[0].function);
}

TEST_CASE("kernels that differ in names alone are one function", "[cuda]") {
  const char* layers =
      "graph g(%0 x: f32[64,1000], %1 y: f32[64,1000]) {\n"
      "  %2: f32[64] = sum %0 {axes=[1]}\n"
      "  %3: f32[64] = sum %1 {axes=[1]}\n"
      "  %4: f32[64] = max %1 {axes=[1]}\n"
      "  return %2, %3, %4\n}\n";
  Program program = program_of(parse_graph(layers), "lower");
  const Source source = emit_cuda(program);
  REQUIRE(source.kernels.size() == 3);
  const auto &first = source.kernels[0], &second = source.kernels[1];
  CHECK(second.function == first.function);
  CHECK(second.buffers != first.buffers);
  CHECK(source.kernels[2].function != first.function);
  CHECK_THAT(source.text, ContainsSubstring("// also k_" + program.kernels[1].name + "\n"));
  check_compiles(source);

  program.buffers[second.buffers[0]].align = 4;  // narrower loads are another text
  CHECK(emit_cuda(program).kernels[1].function != first.function);
}

TEST_CASE("shared functions take their buffers in the order of use", "[cuda]") {
  // y - x and x - y: the second reads its buffers in the other order.
  const Source source = emit_cuda(program_of(
      parse_graph("graph g(%0 x: f32[4096], %1 y: f32[4096]) {\n  %2: f32[4096] = sub %1, %0\n"
                  "  %3: f32[4096] = sub %0, %1\n  return %2, %3\n}\n"),
      "lower"));
  REQUIRE(source.kernels.size() == 2);
  CHECK(source.kernels[0].function == source.kernels[1].function);
  CHECK(source.kernels[0].buffers == std::vector<int>{1, 0, 2});
  CHECK(source.kernels[1].buffers == std::vector<int>{0, 1, 3});
}

namespace {

// Random graphs at random stages, twenty to a source.
void check_random_sources(uint64_t first) {
  static constexpr const char* kStages[] = {"lower", "fuse", "schedule", "plan_memory"};
  std::vector<Program> programs;
  for (uint64_t seed = first; seed < first + 20; seed++)
    programs.push_back(program_of(random_graph(seed), kStages[seed % 4]));
  check_compiles(emit_cuda_together(programs)[0]);
}

}  // namespace

TEST_CASE("random graphs compile for sm_90 (1)", "[cuda]") { check_random_sources(1); }
TEST_CASE("random graphs compile for sm_90 (2)", "[cuda]") { check_random_sources(21); }
TEST_CASE("random graphs compile for sm_90 (3)", "[cuda]") { check_random_sources(41); }
TEST_CASE("random graphs compile for sm_90 (4)", "[cuda]") { check_random_sources(61); }
TEST_CASE("random graphs compile for sm_90 (5)", "[cuda]") { check_random_sources(81); }

TEST_CASE("a source of no kernels is a unit too", "[cuda]") {
  const Source source = cuda_of("graph g(%0 x: f32[3]) {\n  return %0\n}\n");
  CHECK(source.kernels.empty());
  CHECK(source.units == 1);
  check_compiles(source);
}

TEST_CASE("kernels that can fail are all in a long source's first unit", "[cuda]") {
  std::string inputs, body, results;
  for (int k = 0; k < 12; k++) {  // reductions of lengths of their own, gathers among them
    const std::string n = str(1000 + 8 * k), in = str("%", 2 * k), index = str("%", 2 * k + 1),
                      out = str("%", 24 + k);
    inputs += str(k ? ", " : "", in, " x", k, ": f32[64,", n, "], ", index, " i", k, ": i64[7,",
                  n, "]");
    body += k % 4 == 0
                ? str("  ", out, ": f32[7,", n, "] = gather ", in, ", ", index, " {axis=0}\n")
                : str("  ", out, ": f32[64,", n, "] = cumsum ", in, " {axis=1}\n");
    results += str(k ? ", " : "", out);
  }
  const Source source =
      cuda_of("graph g(" + inputs + ") {\n" + body + "  return " + results + "\n}\n");
  REQUIRE(source.units > 1);
  const size_t second = source.text.find("TC_UNIT == 1");
  for (const KernelEntry& entry : source.kernels) {
    const bool fails = entry.function.find("gather") != std::string::npos;
    const size_t at = source.text.find(" " + entry.function + "(");
    REQUIRE(at != std::string::npos);
    CHECK((at < second) == fails);
  }
  CHECK(source.text.find("tc_tell(wrong)", second) == std::string::npos);
  CHECK(source.text.find("tc_hand_over(") < second);
  check_compiles(source);
}

TEST_CASE("older and smaller GPUs get kernels that they can run", "[cuda]") {
  const auto softmax = [](const std::string& stored, const std::string& view, int rows,
                          int columns) {
    const std::string all = "f32[" + str(rows, ",", columns) + "]",
                      one = "f32[" + str(rows) + ",1]";
    return "graph g(%0 x: f32[" + stored + "]) {\n %1: " + all + " = " + view +
           "\n %2: " + one + " = max %1 {axes=[1], keepdim=1}\n %3: " + all +
           " = expand %2\n %4: " + all + " = sub %1, %3\n %5: " + all +
           " = exp %4\n %6: " + one + " = sum %5 {axes=[1], keepdim=1}\n %7: " + all +
           " = expand %6\n %8: " + all + " = div %5, %7\n return %8\n}\n";
  };
  const std::string graphs[] = {softmax("64,50257", "neg %0", 64, 50257),
                                softmax("4096,512", "permute %0 {axes=[1,0]}", 512, 4096),
                                "graph g(%0 x: f32[4000,512]) {\n  %1: f32[512] = sum %0 "
                                "{axes=[0]}\n  return %1\n}\n"};
  for (const std::string& graph : graphs) {
    const Graph parsed = parse_graph(graph);
    CHECK(emit_cuda(program_of(parsed)).text.find("__cluster_dims__") != std::string::npos);
    for (const auto& [architecture, name] :
         {std::pair{"sm_80", "a100"}, {"sm_89", "rtx4090"}}) {
      const Machine machine = parse_machine(name);
      const Staged all = run_pipeline(default_pipeline(), parsed, true, machine);
      INFO(architecture << "\n" << all.source.text);
      CHECK(all.source.text.find("__cluster_dims__") == std::string::npos);
      for (const KernelEntry& entry : all.source.kernels)
        CHECK(entry.shared <= machine.block_shared - (7 << 10));
      CHECK(parse_program(print(all.program)) == all.program);
      if (why_no_nvrtc().empty()) CHECK(!compile_cuda(all.source.text, architecture).empty());
    }
  }
}

TEST_CASE("a byte is a half without rounding, and a pack of bools begins as false", "[cuda]") {
  const auto text = [](const char* from) {
    return cuda_of(str("graph g(%0 x: ", from, "[300,40]) {\n  %1: bf16[300,40] = cast %0\n",
                       "  %2: bf16[300,40] = abs %1\n  return %2\n}\n"))
        .text;
  };
  CHECK_THAT(text("i8"), !ContainsSubstring("tc_round_bf16("));
  CHECK_THAT(text("i32"), ContainsSubstring("tc_round_bf16("));
  const Source bools =
      cuda_of("graph g(%0 x: f32[400001]) {\n  %1: bool[400001] = eq %0, %0\n  return %1\n}\n");
  CHECK_THAT(bools.text, ContainsSubstring("bool out") && ContainsSubstring("] = {};"));
  check_compiles(bools);
}

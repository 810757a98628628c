// sanitize.py's graphs: each is right, and together they have every family of generated kernels. A
// new module of generated CUDA is not forgotten either.
#include <filesystem>
#include <set>

#include "tests/runtime/scratch.h"
#include "tiny_compile/codegen/cuda_helpers.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/graph.h"
#include "tiny_compile/runtime/process.h"
//
#include "tests/catch.h"

using namespace tiny_compile;

namespace {

// The modules that write text, and words that only theirs has: of each family of kernels and of each
// path through one that shares memory or leaves some of it out.
struct Words {
  const char *module, *words, *family;
};
constexpr Words kWords[] = {
    {"cuda_tile", "k_add_gelu", "points"},
    {"cuda_tile", "block*128 + thread", "in slabs"},
    {"cuda_tile", "tc_philox(", "random numbers"},
    {"cuda_tile", "tc_read_halves<8>(&pack", "packs of halves"},
    {"cuda_tile", "_left<", "packs that end within a row"},
    {"cuda_text", " == tc_narrow(", "an index compared with a place"},
    {"cuda_group", "tc_member_of(table, blockIdx.x)", "kernels that share a launch"},
    {"cuda_signature", "const tc_block blockIdx", "a block of one of them"},
    {"cuda_tile", "  if (e < 64) {", "packs of one half of a row"},
    {"cuda_tile", "  if (7 < e) {", "packs of tensors side by side"},
    {"cuda_guard", "if (fits_0_50) tc_read", "packs of rows that an input chooses"},
    {"cuda_tile", "float slide", "what a pack's windows share"},
    {"cuda_tile", "k_sum_1_finish(", "long sums in two kernels"},
    {"cuda_tile", "tc_ahead(in_", "rows asked for ahead"},
    {"cuda_tile", "turn_row < 8", "columns' sums beside rows, in turns"},
    {"cuda_tile", "_sub_sum_7_finish(", "and what is left of them"},
    {"cuda_tile", "tc_cluster_at(&sent", "columns that the blocks of a cluster share"},
    {"cuda_tile", "tc_send(&given", "rows that the blocks of a cluster share"},
    {"cuda_tile", "__shared__ alignas(16) float staged", "an operand that is transposed"},
    {"cuda_tile", "__shared__ alignas(16) tc_bf16 staged", "a result that is transposed"},
    {"cuda_tile", "__shared__ alignas(16) float given", "what warps of a block exchange"},
    {"cuda_tile", "__shfl_xor_sync(0xffffffffu, sum", "what lanes of a column exchange"},
    {"cuda_tile", "[thread/16] = all", "scans along memory, groups of groups"},
    {"cuda_tile", "[thread + (t%2)*256] = total", "scans of columns"},
    {"cuda_tile", "places1[k] = ", "places that a scan gives"},
    {"cuda_tile", "shared2[k + thread*20] = values0[k]", "what stands at these places"},
    {"cuda_tile", "[thread] = here", "totals combined once"},
    {"cuda_tile", "values0[k] = shared", "elements by way of shared memory"},
    {"cuda_tile", "y = thread%16;", "rows that lie across"},
    {"cuda_tile", "; h < 5; h++)", "rows sorted by a warp"},
    {"cuda_tile", "; h < 3; h++)", "several rows a warp"},
    {"cuda_tile", "= tc_minimum(shift_left", "the first of rows"},
    {"cuda_tile", "const int neighbour = ", "runs sorted by the warps of a block"},
    {"cuda_tile", "const int of_left = ", "runs merged in pairs"},
    {"cuda_tile", "float within", "one element after the other"},
    {"cuda_tile", "float stack0_f32[", "a tree by one thread"},
    {"cuda_tile", "counts[warp] = ", "blocks that find their updates"},
    {"cuda_tile", "ends[(warp < 1 ? warp : 1)]", "updates that were sorted"},
    {"cuda_tile", "atomicAdd((unsigned*)&sums[", "integers added in shared memory"},
    {"cuda_tile", " before_u32[", "updates that the threads of a row sort"},
    {"cuda_tile", "const int other = ", "rows that are read across"},
    {"cuda_tile", "float left0[1056]", "a matmul of our own, in large tiles"},
    {"cuda_tile", "float left0[1088]", "in middling ones"},
    {"cuda_tile", "float left0[1152]", "in small ones"},
    {"cuda_tile", "double left0[1152]", "in f64"},
};
// Of the helpers every one is looked for.
const std::set<std::string> kWithoutWords = {"cuda_arrays", "cuda_scalar", "cuda_helpers",
                                             "cuda_memory_helpers"};

std::set<std::string> modules_in(const std::string& folder) {
  std::set<std::string> modules;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().stem();
    if (file.path().extension() == ".cpp" && name.starts_with("cuda_")) modules.insert(name);
  }
  return modules;
}

Pipeline program_stages() {
  Pipeline stages = default_pipeline();
  while (std::holds_alternative<GraphPass>(stages[0].run) ||
         std::holds_alternative<Lower>(stages[0].run))
    stages.erase(stages.begin());
  return stages;
}

// The kernels of every graph, without the head, the prelude and the helpers.
std::string kernels_of(const std::string& folder, Calls& calls) {
  std::string kernels;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    INFO(file.path());
    const std::string made = tests::text_of(file.path());
    const Source source =
        made.starts_with("program ")
            ? run_pipeline(program_stages(), parse_program(made), true).source
            : run_pipeline(default_pipeline(), parse_graph(made), true, Target::Cuda).source;
    const std::string& text = source.text;
    calls.add(source.calls);
    const size_t start = text.find("extern \"C\"");
    REQUIRE(start != std::string::npos);
    kernels += text.substr(start);
  }
  return kernels;
}

}  // namespace

TEST_CASE("sanitize.py runs every family of kernels", "[fuzz]") {
  if (find_program("python3").empty()) SKIP("no python3");
  const tests::Scratch scratch;
  const std::string folder = scratch.path("graphs");
  const ProcessResult result =
      run_process({"python3", "tests/fuzz/sanitize.py", "--emit", folder}, "", 60);
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  Calls calls;
  const std::string kernels = kernels_of(folder, calls);
  for (const Words& words : kWords) {
    INFO(words.module << ": " << words.family);
    CHECK(kernels.find(words.words) != std::string::npos);
  }
  for (const auto& helpers : {cuda_compute_helpers(), cuda_memory_helpers()}) {
    for (const CudaHelper& helper : helpers) {
      INFO("no graph has a kernel with the helper " << helper.name);
      CHECK(calls.has(helper.name));
    }
  }
}

TEST_CASE("every module that writes CUDA is known to sanitize_test.cpp", "[fuzz]") {
  const std::set<std::string> modules = modules_in("tiny_compile/codegen");
  std::set<std::string> known = kWithoutWords;
  for (const Words& words : kWords) known.insert(words.module);
  for (const std::string& module : modules) {
    INFO(module << ".cpp: give kWords what it alone writes and sanitize.py a graph with that");
    CHECK(known.count(module) == 1);
  }
  for (const std::string& module : known) {
    INFO(module << ".cpp is not there");
    CHECK(modules.count(module) == 1);
  }
}

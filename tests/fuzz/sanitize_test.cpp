// sanitize.py's graphs: each is right, and together they have every family of generated kernels.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/graph.h"
#include "tiny_compile/runtime/process.h"

using namespace tiny_compile;

namespace {

// The CUDA text of every graph, one behind the other.
std::string texts_of(const std::string& folder) {
  std::string texts;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    INFO(file.path());
    std::stringstream text;
    text << std::ifstream(file.path()).rdbuf();
    texts += run_pipeline(default_pipeline(), parse_graph(text.str()), true, Target::Cuda)
                 .source.text;
  }
  return texts;
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
  const std::string texts = texts_of(folder);
  const std::pair<const char*, const char*> kWords[] = {
      {"k_add_gelu", "pointwise"},
      {"[64][65];", "an operand turned"},
      {"turned_0[", "the result turned"},
      {"tile_0", "rows staged"},
      {"tc_pack<tc_bf16, 8>", "packs of halves"},
      {"part_0[4]", "rows that a block shares"},
      {"__cluster_dims__(8", "rows that eight blocks share"},
      {"cp.async.bulk", "rows asked for ahead"},
      {"_sub_sum_7_finish(", "columns' sums beside rows"},
      {"blockIdx.x / 4", "columns that four blocks share"},
      {"k_sum_1_finish(", "long sums in two kernels"},
      {"tc_best", "the place of the greatest"},
      {"(*const last)[", "running sums in tiles"},
      {"sum = sum + exp_1;", "one element after the other"},
      {"found_by[8]", "blocks that find their updates"},
      {"b[8][132]", "a matmul of our own"},
  };
  for (const auto& [word, family] : kWords) {
    INFO(family);
    CHECK(texts.find(word) != std::string::npos);
  }
}

// README shows one function as graph, kernel and C++, and the demo's ladder: what is shown is what tc
// and the demo print.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/cli/commands.h"
#include "tiny_compile/cli/demo_model.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// The first block between ``` that has `word` in it; "" where there is none.
std::string block_with(const std::string& page, const std::string& word) {
  for (size_t at = 0; (at = page.find("\n```", at)) != std::string::npos;) {
    const size_t start = page.find('\n', at + 1) + 1;
    const size_t end = page.find("\n```", start);
    if (end == std::string::npos) break;
    const std::string block = page.substr(start, end - start + 1);
    if (block.find(word) != std::string::npos) return block;
    at = end + 4;
  }
  return "";
}

// Each line without the blanks it begins with.
std::string unindented(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);)
    result += line.substr(std::min(line.find_first_not_of(' '), line.size())) + "\n";
  return result;
}

std::string tc(std::vector<std::string> words, const std::string& input) {
  std::istringstream in(input);
  std::ostringstream out, problems;
  if (run_tc(words, in, out, problems) != 0) fail(problems.str());
  return out.str();
}

std::string readme() {
  std::ifstream in("README.md");
  std::stringstream page;
  page << in.rdbuf();
  return page.str().starts_with("# tiny_compile") ? page.str() : "";
}

std::string printed(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The line of a block that begins with a word; "" where there is none.
std::string line_of(const std::string& block, const std::string& word) {
  std::istringstream lines(block);
  for (std::string line; std::getline(lines, line);) {
    if (!words_of(line).empty() && words_of(line)[0] == word) return line;
  }
  return "";
}

}  // namespace

TEST_CASE("README's graph is what tracing its function gives", "[tc]") {
  if (readme().empty()) SKIP("not run where README.md lies");
  const auto softmax = compile([](Tensor x) {
    Tensor e = exp(x - x.max({-1}, true));
    return e / e.sum(-1, true);
  });
  const Graph traced =
      softmax.specialization(empty_tensor(DType::f32, {4096, 1000})).traced.graph;
  CHECK(traced == parse_graph(block_with(readme(), "graph main(")));
}

TEST_CASE("README's kernel and C++ are what tc makes of its graph", "[tc]") {
  if (readme().empty()) SKIP("not run where README.md lies");
  const std::string page = readme(), graph = block_with(page, "graph main(");
  const std::string kernel = block_with(page, "kernel max_sub"),
                    code = block_with(page, "tc_tree_sum_float");
  REQUIRE_FALSE(kernel.empty());
  REQUIRE_FALSE(code.empty());
  CHECK_THAT(unindented(tc({"print", "-", "--until=fuse"}, graph)),
             ContainsSubstring(unindented(kernel)));
  CHECK_THAT(unindented(tc({"emit", "-"}, graph)), ContainsSubstring(unindented(code)));
}

TEST_CASE("README's commands of tc run on its graph", "[tc]") {
  if (readme().empty()) SKIP("not run where README.md lies");
  const std::string page = readme(), graph = block_with(page, "graph main(");
  std::istringstream lines(block_with(page, "$ build/tc"));
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream text(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word == "softmax.graph" ? "-" : word);
    if (words.size() < 3 || words[1] != "build/tc") continue;
    count++;
    if (words[2] == "explain") continue;  // measures for seconds
    INFO(line);
    CHECK_FALSE(tc({words.begin() + 2, words.end()}, graph).empty());
  }
  CHECK(count >= 6);
}

TEST_CASE("README's ladder of the demo is the demo's, but for the times", "[demo]") {
  if (readme().empty()) SKIP("not run where README.md lies");
  const std::string block = block_with(readme(), "A next-byte model");
  CHECK_THAT(block, ContainsSubstring(str("reads ", kDemoBytes, " bytes of its own text.")));
  const auto [bytes, next] = bytes_and_next(demo_text());
  manual_seed(1);
  const DemoModel model;
  const auto function =
      compile([&](Tensor b, Tensor n) { return next_byte_loss(model, b, n); });
  const auto traced = function.specialization(bytes, next);
  const Graph& graph = traced.traced.graph;
  const double loss = interpret(graph, traced.inputs)[0].item<double>();
  const auto megabytes = [](const Program& program) {
    return static_cast<double>(bytes_moved(program)) * 1e-6;
  };
  const auto check_rung = [&](const std::string& stage, const Pipeline& pipeline) {
    INFO(stage);
    const Program program = run_pipeline(pipeline, graph, true).program;
    const std::vector<std::string> words = words_of(line_of(block, stage));
    REQUIRE(words.size() == 6);
    CHECK(words[1] == str(program.launches.size()));
    CHECK(words[2] == printed("%.2f", megabytes(program)));
    CHECK(words[5] == printed("%a", loss));
    return program;
  };
  const Pipeline all = default_pipeline();
  const Program first = check_rung("eager", {});
  Program last;
  for (size_t n = 1; n <= all.size(); n++) {
    last = check_rung(all[n - 1].name, Pipeline(all.begin(), all.begin() + std::ptrdiff_t(n)));
  }
  const size_t before = first.launches.size(), after = last.launches.size();
  CHECK_THAT(block,
             ContainsSubstring(str(before, " launches became ", after, ", ",
                                   printed("%.1f", megabytes(first)), " MB became ",
                                   printed("%.1f", megabytes(last)), " MB, and it runs ")));
  CHECK_THAT(block, ContainsSubstring(str(" times as fast: loss ", printed("%.6f", loss),
                                          ", the same bits.")));
  CHECK_THAT(readme(), ContainsSubstring(str("**", before, " kernels become ", after, ",")));
}

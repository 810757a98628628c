// Rows that the blocks of a cluster share: the generated CUDA has the interpreter's bits on the
// CPU, and what would go wrong on a GPU is told.
#ifndef __SANITIZE_THREAD__  // it takes fibers for threads
#include <cmath>

#include "tests/codegen/cuda_clusters.h"
#include "tests/codegen/cuda_threads.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;
using Catch::Matchers::ContainsSubstring;

namespace {

Out several(In i) {
  return {log_softmax(i[0], 1), layer_norm(i[0], {i[0].size(1)}), max(i[0], {1})};
}

// `cluster` blocks share a row, or a column. The text.
std::string check_staged(const Staged& all, const Graph& graph,
                         const std::vector<Tensor>& inputs, int cluster) {
  INFO(all.source.text.substr(all.source.text.find("extern \"C\"")));
  CHECK(all.source.text.find(str("__cluster_dims__(", cluster, ", ")) != std::string::npos);
  const std::vector<Tensor> wanted = interpret(graph, inputs);
  for (bool last_thread_first : {false, true}) {
    const std::vector<Tensor> got =
        run_anywhere(all.program, all.source, inputs, last_thread_first);
    for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
  }
  check_on_gpu(all, inputs, wanted);
  return all.source.text;
}

Staged laid_out(const Graph& graph) {
  return run_pipeline(default_pipeline(), graph, true, Target::Cuda);
}

std::string check_shared(const Function& function, const std::vector<Tensor>& inputs,
                         int cluster) {
  const Graph graph = trace(function, inputs, "f").graph;
  return check_staged(laid_out(graph), graph, inputs, cluster);
}

Out loss_and_gradient(In i) {
  const Tensor column = i[1].unsqueeze(1), m = max(i[0], {1}, true), e = exp(i[0] - m);
  const Tensor sum = e.sum(1, true), p = e / sum, hit = arange(i[0].size(1)) == column;
  return {m + log(sum) - gather(i[0], 1, column), where(hit, p - 1.0, p)};
}

}  // namespace

TEST_CASE("wide rows that a cluster shares", "[codegen][threads]") {
  manual_seed(3);
  check_shared(softmax_along, {randn({2, 9001})}, 2);
  check_shared(several, {randn({3, 9001})}, 2);
  check_shared(several, {randn({3, 48001})}, 8);
}

TEST_CASE("exponentials of wide rows: by one factor, and again where one is out of range",
          "[codegen][threads]") {
  manual_seed(10);
  Tensor x = randn({6, 9001});
  float* at = x.data<float>();
  const auto row = [&](int64_t r) { return at + r * 9001; };
  row(1)[77] = HUGE_VALF;
  row(2)[9000] = std::nanf("");
  for (int64_t k = 0; k < 9001; k++) row(3)[k] = k < 3000 ? -HUGE_VALF : row(3)[k];
  for (int64_t k = 0; k < 9001; k++) row(4)[k] = -HUGE_VALF;
  for (int64_t k = 0; k < 9001; k += 500) row(5)[k] = 40 + static_cast<float>(k) / 200;
  check_shared(softmax_along, {x}, 2);
  check_shared(
      [](In i) {
        const Tensor all = logsumexp(i[0], {1}, true);
        return Out{exp(i[0] - all), exp(i[0]), all};
      },
      {x}, 2);
}

TEST_CASE("wide rows and their targets", "[codegen][threads]") {
  const Tensor target = from_vector<int64_t>({0, 4096, 9000});
  check_shared(loss_and_gradient, {randn({3, 9001}) * 3.0, target}, 2);
}

TEST_CASE("crossing rows of whose chunks the blocks of a cluster have some",
          "[codegen][threads]") {
  manual_seed(4);
  const auto scaled = [](In i) { return Out{i[0] / sum(i[0], {1}, true)}; };
  check_shared(softmax_along, {transposed(33, 1500)}, 2);  // lanes are rows
  const std::string text = check_shared(softmax_along, {transposed(40, 4000)}, 2);
  CHECK_THAT(text, ContainsSubstring("TC_SHARED(shared, "));  // more than may be declared
  check_shared(scaled, {transposed(48, 3100, bfloat16)}, 4);
  check_shared(scaled, {transposed(40, 5000, float64)}, 4);
  check_shared(softmax_along, {transposed(40, 20000)}, 8);
}

TEST_CASE("columns whose parts the blocks of a cluster read", "[codegen][threads]") {
  manual_seed(8);
  const auto sum_down = [](In i) { return Out{i[0].sum(0)}; };
  check_shared(sum_down, {randn({4000, 96})}, 4);
  check_shared(sum_down, {randn({2500, 130}).to(bfloat16)}, 4);
  check_shared(sum_down, {randn({4000, 600}).slice(1, 0, 600, 2)}, 4);
}

TEST_CASE("what is wrong with a cluster is told", "[codegen][threads]") {
  manual_seed(9);
  const std::vector<Tensor> inputs = {randn({2, 9001})};
  const Staged all = laid_out(trace(softmax_along, inputs, "f").graph);
  const auto run_with = [&](const std::string& statement, const std::string& changed) {
    Source source = all.source;
    const size_t kernel = source.text.find("extern");
    const std::regex pattern(statement);
    source.text = source.text.substr(0, kernel) +
                  std::regex_replace(source.text.substr(kernel), pattern, changed,
                                     std::regex_constants::format_first_only);
    run_anywhere(all.program, source, inputs, false);
  };
  const std::string send = "(tc_send.*;)";
  CHECK_NOTHROW(run_with(send, "$1"));
  CHECK_THROWS_WITH(run_with(send, "if (warp != 3 || lane != 0) $1"),
                    ContainsSubstring("waits for ever for bytes that nobody sends"));
  CHECK_THROWS_WITH(run_with(send, "{ $1 $1 }"), ContainsSubstring("sends more bytes than"));
  CHECK_THROWS_WITH(run_with("tc_blocks_are_there\\(\\);", ""),
                    ContainsSubstring("does not know yet whether blocks are there"));
  CHECK_THROWS_WITH(run_with("tc_expect.*;", ""), ContainsSubstring("has not arrived"));
}
#endif

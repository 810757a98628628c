// One CUDA kernel for many: thread by thread on the CPU, with the interpreter's bits.
#include "tiny_compile/codegen/cuda_group.h"

#include <array>
#include <bit>
#include <cstdint>

#include "tests/codegen/cuda_threads.h"
#include "tests/codegen/scheduled.h"
#include "tiny_compile/loops/interpreter.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;

namespace {

// As one launch that holds them all.
void check_together(const Function& each, const Out& inputs) {
  const Staged all = check_bits(
      [&](In x) {
        Out results;
        for (const Tensor& t : x)
          for (const Tensor& result : each(In(&t, 1))) results.push_back(result);
        return results;
      },
      inputs);
  INFO(print(all.program));
  CHECK(all.program.launches.size() < all.program.kernels.size());
  for (const std::vector<int>& launch : all.program.launches)
    CHECK(starts_of(all.source.kernels, launch).size() == 1);
  if (why_no_nvrtc().empty()) CHECK(compile_cuda(all.source.text, "sm_90").size() > 4);
}

}  // namespace

TEST_CASE("points of many sizes in one launch", "[codegen][threads][group_launches]") {
  manual_seed(1);
  Out inputs;
  for (int64_t n : {1000, 3, 5000, 1024, 2049, 7}) inputs.push_back(randn({n}));
  check_together([](In i) { return Out{exp(i[0]) * 2.0, i[0] - 1.0}; }, inputs);
  for (Tensor& input : inputs) input = input.to(bfloat16);
  check_together([](In i) { return Out{i[0] * i[0]}; }, inputs);
}

TEST_CASE("equal rows, columns, scans and sorts in one launch",
          "[codegen][threads][group_launches]") {
  manual_seed(2);
  const Out inputs = {randn({40, 100}), randn({40, 100}), randn({40, 100})};
  check_together([](In i) { return softmax_along(i); }, inputs);
  check_together([](In i) { return Out{i[0].sum(0)}; }, inputs);
  check_together([](In i) { return Out{cumsum(i[0], 1)}; }, inputs);
  check_together([](In i) { return Out{sort(i[0], 1).first}; }, inputs);
}

TEST_CASE("a table begins where its kernels' blocks do, and ends beyond them",
          "[codegen][group_launches]") {
  std::vector<KernelEntry> kernels(4);
  for (size_t k = 0; k < kernels.size(); k++) {
    kernels[k].function = k == 2 ? "k_other" : "k_one";
    kernels[k].buffers = {static_cast<int>(k)};
    kernels[k].grid = static_cast<int64_t>(k) + 1;
    kernels[k].room = k == 2 ? 0 : 2;
    kernels[k].points = 100 * static_cast<int64_t>(k);
  }
  const std::vector<Start> starts = starts_of(kernels, {0, 1, 2, 3});
  REQUIRE(starts.size() == 3);
  CHECK(starts[0].kernels == std::vector<int>{0, 1});
  CHECK(starts[0].grid == 3);
  CHECK(starts[1].kernels == std::vector<int>{2});
  CHECK(starts[2].grid == 4);
  int a, b, c, d;
  const std::vector<void*> addresses = {&a, &b, &c, &d};
  const auto word = [](int& at) { return reinterpret_cast<int64_t>(&at); };
  const auto firsts = [](uint32_t low, uint32_t high) {  // two in a word of the table
    return std::bit_cast<int64_t>(std::array{low, high});
  };
  CHECK(table_of(kernels, starts[0], addresses) ==
        std::vector<int64_t>{firsts(0, 1), 0, word(a), 100, word(b)});
  CHECK(table_of(kernels, starts[2], addresses) ==
        std::vector<int64_t>{firsts(0, UINT32_MAX), 300, word(d), 0, 0});
  for (KernelEntry& kernel : kernels) kernel.room = 3;  // an odd number of firsts
  CHECK(table_of(kernels, starts[0], addresses) ==
        std::vector<int64_t>{firsts(0, 1), firsts(UINT32_MAX, 0), 0, word(a), 100, word(b), 0,
                             0});
}

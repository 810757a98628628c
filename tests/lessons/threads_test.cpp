// CUDA text on the CPU: who writes what, what meets where, and what never comes.
#ifndef __SANITIZE_THREAD__  // it takes fibers for threads
#include "lessons/tools/threads.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<int> run(const std::string& body, int64_t grid, int block, size_t results) {
  std::vector<int> out(results, -1);
  void* address = out.data();
  Threads threads("__global__ void k(int* out) {\n" + body + "\n}\n", {{"k", 1}});
  threads.run("k", grid, block, {&address});
  return out;
}

}  // namespace

TEST_CASE("a thread knows its place and the sizes", "[lessons]") {
  const std::vector<int> out =
      run("out[blockIdx.x * blockDim.x + threadIdx.x] = 1000 * gridDim.x + 100 * blockIdx.x + "
          "threadIdx.x;",
          2, 3, 6);
  REQUIRE(out == std::vector<int>{2000, 2001, 2002, 2100, 2101, 2102});
}

TEST_CASE("a barrier waits for all threads of a block", "[lessons]") {
  const std::string before = "__shared__ int at[64]; at[threadIdx.x] = threadIdx.x;",
                    after = "out[threadIdx.x] = at[63 - threadIdx.x];";
  const std::vector<int> with = run(before + "__syncthreads();" + after, 1, 64, 64);
  for (int t = 0; t < 64; t++) REQUIRE(with[static_cast<size_t>(t)] == 63 - t);
  const std::vector<int> without = run(before + after, 1, 64, 64);
  REQUIRE(without[0] == 0);  // thread 63 has not been there yet
}

TEST_CASE("lanes exchange what they hold, within their warp", "[lessons]") {
  const std::vector<int> out =
      run("out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, (int)threadIdx.x, 5);", 1, 64, 64);
  for (int t = 0; t < 64; t++) REQUIRE(out[static_cast<size_t>(t)] == (t ^ 5));
  const std::vector<int> down =
      run("out[threadIdx.x] = __shfl_down_sync(0xffffffffu, (int)threadIdx.x, 8);", 1, 64, 64);
  REQUIRE(down[3] == 11);
  REQUIRE(down[30] == 30);
  REQUIRE(down[40] == 48);
}

TEST_CASE("a barrier that not all threads come to is told", "[lessons]") {
  REQUIRE_THROWS_WITH(run("if (threadIdx.x < 10) __syncthreads(); out[0] = 1;", 1, 64, 1),
                      ContainsSubstring("waits for threads that never come"));
}

TEST_CASE("lanes that shuffle in different branches do not meet", "[lessons]") {
  const std::string apart =
      "int v = threadIdx.x; if (threadIdx.x % 8 < 4) v = __shfl_xor_sync(0xffffffffu, v, 1) + "
      "1;"
      "else v = __shfl_xor_sync(0xffffffffu, v, 2) * 3; out[threadIdx.x] = v;";
  REQUIRE_THROWS_WITH(run(apart, 1, 32, 32), ContainsSubstring("shuffles elsewhere"));
  const std::string warps =
      "int v = threadIdx.x; if (threadIdx.x / 32) v = __shfl_xor_sync(0xffffffffu, v, 1) + 1;"
      "else v = __shfl_xor_sync(0xffffffffu, v, 2) * 3; out[threadIdx.x] = v;";
  const std::vector<int> out = run(warps, 1, 64, 64);  // each warp takes one branch
  REQUIRE(out[5] == 7 * 3);
  REQUIRE(out[40] == 41 + 1);
}

TEST_CASE("threads go from the last to the first where that is asked for", "[lessons]") {
  for (const char* barrier : {"", "__syncthreads();"}) {
    Threads threads(str("__global__ void k(int* out) { __shared__ int turn; "
                        "if (threadIdx.x == 3) turn = 0; ",
                        barrier, " out[threadIdx.x] = turn++; }"),
                    {{"k", 1}});
    threads.go_last_first();
    std::vector<int> out(4, -1);
    void* address = out.data();
    threads.run("k", 1, 4, {&address});
    REQUIRE(out == std::vector<int>{3, 2, 1, 0});
  }
}

TEST_CASE("arguments are passed as in CUDA, by their addresses", "[lessons]") {
  Threads threads("__global__ void k(const float* x, double f, float* y) { y[0] = x[0] * f; }",
                  {{"k", 3}});
  float x = 3, y = 0;
  double f = 0.5;
  void *from = &x, *to = &y;
  threads.run("k", 1, 1, {&from, &f, &to});
  REQUIRE(y == 1.5f);
}
#endif

// Work that repeats is started as a whole, and gives what it gave when started piece by piece.
#include "tiny_compile/runtime/cuda_replay.h"

#include <thread>

#include "tests/fuzz/harness.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/tiny_compile.h"
//
#include "tests/catch.h"

using namespace tiny_compile;
using Out = std::vector<Tensor>;

namespace {

// Fills a block with a number; counts how often it was started.
struct Fill {
  std::shared_ptr<Storage> block = allocate_cuda(4096, 0);
  int starts = 0;
  unsigned char value = 1;

  void run(CudaReplay& replay) {
    const CudaScope scope(0);
    replay.run({block->data()}, [&] {
      starts++;
      driver::fill_bytes(address(), value, 4096, cuda_stream(0));
    });
  }
  CudaAddress address() const { return reinterpret_cast<CudaAddress>(block->data()); }
  int seen() const {
    unsigned char last = 0;
    block->read(4095, 1, reinterpret_cast<std::byte*>(&last));
    return last;
  }
  void clear() const {
    const CudaScope scope(0);
    driver::fill_bytes(address(), 0, 4096, cuda_stream(0));
  }
};

// A few kernels one after another, which no fusion makes one.
Out chain(Tensor x) {
  const Tensor a = softmax(x, 1), b = a.sum(0);
  return {(a / b).sum(0), a};
}

}  // namespace

TEST_CASE("what is started twice is recorded and then replayed", "[cuda][replay]") {
  NEEDS_GPU;
  CudaReplay replay(0);
  Fill fill;
  for (int call = 1; call <= 5; call++) {
    fill.clear();
    fill.run(replay);
    CHECK(fill.starts == std::min(call, 2));
    CHECK(fill.seen() == 1);
  }
  std::vector<Fill> others(5);  // one more than are remembered: the first ones go
  for (Fill& other : others) {
    for (int call = 0; call < 3; call++) other.run(replay);
    CHECK(other.starts == 2);
    CHECK(other.seen() == 1);
  }
  fill.clear();
  fill.run(replay);
  CHECK(fill.starts == 3);
  CHECK(fill.seen() == 1);
}

TEST_CASE("what cannot be recorded is started each time", "[cuda][replay]") {
  NEEDS_GPU;
  CudaReplay replay(0);
  int starts = 0;
  const auto waits = [&] {  // no graph can wait
    starts++;
    driver::synchronize(cuda_stream(0));
  };
  const CudaScope scope(0);
  int place = 0;
  for (int call = 0; call < 4; call++) replay.run({&place}, waits);
  CHECK(starts == 5);  // once in vain
  const auto fails = [] { fail("no"); };
  for (int call = 0; call < 3; call++) CHECK_THROWS(replay.run({&starts}, fails));
}

TEST_CASE("calls that repeat see new data, in place or elsewhere", "[cuda][replay]") {
  NEEDS_GPU;
  manual_seed(3);
  const auto want = compile(chain, {.backend = "interpreter"});
  const auto f = compile(chain);
  const Tensor there = randn({70, 33}).to(cuda);
  const CudaAddress address = reinterpret_cast<CudaAddress>(there.info().storage->data());
  std::vector<Tensor> held;
  for (int call = 0; call < 12; call++) {
    const Tensor x = randn({70, 33});
    {
      const CudaScope scope(0);
      driver::copy_to_device(address, x.bytes(), 70 * 33 * 4, cuda_stream(0));
    }
    const Out got = f(there), expected = want(x);
    for (size_t k = 0; k < got.size(); k++) CHECK(same_bits(expected[k], got[k].to(cpu)));
    if (call % 3 == 0) held.push_back(got[1]);  // what is held is written by no later call
    const Tensor elsewhere = x.to(cuda);
    CHECK(same_bits(expected[0], f(elsewhere)[0].to(cpu)));
    if (call % 4 == 0) held.push_back(elsewhere);
  }
  const Tensor first = held[0].to(cpu);
  f(there), f(there);
  CHECK(same_bits(first, held[0].to(cpu)));
}

TEST_CASE("calls that repeat with the library's matmuls, and mistakes in each of them",
          "[cuda][replay][cublaslt]") {
  NEEDS_GPU;
  manual_seed(4);
  const auto f = compile([](Tensor x, Tensor w) { return softmax(relu(matmul(x, w)), 1); });
  const Tensor x = randn({512, 256}).to(bfloat16).to(cuda),
               w = randn({256, 1024}).to(bfloat16).to(cuda);
  const Tensor first = f(x, w).to(cpu);
  for (int call = 0; call < 5; call++) CHECK(same_bits(first, f(x, w).to(cpu)));
  using ::tests::message_of;
  const auto taken = compile([](Tensor t, Tensor index) {
    const Tensor rows = gather(t, 1, index);
    return rows / rows.sum(0) + (t * 2.0).sum();
  });
  const Tensor t = randn({4, 8}).to(cuda);
  const Tensor bad = from_vector<int64_t>({0, 1, 9, 2}).reshape({4, 1}).to(cuda);
  for (int call = 0; call < 4; call++)
    CHECK_THAT(message_of([&] { taken(t, bad).to(cpu); }),
               Catch::Matchers::ContainsSubstring("out of range"));
}

TEST_CASE("calls that repeat from several threads and streams", "[cuda][replay]") {
  NEEDS_GPU;
  manual_seed(5);
  const auto f = compile(chain);
  const Tensor x = randn({70, 33}), there = x.to(cuda);
  const Out want = compile(chain, {.backend = "interpreter"})(x);
  std::vector<int> wrong(6);
  std::vector<std::thread> threads;
  for (size_t k = 0; k < wrong.size(); k++) {
    threads.emplace_back([&, k] {
      CudaStream stream = nullptr;
      {
        const CudaScope scope(0);
        stream = k % 2 ? driver::create_stream() : cuda_stream(0);
      }
      const CudaStreamScope mine(0, stream);
      for (int call = 0; call < 40; call++)
        wrong[k] += !same_bits(want[0], f(there)[0].to(cpu));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int count : wrong) CHECK(count == 0);
}

TEST_CASE("a function may go while its last call still runs", "[cuda][replay]") {
  NEEDS_GPU;
  manual_seed(6);
  const Tensor x = randn({2000, 3000}), there = x.to(cuda);
  const Out want = compile(chain)(x);
  for (int time = 0; time < 3; time++) {
    Out last;
    {
      const auto f = compile(chain);
      for (int call = 0; call < 4; call++) last = {}, last = f(there);
    }
    CHECK(same_bits(want[0], last[0].to(cpu)));
  }
}

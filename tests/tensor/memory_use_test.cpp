#include "tiny_compile/tensor/memory_use.h"

#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tiny_compile/trace/creation.h"

using namespace tiny_compile;

TEST_CASE("bytes in use follow storage, their peak does not fall", "[storage]") {
  const int64_t before = memory_use(cpu).bytes;
  reset_peak_memory(cpu);
  CHECK(memory_use(cpu).peak == before);
  auto large = allocate_cpu(100000);
  const auto small = allocate_cpu(300);
  CHECK(memory_use(cpu).bytes == before + 100300);
  large.reset();  // kept in a free block, which nobody holds
  CHECK(memory_use(cpu).bytes == before + 300);
  CHECK(memory_use(cpu).peak == before + 100300);
  reset_peak_memory(cpu);
  CHECK(memory_use(cpu).peak == before + 300);
}

TEST_CASE("a view holds no bytes of its own", "[storage]") {
  const Tensor x = zeros({1000});
  const int64_t before = memory_use(cpu).bytes;
  const Tensor rows = x.reshape({10, 100}), part = rows.select(0, 3);
  CHECK(memory_use(cpu).bytes == before);
}

TEST_CASE("memory that fails to come is not counted", "[storage]") {
  const MemoryUse before = memory_use(cpu);
  CHECK_THROWS_AS(allocate_cpu(SIZE_MAX / 8), Error);
  CHECK(memory_use(cpu).bytes == before.bytes);
  CHECK(memory_use(cpu).peak == before.peak);
}

TEST_CASE("threads count into one number", "[storage]") {
  const int64_t before = memory_use(cpu).bytes;
  reset_peak_memory(cpu);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; thread++) {
    threads.emplace_back([] {
      for (int i = 0; i < 2000; i++) allocate_cpu(1000).reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(memory_use(cpu).bytes == before);
  CHECK(memory_use(cpu).peak >= before + 1000);
  CHECK(memory_use(cpu).peak <= before + 4000);
}

TEST_CASE("each device has its own count", "[storage]") {
  const Device other{DeviceKind::Cuda, 97};
  const int64_t on_cpu = memory_use(cpu).bytes;
  count_memory(other, 300), count_memory(other, 100), count_memory(other, -300);
  CHECK(memory_use(other).bytes == 100);
  CHECK(memory_use(other).peak == 400);
  CHECK(memory_use({DeviceKind::Cuda, 98}).peak == 0);
  CHECK(memory_use({DeviceKind::Cuda, 1000}).bytes == 0);  // no machine has it
  CHECK(memory_use({DeviceKind::Cuda, -1}).bytes == 0);
  CHECK(memory_use(cpu).bytes == on_cpu);
}

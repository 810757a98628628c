#include "tiny_compile/tensor/storage.h"

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/catch.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("CPU memory is aligned, of the size asked for, and writable", "[storage]") {
  for (const size_t bytes : {0, 1, 63, 64, 65, 100, 4096, 1000003, 5 << 20}) {
    CAPTURE(bytes);
    const auto storage = allocate_cpu(bytes);
    CHECK(storage->bytes() == bytes);
    CHECK(storage->device() == cpu);
    REQUIRE(storage->data() != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(storage->data()) % 64 == 0);
    std::memset(storage->data(), 0x5a, bytes);
  }
}

TEST_CASE("live blocks do not overlap", "[storage]") {
  std::vector<std::shared_ptr<Storage>> blocks;
  for (int i = 0; i < 50; i++) {
    blocks.push_back(allocate_cpu(static_cast<size_t>(100 + i)));
    std::memset(blocks.back()->data(), i, blocks.back()->bytes());
  }
  for (int i = 0; i < 50; i++) {
    const std::byte* data = blocks[static_cast<size_t>(i)]->data();
    CHECK(data[0] == std::byte(i));
    CHECK(data[99 + i] == std::byte(i));
  }
}

TEST_CASE("a freed block is handed out again", "[storage]") {
  release_cached_memory();
  CHECK(cached_bytes() == 0);
  auto storage = allocate_cpu(300);
  const std::byte* block = storage->data();
  CHECK(cached_bytes() == 0);
  storage.reset();
  CHECK(cached_bytes() == 320);
  storage = allocate_cpu(310);  // of the same class: 257..320 bytes
  CHECK(storage->data() == block);
  CHECK(cached_bytes() == 0);
  const auto other = allocate_cpu(310);
  CHECK(other->data() != block);
}

TEST_CASE("rounding wastes a quarter at most", "[storage]") {
  for (size_t bytes = 256; bytes < 100000; bytes = bytes * 9 / 8 + 1) {
    release_cached_memory();
    allocate_cpu(bytes).reset();
    CAPTURE(bytes);
    CHECK(cached_bytes() >= bytes);
    CHECK(4 * cached_bytes() <= 5 * bytes);
  }
}

TEST_CASE("cached memory can be given back", "[storage]") {
  allocate_cpu(10000).reset();
  CHECK(cached_bytes() >= 10000);
  release_cached_memory();
  CHECK(cached_bytes() == 0);
}

TEST_CASE("memory that is not there is an error that names the size", "[storage]") {
  CHECK_THROWS_WITH(allocate_cpu(SIZE_MAX), ContainsSubstring("18446744073709551615 bytes"));
  CHECK_THROWS_AS(allocate_cpu(SIZE_MAX / 2 + 1), Error);
#ifndef __SANITIZE_ADDRESS__  // which stops at such a request
  CHECK_THROWS_AS(allocate_cpu(size_t{1} << 60), Error);
#endif
}

TEST_CASE("threads may allocate and free at once", "[storage]") {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 2000; i++) {
        const auto storage = allocate_cpu(static_cast<size_t>(64 + i % 700));
        std::memset(storage->data(), t, storage->bytes());
        wrong[static_cast<size_t>(t)] += storage->data()[storage->bytes() - 1] != std::byte(t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("devices have names", "[storage]") {
  CHECK(cpu.str() == "cpu");
  CHECK(cuda.str() == "cuda:0");
  CHECK(Device{DeviceKind::Cuda, 3}.str() == "cuda:3");
}

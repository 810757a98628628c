#include "tiny_compile/runtime/executable.h"

#include <omp.h>
#include <sys/resource.h>
#include <algorithm>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Home {  // a cache of the test's own
  Scratch scratch;
  Setting cache{"TC_CACHE_DIR", scratch.path("cache")};
};

auto doubling() {
  return tiny_compile::compile([](Tensor x) { return x + x; }, {.name = "doubling"});
}

auto picking() {
  return tiny_compile::compile(
      [](Tensor table, Tensor index) { return gather(table, 0, index); });
}

// A kernel that counts how often each unit is done, by which thread, and that reads what it left
// in memory of its own; `slow` microseconds go by in a unit of the thread that has unit 0.
class Counted {
 public:
  Counted(int64_t units, int64_t grain, int slow = 0) {
    const std::string text = R"(
static int times[1 << 16];
static void* slow;
extern "C" int usleep(unsigned);
extern "C" unsigned tc_take_errors() { return 0; }
extern "C" void count(void* const* buffers, long long begin, long long end) {
  long long* const own = (long long*)buffers[1];
  for (long long u = begin; u < end; u++) {
    if (u == 0) __atomic_store_n(&slow, buffers[1], __ATOMIC_RELAXED);
    if (__atomic_load_n(&slow, __ATOMIC_RELAXED) == buffers[1]) usleep(SLOW);
    int* const of_unit = (int*)buffers[0] + 4 * u;
    of_unit[0] = __atomic_add_fetch(&times[u], 1, __ATOMIC_RELAXED);
    of_unit[1] = (int)++own[0];
    of_unit[2] = slow == buffers[1];
    of_unit[3] = (int)((unsigned long long)own & 63);
    own[12] = u;  // the last of them
  }
}
)";
    const size_t at = text.find("SLOW");
    const std::string whole = text.substr(0, at) + std::to_string(slow) + text.substr(at + 4);
    program_ = parse_program(str("program counted {\n  output y: i32[", units,
                                 ",4]\n  kernel count rows(i0: ", units,
                                 ", i1: 4) {\n    store y[i0*4 + i1] = i32 0\n  }\n"
                                 "  launch count\n  return y\n}\n"));
    KernelEntry entry;
    entry.function = "count", entry.buffers = {0}, entry.units = units, entry.grain = grain,
    entry.own_bytes = 104, entry.zeroed = 64;
    executable_ = std::make_unique<Executable>(program_, Source{whole, {entry}},
                                               build_cpp(whole, default_toolchain()));
  }
  std::vector<int32_t> run() const { return executable_->run({})[0].to_vector<int32_t>(); }

 private:
  Program program_;
  std::unique_ptr<Executable> executable_;
};

// Bytes of address space this process has now, without what tests before freed.
size_t address_space() {
  release_cached_memory();
  return std::strtoull(text_of("/proc/self/statm").c_str(), nullptr, 10) *
         static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("a kernel shared among threads and one that is not give the same", "[executable]") {
  const Home home;
  const auto f = doubling();
  for (int64_t n : {0, 1, 1000, 300000})
    CHECK(same_bits(f(ones({n})), filled_tensor(Literal::of(DType::f32, 2.0), {n})));
}

TEST_CASE("each unit is done once, in memory of a thread's own that is zero at first",
          "[executable]") {
  const Home home;
  for (int64_t units : {1, 2, 7, 64, 1001}) {
    for (int64_t grain : {1, 3, 400}) {
      const Counted counted(units, grain);
      for (int time = 1; time <= 3; time++) {
        const std::vector<int32_t> y = counted.run();
        INFO(units << " units, " << grain << " worth a thread, time " << time);
        int32_t most = 0, begun = 0;
        for (size_t u = 0; u < y.size(); u += 4) {
          CHECK(y[u] == time);
          CHECK(y[u + 3] == 0);
          most = std::max(most, y[u + 1]), begun += y[u + 1] == 1;
        }
        REQUIRE(begun > 0);
        CHECK(begun <= std::max<int64_t>(units / grain, 1));
        CHECK(most >= units / begun);
      }
    }
  }
}

TEST_CASE("what a slow thread leaves, others do", "[executable]") {
  const int before = omp_get_max_threads();
  omp_set_dynamic(0);
  omp_set_num_threads(4);
  int team = 1;
#pragma omp parallel
#pragma omp single
  team = omp_get_num_threads();
  const Home home;
  const std::vector<int32_t> y = Counted(640, 1, 5000).run();
  omp_set_num_threads(before);
  if (team == 1) SKIP("OpenMP gives one thread");
  int64_t by_slow = 0;
  for (size_t u = 2; u < y.size(); u += 4) by_slow += y[u];
  CHECK(by_slow > 0);
  CHECK(by_slow < 640 / 4);
}

TEST_CASE("a child of a process whose threads ran kernels can run them", "[executable]") {
  const Home home;
  const auto f = doubling();
  const Tensor x = ones({1000000});
  f(x);
  CHECK(in_child([&] { return f(x).to_vector<float>().back() == 2.0f ? 0 : 1; }) == 0);
}

TEST_CASE("an index out of range is an error of the call that had it, and of no other",
          "[executable]") {
  const Home home;
  const auto f = picking(), g = picking();  // the same code: one library serves both
  const Tensor table = ones({16});
  const Tensor good = from_vector(std::vector<int64_t>(2000, 3));
  const Tensor bad = from_vector(std::vector<int64_t>(2000, 99));
  f(table, good);
  g(table, good);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      const auto& mine = t < 2 ? f : g;
      for (int i = 0; i < 300; i++) {
        bool failed = false;
        try {
          mine(table, t % 2 ? bad : good);
        } catch (const Error&) {
          failed = true;
        }
        wrong += failed != (t % 2 == 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("an index out of range in a helper's share is an error too", "[executable]") {
  const Home home;
  const auto f = picking();
  const Tensor table = ones({16});
  for (size_t at : {size_t{0}, size_t{399999}}) {
    std::vector<int64_t> index(400000, 3);
    index[at] = -1;
    CHECK_THROWS_AS(f(table, from_vector(index)), Error);
    index[at] = 4;
    CHECK_NOTHROW(f(table, from_vector(index)));
  }
}

TEST_CASE("absurd shapes are errors that name them", "[executable]") {
  CHECK_THAT(message_of([] {
               empty_tensor(DType::f32, {1 << 23, 1 << 23});  // more than addresses reach
             }),
             ContainsSubstring("f32[8388608,8388608]") && ContainsSubstring("out of memory") &&
                 ContainsSubstring("281474976710656 bytes"));
  CHECK_THAT(message_of([] {
               empty_tensor(DType::f64, {int64_t{1} << 40, int64_t{1} << 40});
             }),
             ContainsSubstring("[1099511627776,1099511627776] has too many elements"));
  CHECK_THAT(message_of([] {
               empty_tensor(DType::f32, {2, -1});
             }),
             ContainsSubstring("sizes are not negative"));
}

TEST_CASE("a compiled function without memory for its result says so and can go on",
          "[executable]") {
  if (!kLimitsMemory) SKIP("built with a sanitizer");
  const Home home;
  const auto outer = tiny_compile::compile(
      [](Tensor x, Tensor y) {
        return x.reshape({-1, 1}) + y;
      },
      {.name = "outer"});
  const Setting one_thread("OMP_NUM_THREADS", "1");
  const int code = in_child([&] {
    const Tensor long_one = ones({20000}), short_one = ones({10});
    if (outer(short_one, short_one).numel() != 100) return 1;
    outer.specialization(long_one, long_one);
    const size_t most =
        address_space() + (size_t{600} << 20);  // room for a compiler, not 1.6 GB
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
    const std::string message = message_of([&] { outer(long_one, long_one); });
    for (const char* part : {"outer, compiled: ", "f32[20000,20000]", "out of memory",
                             "1600000000 bytes", "use smaller tensors"}) {
      if (message.find(part) == std::string::npos) {
        std::fprintf(stderr, "no '%s' in: %s\n", part, message.c_str());
        return 2;
      }
    }
    return outer(short_one, short_one).numel() == 100 ? 0 : 3;
  });
  CHECK(code == 0);
}

TEST_CASE("memory freed by one size is given up for another before any error", "[executable]") {
  if (!kLimitsMemory) SKIP("built with a sanitizer");
  CHECK(in_child([] {
          const size_t most = address_space() + (size_t{96} << 20);
          const rlimit limit{most, most};
          setrlimit(RLIMIT_AS, &limit);
          allocate_cpu(size_t{40} << 20);  // freed at once: kept by the allocator
          allocate_cpu(size_t{72} << 20);
          return 0;
        }) == 0);
}

TEST_CASE("wherever memory ends while a function is compiled, the end is an error or right",
          "[executable]") {
  if (!kLimitsMemory) SKIP("built with a sanitizer");
  const Home home;
  const auto f = doubling();
  const Tensor x = ones({4});
  for (const int extra : {0, 16, 64, 200, 500, 1000, 4000, 16000}) {
    INFO(extra << " KB");
    CHECK(in_child([&] {
            const size_t most = address_space() + static_cast<size_t>(extra) * 1024;
            const rlimit limit{most, most};
            setrlimit(RLIMIT_AS, &limit);
            try {
              return f(x).to_vector<float>() == std::vector<float>(4, 2.0f) ? 0 : 1;
            } catch (const Error& error) {
              return std::string(error.what()).size() > 20 ? 0 : 2;
            }
          }) == 0);
  }
}

TEST_CASE("a function too long for the memory there is gives an error", "[executable]") {
  if (!kLimitsMemory) SKIP("built with a sanitizer");
  const Home home;
  const auto f = tiny_compile::compile(
      [](Tensor x) {
        // However much memory earlier tests have freed.
        for (int64_t i = 0; i < int64_t{1} << 40; i++) x = x + x;
        return x;
      },
      {.name = "endless"});
  const Tensor x = ones({4});
  CHECK(in_child([&] {
          const size_t most = address_space() + (size_t{8} << 20);
          const rlimit limit{most, most};
          setrlimit(RLIMIT_AS, &limit);
          const std::string message = message_of([&] { f(x); });
          return message.find("endless: out of memory while it was traced") == 0 ? 0 : 1;
        }) == 0);
}

TEST_CASE("kernels that are worth few threads and many keep the same ones", "[executable]") {
  const auto threads = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
      names.insert(entry.path().filename());
    return names;
  };
  const int before = omp_get_max_threads();
  omp_set_num_threads(4);
  const Home home;
  const Counted few(2, 1), many(640, 1);
  many.run();
  const std::set<std::string> first = threads();
  for (int time = 0; time < 5; time++) few.run(), many.run();
  const std::set<std::string> later = threads();  // earlier tests' may have ended
  CHECK(std::includes(first.begin(), first.end(), later.begin(), later.end()));
  omp_set_num_threads(before);
}

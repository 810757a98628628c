// What the runtime asks of a GPU's driver, also on a machine without one: the cases with [streams],
// [.pretend] and [.pretend_machine] run in a process whose libcuda.so.1 is pretend_cuda.h; [streams]
// on a GPU as well, and those of an [index] there alone, as the pretended kernels compute nothing.
#include <dlfcn.h>

#include <thread>

#include "tests/runtime/scratch.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/runtime/cpp_toolchain.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/runtime/process.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/tiny_compile.h"
//
#include "tests/catch.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;
using tests::message_of;

namespace {

template <typename Function>
Function* pretend(const char* name) {
  return reinterpret_cast<Function*>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
}
int waits() { return pretend<int()>("pretend_waits")(); }
// Of streams that are gone, where the driver counts them.
int misuses() {
  const auto count = pretend<int()>("pretend_misuses");
  return count ? count() : 0;
}
void fail_next(int launch, int wait) { pretend<void(int, int)>("pretend_next")(launch, wait); }

Tensor number(float value) { return from_vector<float>({value}); }
float value_of(const Tensor& tensor) { return tensor.to(cpu).data<float>()[0]; }

// A user's stream, destroyed at the end.
struct UsersStream {
  CudaStream stream = [] {
    const CudaScope device(0);
    return driver::create_stream();
  }();
  ~UsersStream() {
    const CudaScope device(0);
    driver::destroy_stream(stream);
  }
};

auto add_one() {
  return compile([](Tensor x) { return x + 1.0; }, {.name = "add_one"});
}
auto look_up() {
  return compile([](Tensor table, Tensor i) { return embedding(i, table); }, {.name = "look"});
}
Tensor table() {
  return from_vector<float>({0, 0, 0, 0, 10, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0}, Sizes{4, 4})
      .to(cuda);
}
Tensor index(int64_t value) { return from_vector<int64_t>({value}).to(cuda); }

// Of a process that has used a GPU.
void check_forked() {
  REQUIRE(cuda_device_count() > 0);
  { const CudaScope used(0); }
  CHECK(tests::in_child([] {
          const std::string said = message_of([] { const CudaScope scope(0); });
          const bool told = said.find("CUDA does not survive fork") != std::string::npos &&
                            why_no_cuda().find("fork") != std::string::npos;
          return told && cuda_device_count() == 0 ? 0 : 1;
        }) == 0);
  { const CudaScope still_here(0); }
}

// The cases with that tag, in a process whose driver is the pretended one.
void check_on_pretend_gpu(const std::string& tag) {
  const tests::Scratch scratch;
  const ProcessResult built =
      run_process({default_toolchain().compiler, "-std=c++20", "-x", "c++", "-shared", "-fPIC",
                   "-o", scratch.path("libcuda.so.1"), "tests/runtime/pretend_cuda.h"},
                  "", 120);
  INFO(built.output);
  REQUIRE(built.exit_code == 0);
  const char* paths = std::getenv("LD_LIBRARY_PATH");
  const ProcessResult ran =
      run_process({"/proc/self/exe", tag}, "", 120,
                  {str("LD_LIBRARY_PATH=", scratch.path(""), paths ? str(":", paths) : "")});
  INFO(ran.output);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.output, ContainsSubstring("All tests passed"));
}

}  // namespace

TEST_CASE("a child of fork is told that CUDA does not survive it", "[cuda][fork]") {
  if (!why_no_cuda().empty()) SKIP(why_no_cuda());
  check_forked();
}

TEST_CASE("streams, errors and memory on a pretend GPU", "[cuda]") {
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  check_on_pretend_gpu("[.pretend],[streams]~[index]");
}

TEST_CASE("a driver's numbers make a machine, which programs are compiled for", "[machine]") {
  check_on_pretend_gpu("[.pretend_machine]");
}

TEST_CASE("what the pretend driver says is an h200", "[.pretend_machine]") {
  CHECK(machine_on(cuda) == parse_machine("h200"));
  CHECK(machine_on(cpu) == this_cpu());
  const Program on_cpu, on_a100 = for_machine({}, parse_machine("a100"));
  CHECK(on_device(on_cpu, cuda).machine == parse_machine("h200"));
  CHECK(on_device(on_a100, cuda).machine == on_a100.machine);
  CHECK(on_device(on_a100, cpu).machine == this_cpu());
  Source large;
  large.kernels.emplace_back();
  large.kernels[0].shared = 228 << 10;
  CHECK_THROWS_WITH(build(for_machine({}, parse_machine("h200")), large),
                    ContainsSubstring("for h200, which has more shared memory than pretend"));
}

TEST_CASE("a result is waited for where it was made", "[cuda][streams]") {
  NEEDS_GPU;
  const auto f = add_one();
  Tensor inside, unread, outside = number(1).to(cuda);
  {
    const UsersStream users;
    {
      const CudaStreamScope scope(0, users.stream);
      inside = f(outside);  // our stream has not copied it yet
      CHECK(value_of(f(inside)) == 3);
      unread = f(f(inside));
    }
    CHECK(value_of(unread) == 4);
    CHECK(value_of(f(inside)) == 3);
  }
  CHECK(value_of(f(inside)) == 3);  // the stream is gone
  std::thread([&] { CHECK(value_of(f(f(inside))) == 4); }).join();
  {
    const UsersStream users;
    const CudaStreamScope scope(0, users.stream);
    CHECK(value_of(f(inside)) == 3);
  }
  CHECK(misuses() == 0);
}

TEST_CASE("memory is not handed out before who uses it has ended", "[cuda][streams]") {
  NEEDS_GPU;
  const auto f = add_one();
  const UsersStream users;
  Tensor result;
  Tensor input = number(5).to(cuda);
  const void* const place = input.info().storage->data();
  {
    const CudaStreamScope scope(0, users.stream);
    result = f(input);
  }
  input = Tensor();
  const Tensor next = number(100).to(cuda);
  CHECK(next.info().storage->data() == place);
  CHECK(value_of(next) == 100);
  CHECK(value_of(result) == 6);
  // Memory of a stream that is gone: given back to the device, and to other streams.
  {
    const UsersStream gone;
    Tensor there;
    {
      const CudaStreamScope scope(0, gone.stream);
      there = f(next);
    }
    CHECK(value_of(f(there)) == 102);  // in our stream
  }
  release_cached_cuda_memory(0);
  CHECK(cached_cuda_bytes(0) == 0);
  CHECK(misuses() == 0);
}

TEST_CASE("each call has its own errors, and what is made of it", "[cuda][streams][index]") {
  NEEDS_GPU;
  const auto look = look_up();
  const auto f = add_one();
  const Tensor rows = table(), two = index(2), nine = index(9);
  const Tensor bad = look(rows, nine), good = look(rows, two), after = f(bad);
  CHECK(value_of(good) == 20);
  for (int turn = 0; turn < 2; turn++) {
    CHECK_THAT(message_of([&] { value_of(bad); }),
               ContainsSubstring("pretend_gpu_test.cpp:") &&
                   ContainsSubstring("gather: an index is out of range: 9 for size 4"));
    CHECK_THAT(message_of([&] { value_of(after); }),
               ContainsSubstring("gather: an index is out of range: 9"));
    CHECK_THAT(message_of([&] { value_of(f(after)); }),
               ContainsSubstring("gather: an index is out of range: 9"));
  }
  CHECK(value_of(f(good)) == 21);
  Tensor x = look(rows, two);
  for (int step = 0; step < 3000; step++) x = f(x);
  CHECK(cuda_storage(x).outcomes.size() <= 1);  // none once that is known to be good
  CHECK(value_of(x) == 3020);
  CHECK(cuda_storage(f(x)).outcomes.empty());
  // More calls than a module has places for: each has its own outcome, read late or never.
  const Tensor early = look(rows, nine);
  std::vector<Tensor> all;
  for (int call = 0; call < 600; call++)
    all.push_back(look(rows, call % 100 == 99 ? nine : two));
  for (int call = 0; call < 600; call += 7)
    if (call % 100 != 99) CHECK(value_of(all[static_cast<size_t>(call)]) == 20);
  CHECK_THAT(message_of([&] { value_of(all[299]); }), ContainsSubstring("9 for size 4"));
  CHECK_THAT(message_of([&] { value_of(early); }), ContainsSubstring("9 for size 4"));
  // One module on several streams at once.
  const UsersStream users;
  Tensor there;
  {
    const CudaStreamScope scope(0, users.stream);
    there = look(rows, nine);
  }
  CHECK(value_of(look(rows, two)) == 20);
  CHECK_THAT(message_of([&] { value_of(there); }),
             ContainsSubstring("gather: an index is out of range: 9"));
  CHECK(misuses() == 0);
}

TEST_CASE("few bytes are on their way when a copy returns, and theirs to keep",
          "[cuda][streams]") {
  NEEDS_GPU;
  const auto f = add_one();
  std::vector<Tensor> there;
  for (int k = 0; k < 200; k++) {
    Tensor x = number(static_cast<float>(k));
    there.push_back(f(x.to(cuda)));
    x.data<float>()[0] = -1;
  }
  for (int k = 0; k < 200; k++) CHECK(value_of(there[static_cast<size_t>(k)]) == k + 1);
}

TEST_CASE("pretend: a call with a number waits for nobody", "[.pretend]") {
  REQUIRE(why_no_cuda().empty());
  const auto scaled = compile([](Tensor x, Tensor s) { return x * s; });
  const Tensor x = number(1).to(cuda);
  scaled(x, 2.0f);
  const int before = waits();
  for (int call = 0; call < 10; call++) scaled(x, 3.0f + static_cast<float>(call));
  CHECK(waits() == before);
  dropout(x, 0.5);
  CHECK(waits() == before);
}

TEST_CASE("pretend: a call that fails leaves its errors to nobody", "[.pretend]") {
  REQUIRE(why_no_cuda().empty());
  const auto look = compile(
      [](Tensor table, Tensor i) {
        return std::vector{embedding(i, table), embedding(i, table + 1.0).sum()};
      },
      {.name = "two"});
  const Tensor rows = table(), nine = index(9), two = index(2);
  look(rows, two);
  // The first kernel has begun when the second is refused.
  pretend<void(int)>("pretend_launches_before")(1);
  fail_next(701, 0);
  CHECK_THAT(message_of([&] { look(rows, nine); }), ContainsSubstring("701"));
  CHECK(value_of(look(rows, two)[0]) == 20);
  fail_next(701, 0);  // the first
  CHECK_THAT(message_of([&] { look(rows, two); }), ContainsSubstring("701"));
  const Tensor good = look(rows, two)[0], bad = look(rows, nine)[0];
  CHECK(value_of(good) == 20);
  CHECK_THAT(message_of([&] { value_of(bad); }), ContainsSubstring("is out of range"));
}

TEST_CASE("pretend: what a call found is handed over by one launch, or copied", "[.pretend]") {
  REQUIRE(why_no_cuda().empty());
  const auto moves = pretend<int()>("pretend_moves");
  const Tensor rows = table(), nine = index(9), two = index(2);
  for (const bool hands_over : {true, false}) {  // a text of a user's own may not know how
    pretend<void(bool)>("pretend_hands_over")(hands_over);
    const auto look =
        compile([=](Tensor t, Tensor i) { return embedding(i, t) * (hands_over ? 1.0 : 2.0); },
                {.name = "look"});
    look(rows, two);
    const int before = moves();
    const int64_t launches = driver::launches();
    const int early = pretend<int()>("pretend_early")();
    const Tensor bad = look(rows, nine), good = look(rows, two);
    CHECK(moves() - before == (hands_over ? 0 : 4));
    CHECK(pretend<int()>("pretend_early")() - early == (hands_over ? 2 : 0));
    CHECK(driver::launches() - launches == (hands_over ? 4 : 2));
    CHECK(value_of(good) == 20);
    CHECK_THAT(message_of([&] { value_of(bad); }), ContainsSubstring("is out of range"));
  }
  pretend<void(bool)>("pretend_hands_over")(true);
}

TEST_CASE("pretend: of a program in several modules an index error is told", "[.pretend]") {
  REQUIRE(why_no_cuda().empty());
  const auto look = compile(
      [](Tensor t, Tensor i, Tensor x) {
        std::vector<Tensor> all = {embedding(i, t)};
        for (int64_t length = 1000; length < 1100; length += 10)
          all.push_back(cumsum(softmax(x.slice(1, 0, length), 1), 1));
        return all;
      },
      {.name = "look"});
  const Tensor rows = table(), nine = index(9), two = index(2), x = zeros({3, 1100}).to(cuda);
  const auto modules = pretend<int()>("pretend_modules");
  const int before = modules();
  const Tensor good = look(rows, two, x)[0], bad = look(rows, nine, x)[0];
  CHECK(modules() - before > 1);
  CHECK(value_of(good) == 20);
  CHECK_THAT(message_of([&] { value_of(bad); }), ContainsSubstring("is out of range"));
}

TEST_CASE("pretend: a cross entropy and its gradient are three launches", "[.pretend]") {
  REQUIRE(why_no_cuda().empty());
  const auto f = compile([](Tensor logits, Tensor target) {
    return value_and_grad([&](Tensor x) { return cross_entropy(x, target); })(logits);
  });
  const Tensor logits = randn({64, 5000}).to(cuda), target = zeros({64}, DType::i64).to(cuda);
  f(logits, target);
  const int64_t before = driver::launches();
  f(logits, target);
  CHECK(driver::launches() - before == 3 + 1);  // the last hands over what they found
}

TEST_CASE("pretend: weights of one stream are waited for once a call", "[.pretend]") {
  REQUIRE(why_no_cuda().empty());
  const auto f = compile([](std::span<const Tensor> x) {
    Tensor total = x[0];
    for (const Tensor& one : x.subspan(1)) total = total + one;
    return total;
  });
  std::vector<Tensor> weights;
  for (int k = 0; k < 20; k++) weights.push_back(number(1).to(cuda));
  const UsersStream users;
  const CudaStreamScope scope(0, users.stream);
  f(weights);
  const auto stream_waits = pretend<int()>("pretend_stream_waits");
  const int before = stream_waits();
  f(weights);
  CHECK(stream_waits() == before + 1);
}

TEST_CASE("pretend: all the memory there is can be had, and more is named", "[.pretend]") {
  REQUIRE(why_no_cuda().empty());
  release_cached_cuda_memory(0);
  const auto taken = pretend<size_t()>("pretend_taken");
  pretend<void(size_t)>("pretend_total")(taken() + (size_t{1000} << 20));
  const size_t before = taken();
  {
    const auto most = allocate_cuda(size_t{999} << 20, 0);
    CHECK(most->bytes() == size_t{999} << 20);
    CHECK_THAT(message_of([] { allocate_cuda(3 << 20, 0); }),
               ContainsSubstring("cuda:0: 3145728 bytes are needed") &&
                   ContainsSubstring("1048576 of"));
  }
  const auto again = allocate_cuda(size_t{999} << 20, 0);
  CHECK(taken() - before == size_t{999} << 20);
}

TEST_CASE("pretend: who needs memory that is not there is named", "[.pretend]") {
  REQUIRE(why_no_cuda().empty());
  release_cached_cuda_memory(0);
  const auto taken = pretend<size_t()>("pretend_taken");
  const auto f = compile([](Tensor x) { return (x * x).sum(); }, {.name = "squares"});
  const Tensor x = ones({1 << 24}).to(cuda);
  f(x);  // sums of 1024, 64 KB of them
  release_cached_cuda_memory(0);
  pretend<void(size_t)>("pretend_total")(taken() + 4096);
  CHECK_THAT(message_of([&] { f(x); }), ContainsSubstring("squares, compiled: its temporaries: "
                                                          "out of memory on cuda:0: "));
  pretend<void(size_t)>("pretend_total")(size_t{4} << 30);
}

TEST_CASE("pretend: the driver's errors name the kernel and its lines", "[.pretend]") {
  REQUIRE(why_no_cuda().empty());
  const auto f = add_one();
  const Tensor x = number(1).to(cuda);
  const Tensor y = f(x);
  fail_next(701, 0);
  CHECK_THAT(message_of([&] { f(y); }),
             ContainsSubstring("701") && ContainsSubstring("add_one, compiled: ") &&
                 ContainsSubstring("\nof k_add") &&
                 ContainsSubstring(" | extern \"C\" __global__ void") &&
                 ContainsSubstring(" | }\n"));
  fail_next(0, 700);
  CHECK_THAT(message_of([&] { value_of(y); }),
             ContainsSubstring("700") && ContainsSubstring("a result of add_one") &&
                 ContainsSubstring(" | extern \"C\" __global__ void") &&
                 ContainsSubstring(" | }\n"));
  CHECK(value_of(y) == 2);
}

TEST_CASE("pretend: a child of fork is told so", "[.pretend]") {
  REQUIRE(why_no_cuda().empty());
  check_forked();
}

TEST_CASE("a branch comes after what was there, and before what follows", "[cuda][streams]") {
  NEEDS_GPU;
  const CudaScope scope(0);
  const std::vector<int64_t> before = {1, 2, 3}, after = {4, 5, 6};
  const size_t bytes = before.size() * sizeof(int64_t);
  const auto a = allocate_cuda(bytes, 0), b = allocate_cuda(bytes, 0);
  const auto at = [](const std::shared_ptr<Storage>& storage) {
    return reinterpret_cast<CudaAddress>(storage->data());
  };
  std::vector<int64_t> read(before.size());
  driver::copy_to_device(at(a), before.data(), bytes, cuda_stream(0));
  {
    CudaBranch branch(0);
    CHECK(branch.stream() != cuda_stream(0));
    driver::copy_on_device(at(b), at(a), bytes, branch.stream());
    driver::copy_to_host(read.data(), at(b), bytes, branch.stream());  // not joined yet
    CHECK(read == before);
    branch.join();
  }
  {
    const CudaBranch branch(0);  // joins where it ends
    driver::copy_to_device(at(b), after.data(), bytes, branch.stream());
  }
  driver::copy_to_host(read.data(), at(b), bytes, cuda_stream(0));
  CHECK(read == after);
}

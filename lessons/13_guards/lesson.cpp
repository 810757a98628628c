// Lesson 13: when may code be reused?   build/lessons/13 [part]
#include "lessons/tools/lesson.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tiny_compile/runtime/disk_cache.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// What the log says goes to stderr; what we say must stand before it.
void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::string in_words(const Guard& guard) {
  return str(guard.dtype, "[", join(guard.shape(), ","), "], strides [",
             join(guard.strides(), ","), "], on ", guard.device.str());
}

CompileOptions options() { return {.backend = "cpp", .pipeline = pipeline(), .name = "step"}; }

void show_calls() {
  setenv("TC_LOGS", "recompiles", 1);
  Tensor w = ones({8});
  const auto f = compile([&w](Tensor x, Tensor rate) { return x * w - rate; }, options());
  int compiled = 0, calls = 0;
  const auto call = [&](const std::string& title, const Tensor& x, auto rate) {
    say(str(++calls, ". ", title));
    const size_t before = f.cache().size();
    f(x, rate);
    const bool is_new = f.cache().size() > before;
    compiled += is_new;
    say(is_new ? "   compiled" : "   reused");
  };
  const Tensor x = randn({4, 8});
  call("x is f32[4,8], rate is 0.5", x, 0.5);
  call("another x", randn({4, 8}), 0.5);
  call("rate is 0.25", x, 0.25);
  call("rate is 2, an integer", x, 2);
  call("six rows", randn({6, 8}), 0.5);
  call("a transposed x", randn({8, 4}).t(), 0.5);
  call("x is f64", randn({4, 8}, float64), 0.5);
  w = full({8}, 3);
  call("w is another tensor", x, 0.5);
  w = ones({1});
  call("w has one element", x, 0.5);
  w = ones({8});
  call("as at first", x, 0.5);
  say(str(calls, " calls, ", compiled, " compilations"));
  unsetenv("TC_LOGS");
}

Tensor doubled(Tensor x) { return x * 2; }

Signature signature_of(const Tensor& x) { return {{x}, {}}; }

void show_entry() {
  Tensor w = ones({8});
  const auto f = compile([&w](Tensor x) { return x * w; }, options());
  const Tensor x = zeros({4, 8});
  f(x);
  const auto entry = f.cache().find(signature_of(x));
  std::printf("%s", print(entry->graph).c_str());
  for (size_t k = 0; k < entry->guards.size(); k++)
    say(str("guard ", k, ": ", in_words(entry->guards[k])));
  const Program program = run_pipeline(pipeline(), entry->graph, true).program;
  std::printf("%s", print(program, program.kernels[0]).c_str());
}

void show_numbers() {
  const auto times = compile(
      [](Tensor x, int n) {
        Tensor sum = x;
        for (int k = 1; k < n; k++) sum = sum + x;
        return sum;
      },
      {.backend = "interpreter"});
  const Tensor x = ones({5});
  for (int n : {2, 3, 2, 7}) {
    times(x, n);
    say(str("n = ", n, ": ", times.specialization(x, n).traced.graph.size(), " nodes, ",
            times.cache().size(), " entries"));
  }
  using Number = std::array<double, 1>;
  const auto inverse =
      compile([](Tensor x, Number by) { return x / by[0]; }, {.backend = "interpreter"});
  for (double by : {0.0, -0.0}) {
    const double value = inverse(ones({}), Number{by}).item<double>();
    say(str("1 / ", by, " = ", value, ", ", inverse.cache().size(), " entries"));
  }
}

// A call goes down the entries, the last used first.
void show_picture() {
  const auto f = compile(doubled, {.backend = "interpreter"});
  const std::vector<Tensor> kinds = {zeros({4, 8}), zeros({6, 8}), zeros({4, 8}, float64),
                                     zeros({8, 4}).t()};
  for (const Tensor& x : kinds) f(x);
  say("flowchart TD\n  start([\"f(x)\"]) --> g3");
  for (size_t k = kinds.size(); k-- > 0;) {
    const Guard guard = f.cache().find(signature_of(kinds[k]))->guards[0];
    const std::string next = k > 0 ? str("g", k - 1) : "miss";
    say(str("  g", k, "{\"", guard.dtype, "[", join(guard.shape(), ","), "]<br>strides [",
            join(guard.strides(), ","), "]<br>on ", guard.device.str(), "?\"}"));
    say(str("  g", k, " -- yes --> code", k, "[\"code ", k, "\"]"));
    say(str("  g", k, " -- no --> ", next));
  }
  say("  miss[\"trace, compile,<br>new first entry\"]");
}

void show_key() {
  const auto key = [](const std::string& source, const std::string& flags) {
    say(str(content_key({{"source", source}, {"flags", flags}}), "  '", source, "' '", flags,
            "'"));
  };
  key("y = x", "-O3");
  key("y = x", "-O2");
  key("y = x-", "O3");
  key("y = x", "-O3");
}

// Changes one bit of the only entry.
void damage(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(1000);
    const char byte = static_cast<char>(file.get());
    file.seekp(1000);
    file.put(static_cast<char>(byte ^ 1));
  }
}

void show_disk() {
  const TemporaryDirectory place("/tmp");
  const char* before = std::getenv("TC_CACHE_DIR");
  const std::string old = before ? before : "";
  setenv("TC_CACHE_DIR", place.path().c_str(), 1);
  const Program program =
      run_pipeline(pipeline(), compile(doubled).specialization(zeros({4, 8})).traced.graph,
                   true)
          .program;
  const Source source = emit(lower_to_tiles(program));
  const auto get = [&](const char* title) {
    say(str(title, build(program, source).from_cache ? "from the cache" : "compiled"));
  };
  get("the first time       ");
  get("the second time      ");
  damage(place.path());
  get("one bit has flipped  ");
  get("after that           ");
  if (before)
    setenv("TC_CACHE_DIR", old.c_str(), 1);
  else
    unsetenv("TC_CACHE_DIR");
}

void show_break() {
  const auto f = compile(doubled, options());
  const Tensor right = from_vector(std::vector<float>{1, 2, 3, 4});
  const Tensor other = from_vector(std::vector<int32_t>{1, 2, 3, 4});
  say(str("f of f32          ", f(right).str()));
  const auto entry = f.cache().find(signature_of(right));
  say(str("guard on i32      ", entry->guards[0].difference(other)));
  say(str("f of i32          ", f(other).str()));
  say(str("code of f32       ", f.cache().run(*entry, {other})[0].str()));
}

}  // namespace

int main(int argc, char** argv) {
  return show_parts(argc, argv,
                    {{"calls", show_calls},
                     {"entry", show_entry},
                     {"numbers", show_numbers},
                     {"picture", show_picture},
                     {"key", show_key},
                     {"disk", show_disk},
                     {"break", show_break}});
}

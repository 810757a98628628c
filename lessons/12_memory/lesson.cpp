// Lesson 12: which buffers share bytes?   build/lessons/12 [part]
#include "lessons/tools/lesson.h"

#include <cmath>

#include "lessons/12_memory/lives.h"
#include "tiny_compile/loops/interpreter.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

constexpr int64_t kBlock = 8192;  // bytes of a line of the picture

// Wide, narrow, wide, narrow; the narrow b is needed again.
Tensor net(Tensor x, Tensor w1, Tensor w2, Tensor w3, Tensor w4) {
  Tensor a = relu(matmul(x, w1));
  Tensor b = relu(matmul(a, w2));
  Tensor c = relu(matmul(b, w3));
  Tensor d = b + matmul(c, w4);
  return d / d.sum(-1, true);
}

// The same, with a small b and a c twice as wide.
Tensor wider(Tensor x, Tensor w1, Tensor w2, Tensor w3, Tensor w4) {
  Tensor a = relu(matmul(x, w1));
  Tensor b = relu(matmul(a, w2));
  Tensor c = relu(matmul(b, w3));
  return b + matmul(c, w4);
}

std::vector<Tensor> inputs() {
  manual_seed(1);
  std::vector<Tensor> result;
  for (const Sizes& shape : {Sizes{32, 64}, {64, 256}, {256, 64}, {64, 256}, {256, 64}})
    result.push_back(rand(shape));
  return result;
}

Graph net_graph() {
  const std::vector<Tensor> in = inputs();
  return compile(net, {.name = "net"})
      .specialization(in[0], in[1], in[2], in[3], in[4])
      .traced.graph;
}

Program planned() { return run_pipeline(pipeline(), net_graph(), true).program; }

std::vector<Life> placed_lives(const Program& program) {
  std::vector<Life> lives = lives_of(program);
  for (Life& life : lives) life.place = program.buffers[life.buffer].place;
  return lives;
}

// What is written over another buffer needs room of its own only from the next launch on.
std::vector<Life> counted_once(const Program& program) {
  std::vector<Life> lives = lives_of(program);
  for (Life& life : lives) life.first += program.buffers[life.buffer].over >= 0;
  return lives;
}

void show_program() {
  const Program program = run_pipeline(until(pipeline(), "fuse"), net_graph(), true).program;
  std::printf("%s", print(program).c_str());
}

std::string bar(const Life& life, size_t launches) {
  std::string text;
  for (size_t launch = 0; launch < launches; launch++) {
    const int at = static_cast<int>(launch);
    text += at < life.first || at > life.last ? "    " : "####";
  }
  return text;
}

void show_lives() {
  const Program program = planned();
  std::printf("launch            ");
  for (size_t launch = 0; launch < program.launches.size(); launch++)
    std::printf("%-4zu", launch);
  std::printf("\n");
  int64_t sum = 0;
  for (const Life& life : lives_of(program)) {
    std::printf("%-4s %6lld bytes %s%s\n", program.buffers[life.buffer].name.c_str(),
                static_cast<long long>(life.bytes), " ",
                bar(life, program.launches.size()).c_str());
    sum += life.bytes;
  }
  std::printf("a place for each %lld bytes\n", static_cast<long long>(sum));
}

void show_places() {
  const Program program = planned();
  for (const Life& life : placed_lives(program)) {
    const Buffer& buffer = program.buffers[life.buffer];
    const std::string over =
        buffer.over < 0 ? "" : " over " + program.buffers[buffer.over].name;
    std::printf("%-4s at %5lld%s\n", buffer.name.c_str(), static_cast<long long>(life.place),
                over.c_str());
  }
  std::printf("arena            %lld bytes\n", static_cast<long long>(program.arena_bytes));
  std::printf("alive at once    %lld bytes at most\n",
              static_cast<long long>(peak_of(counted_once(program))));
}

// A line a block of the arena, a column a launch: whose bytes are these?
void show_map(const Program& program) {
  const std::vector<Life> lives = placed_lives(program);
  for (int64_t at = (program.arena_bytes - 1) / kBlock * kBlock; at >= 0; at -= kBlock) {
    std::printf("%6lld |", static_cast<long long>(at));
    for (size_t launch = 0; launch < program.launches.size(); launch++) {
      std::string names;
      for (const Life& life : lives) {
        const int now = static_cast<int>(launch);
        if (life.first <= now && now <= life.last && life.place < at + kBlock &&
            at < life.place + life.bytes)
          names += (names.empty() ? "" : "+") + program.buffers[life.buffer].name;
      }
      std::printf(" %-7s", names.empty() ? "." : names.c_str());
    }
    std::printf("\n");
  }
  std::printf("launch  ");
  for (size_t launch = 0; launch < program.launches.size(); launch++)
    std::printf(" %-7zu", launch);
  std::printf("\n");
}

void show_picture() { show_map(planned()); }

void show_luck() {
  const Graph graph = compile(wider, {.name = "wider"})
                          .specialization(zeros({32, 64}), zeros({64, 256}), zeros({256, 64}),
                                          zeros({64, 512}), zeros({512, 64}))
                          .traced.graph;
  const Program program = run_pipeline(pipeline(), graph, true).program;
  show_map(program);
  std::printf("arena            %lld bytes\n", static_cast<long long>(program.arena_bytes));
  std::printf("alive at once    %lld bytes at most\n",
              static_cast<long long>(peak_of(counted_once(program))));
}

// Every life one launch shorter than it is.
std::vector<Life> shortened(std::vector<Life> lives) {
  for (Life& life : lives) life.last = std::max(life.first, life.last - 1);
  return lives;
}

// A kernel that fills a buffer with NaN.
Kernel poison(const Program& program, int buffer) {
  Kernel kernel;
  kernel.name = "poison_" + program.buffers[buffer].name;
  kernel.axes = {{"i0", program.buffers[buffer].size}};
  kernel.rows = 1;
  Step store;
  store.buffer = buffer;
  store.index = kernel.axes[0].symbol();
  store.value = ScalarTable(kernel).constant(Literal::of(DType::f32, NAN));
  kernel.steps = {store};
  return kernel;
}

// Behind each launch, what has died in it becomes NaN.
Program poisoned(const Program& program, const std::vector<Life>& lives) {
  Program result = program;
  result.launches.clear();
  for (size_t launch = 0; launch < program.launches.size(); launch++) {
    result.launches.push_back(program.launches[launch]);
    for (const Life& life : lives) {
      if (life.last != static_cast<int>(launch)) continue;
      result.launches.push_back({static_cast<int>(result.kernels.size())});
      result.kernels.push_back(poison(program, life.buffer));
    }
  }
  return result;
}

void show_result(const char* title, const Program& program, const std::vector<float>& want) {
  const std::vector<float> got = interpret(program, inputs())[0].to_vector<float>();
  int64_t wrong = 0, nans = 0;
  for (size_t k = 0; k < got.size(); k++) {
    wrong += got[k] != want[k];
    nans += std::isnan(got[k]);
  }
  std::printf("%-22s arena %lld: %lld of %zu wrong, %lld NaN; y[0] = %.6f\n", title,
              static_cast<long long>(program.arena_bytes), static_cast<long long>(wrong),
              got.size(), static_cast<long long>(nans), static_cast<double>(got[0]));
}

void show_break() {
  const std::vector<Life> lives = lives_of(planned());
  const Program good = lowest_places(planned(), lives);
  const std::vector<Life> early = shortened(lives);
  const Program bad = lowest_places(good, early);
  const std::vector<float> want = interpret(net_graph(), inputs())[0].to_vector<float>();
  show_result("as planned", good, want);
  show_result("freed a launch early", bad, want);
  show_result("as planned, poisoned", poisoned(good, lives), want);
  show_result("freed early, poisoned", poisoned(bad, early), want);
  try {
    verify(bad);
  } catch (const Error& error) {
    std::printf("the verifier: %s\n", error.what());
  }
}

void show_early() {
  const Program good = planned();
  show_map(lowest_places(good, shortened(lives_of(good))));
}

}  // namespace

int main(int argc, char** argv) {
  return show_parts(argc, argv,
                    {{"program", show_program},
                     {"lives", show_lives},
                     {"places", show_places},
                     {"picture", show_picture},
                     {"luck", show_luck},
                     {"early", show_early},
                     {"break", show_break}});
}

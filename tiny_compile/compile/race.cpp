// How are two builds compared on a machine whose speed changes? Turn by turn: each runs as often as
// fills two milliseconds, then all do so again. Every third turn those a tenth behind the best leave;
// at last the best meets number 0 alone.
#include "tiny_compile/compile/race.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "tiny_compile/schedule/search.h"
#include "tiny_compile/tensor/cuda_memory.h"

namespace tiny_compile {
namespace {

constexpr double kBatch = 0.002;  // seconds that a time is taken over, at least
constexpr int kMostCalls = 1000;  // in one of them
constexpr size_t kHeat = 3;       // turns before the slow ones leave
constexpr size_t kMostTurns = 30, kLeastTurns = 5;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Device device_of(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.device() != cpu) return tensor.device();
  }
  return cpu;
}

bool is_right(const Racer& racer, const std::vector<Tensor>& got,
              const std::vector<Tensor>& wanted) {
  for (size_t k = 0; k < wanted.size(); k++) {
    if (!same_bits(got[k], wanted[k]) && !(distance(got[k], wanted[k]) < racer.tolerance))
      return false;
  }
  return got.size() == wanted.size();
}

// Those that run and are right; of the others the result says what they are. Number 0's failure is the
// caller's.
std::vector<size_t> sorted_out(const std::vector<Racer>& racers, std::span<const Tensor> inputs,
                               const std::vector<Tensor>& wanted, Race& result) {
  std::vector<size_t> running;
  for (size_t k = 0; k < racers.size(); k++) {
    try {
      const bool right = is_right(racers[k], racers[k].built.run(inputs), wanted);
      (right ? running : result.disproved).push_back(k);
    } catch (const Error&) {
      if (k == 0) throw;
      result.failed.push_back(k);
    }
  }
  return running;
}

std::vector<double> turn_of(const std::vector<Racer>& racers,
                            const std::vector<size_t>& running, std::span<const Tensor> inputs,
                            int calls) {
  std::vector<double> seconds(racers.size(), std::numeric_limits<double>::infinity());
  for (const size_t k : running) seconds[k] = seconds_of(racers[k].built, inputs, calls);
  return seconds;
}

// The best of many owes some of its gain to luck: it must win once more, against number 0 alone.
Turns duel(const std::vector<Racer>& racers, size_t best, std::span<const Tensor> inputs,
           int calls) {
  Turns turns;
  while (turns.size() < kLeastTurns) turns.push_back(turn_of(racers, {0, best}, inputs, calls));
  return turns;
}

template <typename T>
Tensor filled(int64_t count, const Sizes& shape, T (*value)(uint64_t)) {
  std::vector<T> values(static_cast<size_t>(count));
  uint64_t state = 1;
  for (T& v : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = value(state >> 33);
  }
  return from_vector<T>(values, shape);
}

Tensor filled(const Type& type) {
  Sizes shape;
  int64_t count = 1;
  for (const Expr& size : type.shape) {
    shape.push_back(size.constant());
    count *= shape.back();
  }
  if (!is_float(type.dtype)) {
    const auto bit = [](uint64_t n) { return static_cast<int64_t>(n % 2); };
    return filled<int64_t>(count, shape, bit).to(type.dtype);
  }
  const auto real = [](uint64_t n) {
    return static_cast<float>(n % 8191) / 2048.0f - 2.0f;  // [-2, 2)
  };
  return filled<float>(count, shape, real).to(type.dtype);
}

}  // namespace

double seconds_of(const Built& built, std::span<const Tensor> inputs, int calls) {
  const Device device = device_of(inputs);
  const double start = now();
  for (int n = 0; n < calls; n++) built.run(inputs);
  synchronize(device);
  return (now() - start) / calls;
}

double distance(const Tensor& a, const Tensor& b) {
  double far = 0, norm = 0;
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  for (size_t i = 0; i < x.size(); i++)
    far += (x[i] - y[i]) * (x[i] - y[i]), norm += y[i] * y[i];
  return std::sqrt(far / std::max(norm, 1e-300));
}

Race race(const std::vector<Racer>& racers, std::span<const Tensor> inputs,
          const std::vector<Tensor>& wanted, double seconds) {
  Race result;
  std::vector<size_t> running = sorted_out(racers, inputs, wanted, result);
  if (!running.empty()) result.winner = running[0];
  if (running.size() < 2 || running[0] != 0) return result;
  const double once = seconds_of(racers[0].built, inputs, 1);
  const int calls = std::clamp(static_cast<int>(kBatch / std::max(once, 1e-9)), 1, kMostCalls);
  const double stop = now() + seconds;
  Turns turns;
  while (turns.size() < kMostTurns && (turns.size() < kLeastTurns || now() < stop)) {
    turns.push_back(turn_of(racers, running, inputs, calls));
    if (turns.size() % kHeat == 0) running = survivors(turns);
  }
  const size_t best = winner(turns);
  if (best == 0) return result;
  const Turns again = duel(racers, best, inputs, calls);
  result.winner = winner(again);
  result.gain = result.winner == 0 ? 1 : gain_of(again, result.winner);
  return result;
}

std::vector<Tensor> inputs_for(const std::vector<Type>& types, Device device) {
  std::vector<Tensor> inputs;
  for (const Type& type : types) inputs.push_back(copy_to(filled(type), device));
  return inputs;
}

}  // namespace tiny_compile

// Fusion without its speed: what loops/fuse.cpp does for a thousand kernels, for a handful. The
// lesson's experiment and the exercises are built from it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/loops/merge.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile::lessons {

// Whether the consumer waits for the producer: it reads a buffer that the producer writes.
inline bool reads_from(const Program& program, const Kernel& consumer, const Kernel& producer) {
  const std::vector<bool> read = buffers_read(program, consumer),
                          written = buffers_written(program, producer);
  for (size_t b = 0; b < read.size(); b++) {
    if (read[b] && written[b]) return true;
  }
  return false;
}

// "sum_2" and "div_4" => "sum_div_4"
inline std::string both_names(const std::string& first, const std::string& second) {
  return first.substr(0, first.rfind('_')) + "_" + second;
}

struct Merged {
  Kernel kernel;
  std::string refusal;  // "" where `kernel` does the work of both
};

// The consumer reads what the producer writes: one kernel that does both.
inline Merged merged_with_consumer(const Program& program, const Kernel& producer,
                                   const Kernel& consumer) {
  Group both(producer);
  const std::string refusal = merge_consumer(program, both, Group(consumer));
  Kernel kernel = both.finish();
  kernel.name = both_names(producer.name, consumer.name);
  kernel.where.insert(kernel.where.end(), consumer.where.begin(), consumer.where.end());
  return {std::move(kernel), refusal};
}

// The two read the same buffer and wait for nothing of each other: one kernel that does both.
inline Merged merged_with_sibling(const Program& program, const Kernel& first,
                                  const Kernel& second) {
  Group both(first);
  const std::string refusal = merge_sibling(program, both, Group(second));
  Kernel kernel = both.finish();
  kernel.name = both_names(first.name, second.name);
  kernel.where.insert(kernel.where.end(), second.where.begin(), second.where.end());
  return {std::move(kernel), refusal};
}

// The program with these kernels, each behind all that it waits for, one a launch. Throws
// tc::Error where they wait for each other in a ring.
inline Program with_kernels(Program program, std::vector<Kernel> waiting) {
  program.kernels.clear();
  program.launches.clear();
  while (!waiting.empty()) {
    size_t next = 0;
    auto must_wait = [&](const Kernel& kernel) {
      for (const Kernel& other : waiting) {
        if (&other != &kernel && reads_from(program, kernel, other)) return true;
      }
      return false;
    };
    while (next < waiting.size() && must_wait(waiting[next])) next++;
    if (next == waiting.size()) fail(waiting[0].name, " waits for itself: a ring of kernels");
    program.launches.push_back({static_cast<int>(program.kernels.size())});
    program.kernels.push_back(std::move(waiting[next]));
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(next));
  }
  return program;
}

// Stores to temporaries that no kernel loads any more go, from the last kernel to the first.
inline Program without_dead_stores(Program program) {
  std::vector<bool> loaded(program.buffers.size());
  std::vector<Kernel> kept;
  for (size_t k = program.kernels.size(); k-- > 0;) {
    Kernel kernel = program.kernels[k];
    const std::vector<bool> own = buffers_read(program, kernel);
    std::vector<int> numbers;
    std::vector<Step> steps;
    for (const Step& step : kernel.steps) {
      const bool dead = step.kind == StepKind::Store && !loaded[step.buffer] &&
                        !own[step.buffer] &&
                        program.buffers[step.buffer].role == Role::Temporary;
      numbers.push_back(static_cast<int>(steps.size()));
      if (!dead) steps.push_back(step);
    }
    kernel.steps = steps;
    for (Scalar& scalar : kernel.scalars) {
      if (scalar.kind == ScalarKind::Register) scalar.step = numbers[scalar.step];
    }
    kernel = normalize(std::move(kernel));
    if (kernel.steps.empty()) continue;
    const std::vector<bool> read = buffers_read(program, kernel);
    for (size_t b = 0; b < read.size(); b++) loaded[b] = loaded[b] || read[b];
    kept.insert(kept.begin(), std::move(kernel));
  }
  return with_kernels(std::move(program), std::move(kept));
}

// Whether a third kernel lies on a way from producer to consumer; numbers of program.kernels.
using Between = std::function<bool(const Program& program, int producer, int consumer)>;

// Whether two kernels as one would wait for themselves, found by trying.
inline bool would_make_a_ring(const Program& program, int first, int second) {
  std::vector<Kernel> kernels = program.kernels;
  Kernel& both = kernels[first];  // never run: what it reads and writes is all that counts
  const Kernel& other = kernels[second];
  both.scalars.insert(both.scalars.end(), other.scalars.begin(), other.scalars.end());
  both.steps.insert(both.steps.end(), other.steps.begin(), other.steps.end());
  kernels.erase(kernels.begin() + second);
  try {
    with_kernels(program, std::move(kernels));
    return false;
  } catch (const Error&) {
    return true;
  }
}

// Every consumer into its producer, again and again, until nothing changes.
inline Program fuse_greedily(Program program, const Between& lies_between = would_make_a_ring) {
  const int count = static_cast<int>(program.kernels.size());
  program.refusals.clear();
  for (int c = 1; c < count; c++) {
    for (int p = c - 1; p >= 0; p--) {
      const Kernel &producer = program.kernels[p], &consumer = program.kernels[c];
      if (!reads_from(program, consumer, producer)) continue;
      Merged merged = lies_between(program, p, c)
                          ? Merged{{}, "another kernel lies between them"}
                          : merged_with_consumer(program, producer, consumer);
      if (!merged.refusal.empty()) {
        program.refusals.push_back(producer.name + " + " + consumer.name + ": " +
                                   merged.refusal);
        continue;
      }
      std::vector<Kernel> kernels = program.kernels;
      kernels[p] = std::move(merged.kernel);
      kernels.erase(kernels.begin() + c);
      return fuse_greedily(with_kernels(program, std::move(kernels)), lies_between);
    }
  }
  return without_dead_stores(std::move(program));
}

}  // namespace tiny_compile::lessons

// The small compiler's CUDA on the CPU, thread by thread.
#pragma once

#include <algorithm>
#include <memory>

#include "lessons/small/00_run.h"
#include "lessons/tools/threads.h"

namespace small {

inline std::vector<Array> run_threads(const Plan& plan, const std::vector<Array>& inputs) {
  std::vector<tiny_compile::lessons::Threads::KernelName> kernels;
  for (const Launch& launch : plan.launches) kernels.push_back({launch.name, 1});
  // A compiler may write code after a branch twice, but lanes meet at one instruction.
  std::string text = text_of(plan);
  const std::string head = "TC_FN float of_lane";
  if (const size_t at = text.find(head); at != std::string::npos)
    text.replace(at, head.size(), "[[gnu::noinline, gnu::noclone]] static float of_lane");
  tiny_compile::lessons::Threads threads(beginning(false) + text, kernels);
  std::vector<Array> arrays = inputs;
  for (size_t k = inputs.size(); k < plan.arrays.size(); k++)
    arrays.emplace_back(count(plan.arrays[k]));
  Addresses addresses;
  for (Array& array : arrays) addresses.push_back(array.data());
  for (const Launch& launch : plan.launches) {
    Arguments arguments = arguments_of(launch, addresses);
    threads.run(launch.name, launch.blocks, launch.threads, {&arguments});
  }
  std::vector<Array> results;
  for (const int64_t output : plan.outputs) results.push_back(arrays[output]);
  return results;
}

}  // namespace small

// Which of several builds of one function is the fastest? They are run in turns, and what gives other
// results is out.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tiny_compile/runtime/build.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

struct Racer {
  Built built;
  bool exact = true;  // false: a vendor's library took part; close is enough
};

struct Race {
  size_t winner = 0;
  double gain = 1;                // number 0's time over the winner's
  std::vector<size_t> disproved;  // those whose results were others, or that failed
};

// Results must have the bits of `wanted`, or, not being exact, lie within 2 % of it by the Euclidean
// norm. Number 0 is the one to beat, unless it is disproved: what is not 2 % faster has not won. Takes
// `seconds` about.
// Throws what number 0 throws.
Race race(const std::vector<Racer>& racers, std::span<const Tensor> inputs,
          const std::vector<Tensor>& wanted, double seconds);

// |a - b| / |b|, by the Euclidean norm; infinite where they are no numbers.
double distance(const Tensor& a, const Tensor& b);

// Tensors of these types on the device: floats of several sizes and both signs, small integers. The
// same each time, and no draw from the random numbers that the user's program sees.
std::vector<Tensor> inputs_for(const std::vector<Type>& types, Device device);

}  // namespace tiny_compile

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
  double tolerance = 0;  // of a vendor's results, by the Euclidean norm; 0: the bits
};

struct Race {
  size_t winner = 0;
  double gain = 1;                // number 0's time over the winner's
  std::vector<size_t> disproved;  // those whose results were others
  std::vector<size_t> failed;     // those that did not run
};

// Of whole functions that a vendor's products went into: what such a product's rounding becomes
// behind it is not known.
inline constexpr double kClose = 0.02;

// Of a call, the mean over so many, one after the other.
double seconds_of(const Built& built, std::span<const Tensor> inputs, int calls);

// Results must have the bits of `wanted`, or lie within the racer's tolerance of it. Number 0 is the one
// to beat, unless it is disproved: what is not 2 % faster has not won. Takes `seconds` about.
// Throws what number 0 throws.
Race race(const std::vector<Racer>& racers, std::span<const Tensor> inputs,
          const std::vector<Tensor>& wanted, double seconds);

// |a - b| / |b|, by the Euclidean norm; infinite where they are no numbers.
double distance(const Tensor& a, const Tensor& b);

// Tensors of these types on the device: floats of several sizes and both signs, small integers. The
// same each time, and no draw from the random numbers that the user's program sees.
std::vector<Tensor> inputs_for(const std::vector<Type>& types, Device device);

}  // namespace tiny_compile

// Inputs and summaries for tc.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tiny_compile/graph/graph.h"
#include "tiny_compile/loops/program.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// The first inputs as given, the others drawn: floats from N(0, 1), integers from 0..2, bools.
// The same for the same seed. Strides as the text says. Throws tc::Error where a given one does
// not fit.
std::vector<Tensor> seeded_inputs(const Graph& graph, uint64_t seed,
                                  const std::vector<Tensor>& given);
std::vector<Tensor> seeded_inputs(const Program& program, uint64_t seed,
                                  const std::vector<Tensor>& given);

// "1:0,2:1" of --carry: output 1 of a call is input 0 of the next one, output 2 its input 1.
using Carry = std::vector<std::pair<size_t, size_t>>;
Carry carry_of(const std::string& text);

// The next call's inputs. Throws where there is no such input or output, or their types differ.
std::vector<Tensor> carried(const Carry& carry, std::vector<Tensor> inputs,
                            const std::vector<Tensor>& outputs);

// "n=37" of --size.
std::pair<std::string, int64_t> size_value(const std::string& text);

// Throws where `sizes` has any: `command` needs numbers. Shows the header, which begins at `start`
// of the file's text.
void require_numbers(const std::vector<Expr>& sizes, const std::string& command,
                     const std::string& file, const std::string& text, size_t start);

std::string summary(size_t number,
                    const Tensor& output);  // "output 0: f32[4,8] checksum 12ab.. first .."
std::string element_difference(const Tensor& wanted, const Tensor& got,
                               int64_t at);  // values and bits

}  // namespace tiny_compile

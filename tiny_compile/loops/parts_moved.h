// Does a fused kernel move no more bytes than the kernels that it was made of?
#pragma once

#include <string>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// "", or which kernel of `fused` moves more than all kernels of `lowered` together that it has taken
// in: those that lead from what it reads to what it writes. By bytes_moved(), of `fused` by
// bytes_moved_at_least(). Nothing is said of kernels that write arrays which `lowered` has not
// (read_again.h), nor of those whose bytes are estimated: of sizes, of places that data chooses,
// that are quotients or that a mask keeps.
std::string why_moves_more(const Program& lowered, const Program& fused);

}  // namespace tiny_compile

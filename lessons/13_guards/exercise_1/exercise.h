// 13-1 ★ All guards in one string
//
// The lesson asks one entry after the other. With a thousand kinds of input that is slow; a map
// is not, if all that the code depends on is put into one key:
//
//   std::map<std::string, Code> cache;    cache[key_of(signature)]
//
// Write key_of(). Two calls that bring these have the same key exactly where code made for the
// one is right for the other: what a Guard compares, for each tensor, and every extra number.
// (On the CPU; leave the alignment out.) What helps: str(a, b, c) makes text of anything that can
// be printed, join(list, ",") of a list; a DType and device().str() can be printed.
//
//   struct Signature { std::vector<Tensor> tensors; std::vector<uint64_t> extras; };
#pragma once

#include <string>

#include "tiny_compile/tiny_compile.h"

namespace exercise {

using namespace tiny_compile;

std::string key_of(const Signature& signature);

}  // namespace exercise

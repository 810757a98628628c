// The innermost loop of stores: plain, or streamed past the caches.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// for (i = from; i < to; i++) { define(); out[..i..] = value; }   `axis` is the kernel's
// number of i, `define` writes what the values need at one i.
void write_store_loop(KernelText& text, int axis, const std::string& from,
                      const std::string& to, const std::vector<const Step*>& steps,
                      const std::function<void()>& define);

std::string place_of(const KernelText& text, const Step& step);  // "out_y[i0*64 + j0]"
void write_store(KernelText& text, const Step& step);

// Whether write_store_loop goes past the caches: then the kernel ends with tc_stream_done().
bool streams(const KernelText& text, int axis, const std::vector<const Step*>& steps);

// The helpers of those that kernels call; of vectors of so many bytes.
std::string store_helpers(const Calls& calls, int64_t vector);

}  // namespace tiny_compile

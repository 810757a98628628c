// Loops of the generated C++ whose ends are vectors too.
#pragma once

#include <functional>
#include <string>

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// for (name = 0; name < count; name++) { body }   by whole vectors: what a last one would have less is
// filled up with elements that are done again, if nothing of the loop reads what it writes.
void write_in_vectors(KernelText& text, const std::string& name, int64_t count,
                      const std::function<void()>& body);

}  // namespace tiny_compile

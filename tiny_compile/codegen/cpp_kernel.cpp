// How does a function of C++ begin? With its buffers, and the sizes that it is given, by their names:
//
//   extern "C" void k(void* const* buffers, long long begin, long long end) {
//     const float* __restrict in_x = (const float*)buffers[0];
#include "tiny_compile/codegen/cpp_kernel.h"

#include <algorithm>

#include "tiny_compile/loops/typing.h"

namespace tiny_compile {
namespace {

bool computes_with_doubles(const Kernel& kernel) {
  const auto is_double = [](const auto& value) { return value.dtype == DType::f64; };
  return std::any_of(kernel.scalars.begin(), kernel.scalars.end(), is_double) ||
         std::any_of(kernel.steps.begin(), kernel.steps.end(), is_double);
}

}  // namespace

void Text::line(const std::string& text) {
  text_ += std::string(static_cast<size_t>(2 * depth_), ' ') + text + "\n";
}
void Text::open(const std::string& text) {
  line(text.empty() ? "{" : text + " {");
  depth_++;
}
void Text::close(const std::string& suffix) {
  depth_--;
  line("}" + suffix);
}

KernelText::KernelText(const Program& p, const Kernel& k, bool cuda)
    : calls(cuda), scalars(p, k, calls), program(p), kernel(k), sizes(tiny_compile::sizes(p)) {
  calls.doubles = computes_with_doubles(kernel);
}

void KernelText::begin_function(const std::string& function) {
  out.open(str("extern \"C\" void ", function,
               "(void* const* buffers, long long begin, long long end)"));
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  for (size_t b = 0; b < program.buffers.size(); b++) {
    if (!read[b] && !written[b]) continue;
    const Buffer& buffer = program.buffers[b];
    // g++ has no vectors of bool: its bytes are numbers, 0 or 1.
    const std::string element = buffer.type.dtype == DType::boolean
                                    ? "unsigned char"
                                    : storage_type(calls, buffer.type.dtype);
    const std::string type = str(written[b] ? "" : "const ", element, "*");
    out.line(str(type, written[b] && read[b] ? " " : " __restrict ", pointer_name(buffer),
                 " = (", type, ")buffers[", b, "];"));
  }
  if (sizes.empty()) return;
  out.line(str("const long long* const sizes = (const long long*)buffers[",
               program.buffers.size(), "];"));
  for (size_t k = 0; k < sizes.size(); k++) declare(sizes[k].name(), str("sizes[", k, "]"));
}

std::string KernelText::own() const {
  return str("buffers[", program.buffers.size() + !sizes.empty(), "]");
}

void KernelText::declare(const std::string& name, const std::string& value) {
  out.line(str("const ", integer, " ", name, " = ", value, ";"));
}

}  // namespace tiny_compile
